package tensor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/packed"
	"tgc/runtime"
	"tgc/schedule"
)

// Function is a compiled graph with memory for all its buffers, ready to run
// again and again.
type Function struct {
	step    *engine.Step
	buffers map[string]BufferInfo
	memory  map[string]runtime.Memory
	owned   []runtime.Memory // by this function, not by one it shares with
}

// Compile compiles a graph for a device and allocates its buffers. Buffers that
// a function in share has under the same name are that function's memory, so
// that a training step and an evaluation work on the same weights; dtypes and
// shapes must agree, and the shared functions must outlive the new one.
func Compile(ctx context.Context, g *Graph, dev runtime.Device, config engine.Config, share ...*Function) (*Function, error) {
	compiled, err := g.Compile(ctx, dev.Target(), config)
	if err != nil {
		return nil, err
	}
	return bind(ctx, g, dev, compiled, share)
}

// bind makes the function of a compiled graph.
func bind(ctx context.Context, g *Graph, dev runtime.Device, compiled *engine.Compiled, share []*Function) (_ *Function, err error) {
	f := &Function{buffers: make(map[string]BufferInfo), memory: make(map[string]runtime.Memory)}
	byID := make(map[int64]runtime.Memory)
	inPart := writtenInPart(compiled.Schedule)
	for i, b := range compiled.Schedule.Buffers {
		if b.UserID < 0 {
			continue
		}
		info := g.buffers[b.UserID]
		if _, twice := f.memory[info.Name]; twice {
			f.Close()
			return nil, fmt.Errorf("tensor: two buffers are named %q", info.Name)
		}
		from := share
		if _, constant := g.values[b.UserID]; constant { // its name is no user's
			from = nil
		}
		alloc := runtime.AllocWhole
		if inPart[i] {
			alloc = func(ctx context.Context, dev runtime.Device, bytes int64) (runtime.Memory, error) {
				return dev.Alloc(ctx, bytes)
			}
		}
		layout := compiled.Layout(b.UserID)
		bytes := max(layout.Bytes(hostBytes(info, b.Bytes)), 1)
		m, err := f.provide(info, layout, from, func() (runtime.Memory, error) { return alloc(ctx, dev, bytes) })
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("tensor: buffer %q: %w", info.Name, err)
		}
		f.buffers[info.Name], f.memory[info.Name], byID[b.UserID] = info, m, m
	}
	if err := f.preset(ctx, g); err != nil {
		f.Close()
		return nil, err
	}
	if f.step, err = engine.Capture(ctx, dev, compiled, byID); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// preset fills the buffers that FromSlice made.
func (f *Function) preset(ctx context.Context, g *Graph) error {
	for name, info := range f.buffers {
		if raw, ok := g.values[info.ID]; ok && len(raw) > 0 {
			if err := f.memory[name].Write(ctx, 0, raw); err != nil {
				return fmt.Errorf("tensor: values of %q: %w", name, err)
			}
		}
	}
	return nil
}

// writtenInPart tells of which buffers kernels write a part only: a cache, say,
// of which most may never be touched.
func writtenInPart(s *schedule.Schedule) map[int]bool {
	written := make(map[int]int64) // points by buffer
	inPart := make(map[int]bool)
	for _, launch := range s.Launches {
		for _, k := range launch.Kernels {
			for _, store := range k.AST.Src {
				buffer := k.Args[store.Src[0].Arg.(ir.ParamArg).Slot]
				points, known := product(extentsOf(store.Ranges()))
				inPart[buffer] = inPart[buffer] || !known
				written[buffer] += points
			}
		}
	}
	for buffer, points := range written {
		size, known := product(s.Buffers[buffer].Shape)
		inPart[buffer] = inPart[buffer] || !known || points < size
	}
	return inPart
}

func extentsOf(ranges []*ir.UOp) []*ir.UOp {
	return lists.Map(ranges, func(r *ir.UOp) *ir.UOp { return r.Src[0] })
}

// product multiplies extents, if all are constant.
func product(extents []*ir.UOp) (n int64, known bool) {
	n = 1
	for _, x := range extents {
		v, ok := x.Int()
		if !ok {
			return 0, false
		}
		n *= v
	}
	return n, true
}

// provide finds a buffer's memory among the shared functions or allocates it.
func (f *Function) provide(info BufferInfo, layout engine.Layout, share []*Function, alloc func() (runtime.Memory, error)) (runtime.Memory, error) {
	for _, other := range share {
		theirs, ok := other.buffers[info.Name]
		if !ok {
			continue
		}
		if theirs.DType != info.DType || theirs.Format != info.Format || shapeText(theirs.Shape) != shapeText(info.Shape) {
			return nil, fmt.Errorf("is %s%s, but %s%s in the function it is shared with",
				storage(info), shapeText(info.Shape), storage(theirs), shapeText(theirs.Shape))
		}
		if other.step.Compiled.Layout(theirs.ID) != layout {
			return nil, fmt.Errorf("has another layout in the function it is shared with, which was compiled for another target")
		}
		return other.memory[info.Name], nil
	}
	m, err := alloc()
	if err == nil {
		f.owned = append(f.owned, m)
	}
	return m, err
}

