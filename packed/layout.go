package packed

import "tgc/ir"

// Layout says where the fields of a packed tensor lie in memory. A layout is a
// bijection from (field, row, block, element) to bytes; every one used for a
// tensor is chosen before a step is scheduled and shared by all its readers.
type Layout interface {
	Name() string
	// Place fixes the layout for a tensor of rows x blocksPerRow blocks.
	Place(f *Format, rows, blocksPerRow int64) Placement
}

// Placement is a layout for one tensor: a place per field, in the order of the
// format's fields, and the size of the whole in bytes.
type Placement struct {
	Fields []FieldPlace
	Bytes  int64
}

// FieldPlace gives the byte address of an element of a field as
//
//	Base + row*RowStride + block*BlockStride + j/Run*RunStride + j%Run*Size
//
// where rows are in tiles, row/Tile*TileStride + row%Tile*RowStride takes the place of
// row*RowStride, likewise of blocks, and where runs do not follow each other at one distance, the digits of j/Run
// with their strides take the place of j/Run*RunStride.
type FieldPlace struct {
	Base, RowStride, BlockStride, RunStride, Run, Size int64
	Tile, TileStride                                   int64   // 0: rows are not in tiles
	BlockTile, BlockTileStride                         int64   // 0: blocks are not in tiles
	Digits                                             []Digit // of j/Run, from the lowest; none: one of RunStride
}

// Digit is n/Unit%Count of a number n, a step of which moves an address by Stride bytes.
type Digit struct{ Unit, Count, Stride int64 }

// digitsOf writes numbers, of which the first is 0, as sums over digits of their positions in the list; false where
// they are no such sums.
func digitsOf(numbers []int64) (list []Digit, ok bool) {
	n := int64(len(numbers))
	for unit := int64(1); unit < n; {
		d := Digit{Unit: unit, Count: 1, Stride: numbers[unit]}
		for unit*d.Count < n && numbers[unit*d.Count] == d.Count*d.Stride {
			d.Count++
		}
		list = append(list, d)
		unit *= d.Count
	}
	for i, number := range numbers {
		if (FieldPlace{Digits: list}).runAt(int64(i)) != number {
			return nil, false
		}
	}
	return list, true
}

// runAt is where run n of a block lies, from the first one.
func (p FieldPlace) runAt(n int64) (at int64) {
	if len(p.Digits) == 0 {
		return n * p.RunStride
	}
	for _, d := range p.Digits {
		at += n / d.Unit % d.Count * d.Stride
	}
	return at
}

// At is the address for numbers.
func (p FieldPlace) At(row, block, j int64) int64 {
	at := func(n, tile, tileStride, stride int64) int64 {
		if tile > 0 {
			return n/tile*tileStride + n%tile*stride
		}
		return n * stride
	}
	return p.Base + at(row, p.Tile, p.TileStride, p.RowStride) + at(block, p.BlockTile, p.BlockTileStride, p.BlockStride) + p.runAt(j/p.Run) + j%p.Run*p.Size
}

// Address is the address as an Idx expression.
func (p FieldPlace) Address(a *ir.Arena, row, block, j *ir.UOp) *ir.UOp {
	times := func(x *ir.UOp, n int64) *ir.UOp { return a.Mul(x, a.Index(n)) }
	within := times(j, p.Size)
	switch {
	case len(p.Digits) > 0:
		within = times(a.Mod(j, a.Index(p.Run)), p.Size)
		for _, d := range p.Digits {
			within = a.Add(within, times(a.Mod(a.Div(j, a.Index(p.Run*d.Unit)), a.Index(d.Count)), d.Stride))
		}
	case p.RunStride != p.Run*p.Size:
		within = a.Add(times(a.Div(j, a.Index(p.Run)), p.RunStride), times(a.Mod(j, a.Index(p.Run)), p.Size))
	}
	at := func(n *ir.UOp, tile, tileStride, stride int64) *ir.UOp {
		if tile > 0 {
			return a.Add(times(a.Div(n, a.Index(tile)), tileStride), times(a.Mod(n, a.Index(tile)), stride))
		}
		return times(n, stride)
	}
	sum := a.Add(at(row, p.Tile, p.TileStride, p.RowStride), at(block, p.BlockTile, p.BlockTileStride, p.BlockStride))
	return a.Add(a.Add(sum, within), a.Index(p.Base))
}

