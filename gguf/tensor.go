package gguf

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"tgc/internal/lists"
)

// Tensor is a named array of packed blocks.
type Tensor struct {
	Name string
	Type Type
	// Dims is the shape as in the file: the row length, whose elements lie side
	// by side, comes first. Every dimension is at least 1.
	Dims []int
	// Offset is where the data starts, in bytes from the start of its file.
	Offset int64
	// Shard is the number of the file that holds the data; 0 unless split.
	Shard int

	size int
	data []byte
	file string // that holds the data, for errors
}

// Shape returns the dimensions slowest first, without those of extent 1 that
// some writers add in front: a matrix is [rows, row length], a vector [length].
func (t *Tensor) Shape() []int {
	n := len(t.Dims)
	for n > 1 && t.Dims[n-1] == 1 {
		n--
	}
	shape := slices.Clone(t.Dims[:n])
	slices.Reverse(shape)
	return shape
}

// Elements returns the number of values.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Dims {
		n *= d // parse has checked the product
	}
	return n
}

// RowLength returns the elements of a row.
func (t *Tensor) RowLength() int { return t.Dims[0] }

// Rows returns the number of rows, over all slower dimensions.
func (t *Tensor) Rows() int { return t.Elements() / t.Dims[0] }

// Bytes returns the size of the data.
func (t *Tensor) Bytes() int { return t.size }

// RowBytes returns the size of a row.
func (t *Tensor) RowBytes() int { return t.size / t.Rows() }

// Data returns the packed data. It aliases the mapped file: it must not be
// written to, nor read after the File is closed.
func (t *Tensor) Data() []byte { return t.data }

// String returns `"name" Q6_K [8192, 2048]`, with the name safe to print.
func (t *Tensor) String() string {
	shape := strings.Join(strings.Fields(fmt.Sprint(t.Shape())), ", ")
	return fmt.Sprintf("%s %s %s", Quote(t.Name), t.Type, shape)
}

// tensorBytes returns the size of a tensor, in checked arithmetic: the number of
// elements and of bytes must both be representable.
func tensorBytes(t Type, dims []int) (int, error) {
	row, err := t.RowBytes(dims[0])
	if err != nil {
		return 0, err
	}
	elements, size := uint64(dims[0]), uint64(row)
	for _, d := range dims[1:] {
		var over1, over2 uint64
		over1, elements = bits.Mul64(elements, uint64(d))
		over2, size = bits.Mul64(size, uint64(d))
		if over1|over2 != 0 || elements > maxInt || size > maxInt {
			return 0, fmt.Errorf("shape %v overflows: its size in bytes is not representable", dims)
		}
	}
	return int(size), nil
}

// layout places the tensors in the file: every one inside it, no two on the
// same bytes.
func (p *parser) layout(data []byte) error {
	f := p.f
	start := (p.pos + f.alignment - 1) &^ (f.alignment - 1)
	f.dataOffset = int64(start)
	for i := range f.tensors {
		t := &f.tensors[i]
		remain := len(data) - start - int(t.Offset) // both are at most len(data) + 2^32
		t.Offset += int64(start)
		t.file = f.name
		if remain < t.size {
			return p.errorAt("tensor "+Quote(t.Name), int(t.Offset), fmt.Errorf(
				"data is %d bytes (%s %v), past the end of the file: %d bytes remain (truncated?)",
				t.size, t.Type, t.Dims, max(remain, 0)))
		}
		t.data = data[t.Offset : t.Offset+int64(t.size) : t.Offset+int64(t.size)]
	}
	return p.overlaps()
}

// overlaps compares neighbours in the order of offsets.
func (p *parser) overlaps() error {
	order := lists.Make(len(p.f.tensors), func(i int) *Tensor { return &p.f.tensors[i] })
	slices.SortFunc(order, func(a, b *Tensor) int {
		if c := int(a.Offset - b.Offset); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if end := a.Offset + int64(a.size); end > b.Offset {
			return p.errorAt("tensor "+Quote(b.Name), int(b.Offset), fmt.Errorf(
				"data overlaps tensor %s, which ends at 0x%x; want an offset from there on", Quote(a.Name), end))
		}
	}
	return nil
}
