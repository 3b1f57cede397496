package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Fill produces tensor data: it sets all of chunk to the bytes from offset on of
// the tensor's packed data. Chunks are whole blocks, begin at multiples of
// ChunkBytes of the tensor's type, and are asked for in any order and from
// several goroutines at once.
type Fill func(chunk []byte, offset int64) error

// FromBytes is the Fill of data that is already packed.
func FromBytes(data []byte) Fill {
	return func(chunk []byte, offset int64) error {
		if offset+int64(len(chunk)) > int64(len(data)) {
			return fmt.Errorf("data is %d bytes, want at least %d", len(data), offset+int64(len(chunk)))
		}
		copy(chunk, data[offset:])
		return nil
	}
}

// ChunkBytes returns the size of the chunks that a tensor of this type is filled
// in: whole blocks, close to a megabyte, and the same on every machine, so that
// data generated per chunk does not depend on who generates it.
func ChunkBytes(t Type) int {
	const about = 1 << 20
	const group = 64 // blocks, so that chunks of any type start on 64-byte boundaries
	size := t.Info().Bytes * group
	if size == 0 {
		return about
	}
	return max(about/size, 1) * size
}

// Writer collects metadata and tensors and writes them as GGUF version 3.
// Mistakes (a duplicate key, a bad shape) are kept and reported by the method
// that writes. A Writer can write more than once.
type Writer struct {
	pairs     []pair
	tensors   []pendingTensor
	names     map[string]bool // keys as "k" + key, tensors as "t" + name
	alignment int
	errs      []error
}

type pendingTensor struct {
	Tensor // Offset counts from the start of the data section
	fill   Fill
}

// NewWriter returns a Writer with the default alignment of 32 bytes.
func NewWriter() *Writer {
	return &Writer{names: map[string]bool{}, alignment: defaultAlignment}
}

func (w *Writer) fault(subject string, err error) {
	w.errs = append(w.errs, fmt.Errorf("%s: %w", subject, err))
}

// Put adds a metadata entry; see MakeValue for the types it takes. The key
// "general.alignment", a uint32, also sets the alignment and must come before
// the tensors.
func (w *Writer) Put(key string, x any) {
	v, err := MakeValue(x)
	if err != nil {
		w.fault("key "+Quote(key), err)
		return
	}
	w.PutValue(key, v)
}

// PutValue adds a metadata entry whose value comes from MakeValue or from
// another file, which must then stay open until the Writer has written.
func (w *Writer) PutValue(key string, v Value) {
	subject := "key " + Quote(key)
	switch {
	case key == "" || len(key) > maxKeyLength:
		w.fault(subject, fmt.Errorf("its length is %d bytes, want 1 to %d", len(key), maxKeyLength))
		return
	case w.names["k"+key]:
		w.fault(subject, errors.New("duplicate key"))
		return
	}
	if key == alignmentKey {
		n := uint64(0)
		if v.typ == Uint32Value {
			n = v.bits()
		}
		if n < minAlignment || n&(n-1) != 0 || len(w.tensors) > 0 {
			w.fault(subject, fmt.Errorf("value is %s, want a uint32 power of two of at least %d, before any tensor", v.describe(), minAlignment))
			return
		}
		w.alignment = int(n)
	}
	w.names["k"+key] = true
	w.pairs = append(w.pairs, pair{key: key, value: v})
}

// Add adds a tensor. dims has the row length first, as in the file. A nil fill
// leaves the data zero and takes no memory or disk until it is written to.
func (w *Writer) Add(name string, t Type, dims []int, fill Fill) {
	subject := "tensor " + Quote(name)
	switch {
	case name == "" || len(name) > maxNameLength:
		w.fault(subject, fmt.Errorf("the name's length is %d bytes, want 1 to %d", len(name), maxNameLength))
		return
	case w.names["t"+name]:
		w.fault(subject, errors.New("duplicate tensor"))
		return
	case len(dims) < 1 || len(dims) > maxDims:
		w.fault(subject, fmt.Errorf("the number of dimensions is %d, want 1 to %d", len(dims), maxDims))
		return
	}
	for i, d := range dims {
		if d < 1 {
			w.fault(subject, fmt.Errorf("dimension %d is %d, want at least 1", i, d))
			return
		}
	}
	size, err := tensorBytes(t, dims)
	if err == nil && int64(size) > math.MaxInt64/4-w.dataBytes() {
		err = errors.New("the file would be too large")
	}
	if err != nil {
		w.fault(subject, err)
		return
	}
	w.names["t"+name] = true
	w.tensors = append(w.tensors, pendingTensor{
		Tensor: Tensor{Name: name, Type: t, Dims: append([]int(nil), dims...), Offset: w.dataBytes(), size: size},
		fill:   fill,
	})
}

// dataBytes returns the padded size of the tensors so far.
func (w *Writer) dataBytes() int64 {
	if len(w.tensors) == 0 {
		return 0
	}
	last := &w.tensors[len(w.tensors)-1]
	return w.pad(last.Offset + int64(last.size))
}

func (w *Writer) pad(n int64) int64 {
	a := int64(w.alignment)
	return (n + a - 1) &^ (a - 1)
}

// head returns the file up to the tensor data, padded.
func (w *Writer) head() ([]byte, error) {
	if len(w.errs) > 0 {
		return nil, fmt.Errorf("gguf: cannot write: %w", errors.Join(w.errs...))
	}
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint32(b, version3)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.pairs)))
	for _, p := range w.pairs {
		b = appendString(b, p.key)
		b = binary.LittleEndian.AppendUint32(b, uint32(p.value.typ))
		b = p.value.appendTo(b)
	}
	for _, t := range w.tensors {
		b = appendString(b, t.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.Offset))
	}
	return append(b, make([]byte, w.pad(int64(len(b)))-int64(len(b)))...), nil
}