// Align is the largest power of two up to limit that divides every address at
// which a run of count elements starts, when count divides Run.
func (p FieldPlace) Align(count, limit int64) int64 {
	align := limit
	steps := []int64{p.Base, p.TileStride, p.RowStride, p.BlockTileStride, p.BlockStride, p.RunStride, count * p.Size}
	for _, d := range p.Digits {
		steps = append(steps, d.Stride)
	}
	for _, step := range steps {
		for step%align != 0 {
			align /= 2
		}
	}
	return align
}

// Identity is GGUF's own order: rows of blocks, fields inside each block.
var Identity Layout = identity{}

type identity struct{}

func (identity) Name() string { return "identity" }

func (identity) Place(f *Format, rows, blocksPerRow int64) Placement {
	p := Placement{Bytes: rows * blocksPerRow * int64(f.BlockBytes)}
	for i := range f.Fields {
		fd := &f.Fields[i]
		run, stride := fd.run()
		p.Fields = append(p.Fields, FieldPlace{
			Base:        int64(fd.Offset),
			RowStride:   blocksPerRow * int64(f.BlockBytes),
			BlockStride: int64(f.BlockBytes),
			RunStride:   int64(stride),
			Run:         int64(run),
			Size:        int64(fd.DType.Size()),
		})
	}
	return p
}

// Planes stores each field of the whole tensor together: plane after plane, in
// each row after row, with every row at a multiple of 16 bytes, so that a row
// can be read in 16-byte words whatever the block's size. In a row block follows
// block, or, of a field with pieces apart, those of one kind of a few blocks before those of the next.
var Planes Layout = planes{}

type planes struct{}

// planeAlign is the alignment of rows in a plane: a piece, and an SSE register.
const planeAlign = pieceBytes

func (planes) Name() string { return "planes" }

func (planes) Place(f *Format, rows, blocksPerRow int64) Placement {
	var p Placement
	for i := range f.Fields {
		fd := &f.Fields[i]
		bytes := int64(fd.Bytes())
		row := (blocksPerRow*bytes + planeAlign - 1) / planeAlign * planeAlign
		place := FieldPlace{
			Base:        p.Bytes,
			RowStride:   row,
			BlockStride: bytes,
			RunStride:   bytes,
			Run:         int64(fd.Count),
			Size:        int64(fd.DType.Size()),
		}
		if fd.Apart.Count > 1 {
			place.setApart(fd.Apart, bytes, blocksPerRow)
		}
		p.Fields = append(p.Fields, place)
		p.Bytes += rows * row
	}
	return p
}

// setApart places the pieces of a field of so many bytes a block.
func (p *FieldPlace) setApart(apart Apart, bytes, blocks int64) {
	unit, count, tile := int64(apart.Unit), int64(apart.Count), apart.tile(blocks)
	p.Run, p.RunStride = pieceBytes/p.Size, pieceBytes
	if tile > 1 {
		p.BlockStride = bytes / count
	}
	if tile > 1 && tile < blocks {
		p.BlockTile, p.BlockTileStride = tile, tile*bytes
	}
	if unit > 1 {
		p.Digits = append(p.Digits, Digit{Unit: 1, Count: unit, Stride: pieceBytes})
	}
	p.Digits = append(p.Digits, Digit{Unit: unit, Count: count, Stride: tile * bytes / count})
	if above := bytes / pieceBytes / (unit * count); above > 1 {
		p.Digits = append(p.Digits, Digit{Unit: unit * count, Count: above, Stride: unit * pieceBytes})
	}
}

// Convert copies a tensor of rows x blocksPerRow blocks from one layout to
// another; bytes that the new layout only pads with are zero.
func Convert(f *Format, rows, blocksPerRow int64, from, to Layout, data []byte) []byte {
	src, dst := from.Place(f, rows, blocksPerRow), to.Place(f, rows, blocksPerRow)
	out := make([]byte, dst.Bytes)
	for i := range f.Fields {
		s, d := src.Fields[i], dst.Fields[i]
		for row := range rows {
			for block := range blocksPerRow {
				for j := int64(0); j < int64(f.Fields[i].Count); j += min(s.Run, d.Run) {
					at, n := s.At(row, block, j), min(s.Run, d.Run)*s.Size
					copy(out[d.At(row, block, j):][:n], data[at:at+n])
				}
			}
		}
	}
	return out
}
