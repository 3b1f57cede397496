package program

import "tgc/ir"

// Limits of a tile.
const (
	TileColumns = 16
	TileRows    = 16 // at most
	TileWords   = 16 // at most
	tileWord    = 4  // bytes
)

// TileSum is the type of the sums of products of two types; ok is false where there are none.
func TileSum(a, b ir.DType) (sum ir.DType, ok bool) {
	isByte := func(d ir.DType) bool { return d == ir.U8 || d == ir.I8 }
	switch {
	case isByte(a) && isByte(b):
		return ir.I32, true
	case a == ir.BF16 && b == ir.BF16:
		return ir.F32, true
	}
	return sum, false
}

// SpanA and SpanB are the bytes from the first to behind the last of a and b.
func (s *TileShape) SpanA() int64 { return int64(s.Rows-1)*s.StrideA + int64(s.Words)*tileWord }

// SpanB is what SpanA is, of b.
func (s *TileShape) SpanB() int64 {
	return int64(s.Words-1)*s.StrideB + TileColumns*tileWord
}

// SumBytes is the size of the sums.
func (s *TileShape) SumBytes() int64 { return int64(s.Rows) * TileColumns * tileWord }

func checkTileDot(v *verifier, in *Instr) {
	s := &in.Tile
	if s.Rows < 1 || s.Rows > TileRows || s.Words < 1 || s.Words > TileWords {
		v.fail("a tile of %d rows and %d words, want 1..%d and 1..%d", s.Rows, s.Words, TileRows, TileWords)
	}
	if len(in.Args) < 3 || len(in.Args)%2 != 1 {
		v.fail("%d arguments, want sums and pairs", len(in.Args))
		return
	}
	for _, a := range in.Args {
		v.wantPointer(a)
	}
	if v.err != nil {
		return
	}
	sums := in.Args[0].Type.Elem
	for i := 1; i < len(in.Args); i += 2 {
		a, b := in.Args[i].Type.Elem, in.Args[i+1].Type.Elem
		if sum, ok := TileSum(a, b); !ok || sum != sums {
			v.fail("no product of %s and %s with sums of %s", a, b, sums)
			return
		}
		v.access(in.Args[i], Scalar(a), false)
		v.access(in.Args[i+1], Scalar(b), false)
	}
	v.access(in.Args[0], Scalar(sums), true)
}

// TileDot writes the sums of products of pairs of matrices to memory.
func (b *Builder) TileDot(sums *Value, pairs []*Value, shape TileShape) {
	b.Emit(Instr{Op: TileDot, Args: append([]*Value{sums}, pairs...), Tile: shape, Align: 1})
}