// Step gives access to the compiled kernels.
func (f *Function) Step() *engine.Step { return f.step }

// Run computes all results; vars are the values of symbolic sizes.
func (f *Function) Run(ctx context.Context, vars map[string]int64) error {
	return f.step.Run(ctx, vars)
}

// Close frees the function's memory.
func (f *Function) Close() {
	if f.step != nil {
		f.step.Free()
	}
	for _, m := range f.owned {
		m.Free()
	}
	f.owned = nil
}

// Buffers lists the buffers that the function uses, in the graph's order. A
// buffer that no result needs is not among them.
func (f *Function) Buffers() []BufferInfo {
	list := slices.Collect(maps.Values(f.buffers))
	slices.SortFunc(list, func(a, b BufferInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Read returns a buffer's bytes: little-endian elements, row-major, or the blocks of a
// packed format, row after row, wherever the device has them.
func (f *Function) Read(ctx context.Context, name string) ([]byte, error) {
	m, ok := f.memory[name]
	if !ok {
		return nil, fmt.Errorf("tensor: no buffer %q", name)
	}
	info := f.buffers[name]
	return f.step.Compiled.Layout(info.ID).Read(ctx, m, hostBytes(info, int64(elements(info)*info.DType.Size())))
}

// Write fills a buffer from bytes as Read returns them.
func (f *Function) Write(ctx context.Context, name string, raw []byte) error {
	m, ok := f.memory[name]
	if !ok {
		return fmt.Errorf("tensor: no buffer %q", name)
	}
	info := f.buffers[name]
	if want := hostBytes(info, int64(elements(info)*info.DType.Size())); int64(len(raw)) != want {
		return fmt.Errorf("tensor: buffer %q: got %d bytes, want %d", name, len(raw), want)
	}
	return f.step.Compiled.Layout(info.ID).Write(ctx, m, raw)
}

// hostBytes is the size of a buffer on the host: of blocks, if its shape is constant,
// or of plain elements.
func hostBytes(info BufferInfo, plain int64) int64 {
	f, ok := packed.Lookup(info.Format)
	if !ok {
		return plain
	}
	return int64(elements(info)) / int64(f.BlockElems) * int64(f.BlockBytes)
}

// Set fills a buffer from a slice of its element type. (A generic method does
// not exist in Go, hence a function.)
func Set[T Element](ctx context.Context, f *Function, name string, values []T) error {
	m, err := lookup[T](f, name, len(values))
	if err != nil {
		return err
	}
	raw, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		return fmt.Errorf("tensor: buffer %q: %w", name, err)
	}
	return m.Write(ctx, 0, raw)
}

// Get reads a buffer into a new slice.
func Get[T Element](ctx context.Context, f *Function, name string) ([]T, error) {
	info, ok := f.buffers[name]
	if !ok {
		return nil, fmt.Errorf("tensor: no buffer %q", name)
	}
	values := make([]T, elements(info))
	m, err := lookup[T](f, name, len(values))
	if err != nil {
		return nil, err
	}
	raw := make([]byte, len(values)*info.DType.Size())
	if err := m.Read(ctx, 0, raw); err != nil {
		return nil, err
	}
	return values, binary.Read(bytes.NewReader(raw), binary.LittleEndian, values)
}

func elements(info BufferInfo) int {
	n := 1
	for _, dim := range info.Shape {
		v, _ := dim.Int()
		n *= int(v)
	}
	return n
}

// lookup finds a buffer and checks the element type's size and the count.
func lookup[T Element](f *Function, name string, count int) (runtime.Memory, error) {
	info, ok := f.buffers[name]
	if !ok {
		return nil, fmt.Errorf("tensor: no buffer %q", name)
	}
	var zero T
	if size := binary.Size(zero); info.Format != "" || size != info.DType.Size() {
		return nil, fmt.Errorf("tensor: buffer %q holds %s, not elements of %d bytes", name, storage(info), size)
	}
	if want := elements(info); count != want {
		return nil, fmt.Errorf("tensor: buffer %q: got %d values, want %d", name, count, want)
	}
	return f.memory[name], nil
}

func storage(info BufferInfo) string {
	if info.Format != "" {
		return info.Format
	}
	return fmt.Sprintf("%s of %d bytes", info.DType, info.DType.Size())
}
