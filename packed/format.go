package packed

import (
	"fmt"
	"slices"

	"tgc/ir"
)

// Format is one row: how a GGUF type stores blocks of elements.
type Format struct {
	Name       string   // as GGUF spells it, "Q6_K"
	GGUF       uint32   // number of the type in a file
	BlockElems int      // elements per block; 1 for a plain type
	BlockBytes int      // bytes per block
	Plain      ir.DType // storage dtype of a plain type; Void for a packed one
	Fields     []Field  // of a packed type, in the order of their offsets

	decode func(*decoder) *ir.UOp

	// Random is how random bytes become values of a known spread, as made-up models
	// need; nil for types that no such model uses.
	Random *Random
	// repair turns random bytes, of which the f16 scales are set, into valid data; nil
	// where they are valid as they are.
	repair func(block []byte, r scaleSource)

	// encode packs the finite values of one block and sets kept to what the
	// block then holds; nil for types that are only read.
	encode func(block []byte, values, kept []float32)
	// most is the largest size of a value that encode takes; 0: as largest says.
	most float32
}

// Field is an array inside every block.
type Field struct {
	Name   string
	DType  ir.DType // storage, little endian
	Count  int      // elements per block
	Offset int      // bytes from the start of the block to element 0

	// A field that alternates with another one comes in runs of Run elements
	// which start Stride bytes apart. Run 0 means one run of Count elements.
	Run, Stride int

	// Of the pieces of a field in a block, those that a thread reads together with another one
	// lie apart from it in a plane.
	Apart Apart
}

// pieceBytes is the widest load of one GPU thread.
const pieceBytes = 16

// Apart is the digit n/Unit%Count of a piece's number n in its block. In a plane pieces of Blocks
// blocks that have the same digit lie side by side, 64 bytes or more of a line of memory. A thread takes pieces that differ in it, since they
// have a scale or the bytes of another field in common, one with each load; lanes side by side take the
// others, so that the loads of a warp read whole sectors. The zero value: a thread takes one piece of a block.
type Apart struct{ Unit, Count, Blocks int }

// tile is how many blocks of a row have their pieces side by side: all, where rows are no multiple.
func (p Apart) tile(blocks int64) int64 {
	if n := int64(p.Blocks); blocks%n == 0 {
		return n
	}
	return blocks
}

// run returns the elements per run and the bytes between starts of runs.
func (f *Field) run() (elements, stride int) {
	if f.Run == 0 {
		return f.Count, f.Count * f.DType.Size()
	}
	return f.Run, f.Stride
}

// Bytes is the size of the field in one block.
func (f *Field) Bytes() int { return f.Count * f.DType.Size() }

// formats is the table, in the order of GGUF numbers.
var formats = func() []*Format {
	var rows []*Format
	for _, family := range [][]Format{plainFormats, smallFormats, kFormats, gridFormats, codebookFormats, ternaryFormats} {
		for i := range family {
			rows = append(rows, &family[i])
		}
	}
	slices.SortFunc(rows, func(a, b *Format) int { return int(a.GGUF) - int(b.GGUF) })
	return rows
}()

// All lists every row in the order of GGUF numbers.
func All() []*Format { return slices.Clone(formats) }

// Lookup finds a row by its name, those of other codes too.
func Lookup(name string) (*Format, bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	for i := range codes {
		if codes[i].to.Name == name {
			return codes[i].to, true
		}
	}
	return nil, false
}

// ByGGUF finds a row by the type's number in a file.
func ByGGUF(id uint32) (*Format, bool) {
	for _, f := range formats {
		if f.GGUF == id {
			return f, true
		}
	}
	return nil, false
}

// IsPlain reports a type whose elements are stored one by one.
func (f *Format) IsPlain() bool { return f.Plain != ir.Void }

// Field finds a field by name.
func (f *Format) Field(name string) (*Field, bool) {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i], true
		}
	}
	return nil, false
}

// RowBytes is the size in bytes of a row of n elements; n must be a multiple of
// BlockElems.
func (f *Format) RowBytes(n int64) (int64, error) {
	if n < 0 || n%int64(f.BlockElems) != 0 {
		return 0, fmt.Errorf("packed: row of %d elements, want a multiple of %d (%s block)", n, f.BlockElems, f.Name)
	}
	return n / int64(f.BlockElems) * int64(f.BlockBytes), nil
}

// Decode returns the f32 value of element k of a row, both Idx, as an
// expression over FIELDs of buf. For a plain type buf is a PARAM [rows, K] of
// the storage dtype and the value is LOAD(buf, row, k), cast.
func (f *Format) Decode(a *ir.Arena, buf, row, k *ir.UOp) *ir.UOp {
	if f.IsPlain() {
		return a.Cast(a.Make(ir.OpLoad, f.Plain, nil, buf, row, k), ir.F32)
	}
	d := decoder{a: a, format: f, buf: buf, row: row, k: k}
	d.block = a.Div(k, a.Index(int64(f.BlockElems)))
	return f.decode(&d)
}

// Address returns the byte offset (Idx) of element j of a field in GGUF's own
// order, for a tensor with blocksPerRow blocks in a row.
func (f *Format) Address(a *ir.Arena, field string, row, block, j, blocksPerRow *ir.UOp) *ir.UOp {
	fd, ok := f.Field(field)
	if !ok {
		panic(fmt.Sprintf("packed: %s has no field %q", f.Name, field))
	}
	flat := a.Add(a.Mul(row, blocksPerRow), block)
	return a.Add(a.Mul(flat, a.Index(int64(f.BlockBytes))), a.Add(fd.within(a, j), a.Index(int64(fd.Offset))))
}

// within is the byte offset of element j from element 0 of its field.
func (f *Field) within(a *ir.Arena, j *ir.UOp) *ir.UOp {
	run, stride := f.run()
	size := a.Index(int64(f.DType.Size()))
	if run == f.Count {
		return a.Mul(j, size)
	}
	n := a.Index(int64(run))
	return a.Add(a.Mul(a.Div(j, n), a.Index(int64(stride))), a.Mul(a.Mod(j, n), size))
}
