package llvm

import (
	"slices"
	"strconv"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Shifts of bytes by amounts that differ from lane to lane: the nibbles of a block side
// by side. x86 has them for words of 32 bits only; LLVM widens bytes to 16 bits, shifts
// and packs, seven instructions. Where the four bytes of each word have one amount a
// shift of words and a mask do the same.

// rememberLanes notes that a shuffle of constants is one.
func (r *renderer) rememberLanes(in *program.Instr) {
	x, okX := r.constLanes(in.Args[0])
	y, okY := r.constLanes(in.Args[1])
	if !okX || !okY {
		return
	}
	lanes := make([]int64, len(in.Mask))
	for i, m := range in.Mask {
		if m < len(x) {
			lanes[i] = x[m]
		} else {
			lanes[i] = y[m-len(x)]
		}
	}
	r.consts[in.Result.ID] = &program.Instr{Op: program.ConstLanes, Result: in.Result, Ints: lanes}
}

// constLanes are the lanes of an integer constant.
func (r *renderer) constLanes(v *program.Value) ([]int64, bool) {
	c := r.consts[v.ID]
	switch {
	case c == nil || v.Type.Elem.IsFloat() || v.Type.Ptr:
		return nil, false
	case c.Op == program.ConstLanes:
		return c.Ints, true
	case c.Op == program.Const:
		lanes := slices.Repeat([]int64{c.Int}, max(v.Type.Lanes, 1))
		return lanes, true
	}
	return nil, false
}

// shiftWords shifts bytes as words; nil where that is not what the shift is.
func (r *renderer) shiftWords(in *program.Instr, elem ir.DType, x value.Value) value.Value {
	counts, known := r.constLanes(in.Args[1])
	if !known || elem.Bits() != 8 || elem.IsSigned() || len(counts)%4 != 0 || !r.isX86() || r.desc.VectorBytes < 32 {
		return nil
	}
	for i, n := range counts {
		if n < 0 || n > 7 || n != counts[i/4*4] {
			return nil
		}
	}
	words := types.NewVector(uint64(len(counts)/4), types.I32)
	amounts := vectorLiteral(words, func(i int) string { return strconv.FormatInt(counts[4*i], 10) })
	kept := func(i int) int64 { return 0xff >> counts[i] }
	shift := func() value.Value { return r.at.NewLShr(r.bitcast(x, words), amounts) }
	if in.Ir == ir.OpShl {
		kept = func(i int) int64 { return 0xff << counts[i] & 0xff }
		shift = func() value.Value { return r.at.NewShl(r.bitcast(x, words), amounts) }
	}
	mask := vectorLiteral(x.Type().(*types.VectorType), func(i int) string { return strconv.FormatInt(int64(int8(kept(i))), 10) })
	return r.at.NewAnd(r.bitcast(shift(), x.Type()), mask)
}
