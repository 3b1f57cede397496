package tensor

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"tgc/internal/lists"
)

// Read returns a buffer's bytes, whatever was put there: little-endian elements,
// row-major, or the blocks of a packed format, row after row, wherever the device has
// them. Of a symbolic shape they are those of the last run.
func (f *Function) Read(ctx context.Context, name string) ([]byte, error) {
	b, err := f.hold("read", name)
	if err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return f.read(ctx, b)
}

// Write fills a buffer from bytes as Read returns them.
func (f *Function) Write(ctx context.Context, name string, raw []byte) error {
	b, err := f.hold("write", name)
	if err != nil {
		return err
	}
	defer f.mu.Unlock()
	n, constant := product(b.Shape)
	if want := hostBytes(b.BufferInfo, n*int64(b.DType.Size())); constant && int64(len(raw)) != want {
		return fmt.Errorf("tensor: write: buffer %q: got %d bytes, want %d", name, len(raw), want)
	}
	if !constant && (len(raw)%b.DType.Size() != 0 || int64(len(raw)) > b.bytes) {
		return fmt.Errorf("tensor: write: buffer %q: got %d bytes, want at most %d, whole elements of %s", name, len(raw), b.bytes, b.DType)
	}
	return b.write(ctx, raw)
}

// Set fills a buffer from a slice of its element type: see Element. One of symbolic shape
// takes as many values as the shape has in the run that follows. (A generic method does not
// exist in Go, hence a function.)
func Set[T Element](ctx context.Context, f *Function, name string, values []T) error {
	b, err := f.hold("set", name)
	if err != nil {
		return err
	}
	defer f.mu.Unlock()
	if b.Format != "" || !movesAs[T](b.DType) {
		return fmt.Errorf("tensor: set: buffer %q holds %s, not %s", name, storage(b.BufferInfo), DTypeOf[T]())
	}
	if _, constant := product(b.Shape); constant && len(values) != b.room() || len(values) > b.room() {
		return fmt.Errorf("tensor: set: buffer %q: got %d values, want %d for %s", name, len(values), b.room(), shapeText(b.Shape))
	}
	raw, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		return fmt.Errorf("tensor: set: buffer %q: %w", name, err)
	}
	return b.write(ctx, raw)
}

// Get reads a buffer into a new slice: as T is the Go type of its elements, or as Data
// reads them. A result that no run has computed is an error; one of symbolic shape has
// the size of the last run.
func Get[T Element](ctx context.Context, f *Function, name string) ([]T, error) {
	b, err := f.hold("get", name)
	if err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	if b.Format != "" {
		return nil, fmt.Errorf("tensor: get: buffer %q holds %s, not %s: Read gives its blocks", name, b.Format, DTypeOf[T]())
	}
	if _, ran := f.step.Last(); b.Output && !ran && !b.memory.filled.Load() {
		return nil, fmt.Errorf("tensor: get: %q has no values yet: call Run", name)
	}
	if !readsAs[T](b.DType) {
		return nil, fmt.Errorf("tensor: get: buffer %q holds %s, not %s", name, b.DType, DTypeOf[T]())
	}
	raw, err := f.read(ctx, b)
	if err != nil {
		return nil, err
	}
	return elements[T](b.DType, raw)
}

// hold opens the function for a call and finds the buffer of this name; the caller unlocks
// the function, unless that is an error.
func (f *Function) hold(call, name string) (*buffer, error) {
	if err := f.open(call); err != nil {
		return nil, err
	}
	b, ok := f.buffers[name]
	if !ok {
		f.mu.Unlock()
		return nil, fmt.Errorf("tensor: %s: no buffer %q", call, name)
	}
	return b, nil
}

// write fills the memory of a buffer.
func (b *buffer) write(ctx context.Context, raw []byte) error {
	if err := b.layout.Write(ctx, b.memory, raw); err != nil {
		return fmt.Errorf("tensor: buffer %q: %w", b.Name, err)
	}
	b.memory.elements.Store(int64(len(raw) / b.DType.Size()))
	b.memory.filled.Store(true)
	return nil
}

// read has the bytes of a buffer. Of a symbolic input they are what was set, of a result
// what the last run computed.
func (f *Function) read(ctx context.Context, b *buffer) ([]byte, error) {
	if n, constant := product(b.Shape); constant {
		return b.layout.Read(ctx, b.memory, hostBytes(b.BufferInfo, n*int64(b.DType.Size())))
	}
	if !b.uses.written {
		return b.layout.Read(ctx, b.memory, b.memory.elements.Load()*int64(b.DType.Size()))
	}
	vars, ran := f.step.Last()
	if !ran {
		return nil, fmt.Errorf("tensor: buffer %q has the shape %s, which no run has given a size yet", b.Name, shapeText(b.Shape))
	}
	told, err := extentsAt(b.Shape, vars)
	if err != nil {
		return nil, fmt.Errorf("tensor: buffer %q: %w", b.Name, err)
	}
	// A run may make a variable larger: its rows are then longer than what was asked for.
	made, err := extentsAt(b.Shape, f.step.Compiled.Values(vars))
	if err != nil {
		return nil, fmt.Errorf("tensor: buffer %q: %w", b.Name, err)
	}
	raw, err := b.layout.Read(ctx, b.memory, int64(lists.Product(made)*b.DType.Size()))
	if err != nil {
		return nil, fmt.Errorf("tensor: buffer %q: %w", b.Name, err)
	}
	return corner(raw, b.DType.Size(), made, told), nil
}

// corner is the part of a row-major array that begins at its first element.
func corner(raw []byte, elementBytes int, from, to []int) []byte {
	if slices.Equal(from, to) {
		return raw
	}
	inner := elementBytes * lists.Product(from[1:])
	var out []byte
	for i := range to[0] {
		out = append(out, corner(raw[i*inner:(i+1)*inner], elementBytes, from[1:], to[1:])...)
	}
	return out
}
