package llvm

import (
	"fmt"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
)

// AVX-512 has an instruction that gives the smaller or larger of two numbers with -0 below +0 (vrangeps, Intel's
// manual, volume 2, tables "Comparison Result for Opposite-Signed Zero Cases"), but the number where one of the two is
// none: that takes a comparison and a masked addition more, where by comparisons and choices alone it is six.

// What its immediate says: the sign is that of the result of the comparison.
const (
	rangeSmaller   = 0b0100
	rangeLarger    = 0b0101
	currentRounded = 4 // exceptions as they are
)

// ranged is extreme by that instruction, where there is one for vectors of this type.
func (r *renderer) ranged(op ir.Op, x, y value.Value) (value.Value, bool) {
	vector, ok := x.Type().(*types.VectorType)
	if !ok || !r.isX86() || r.desc.VectorBytes != 64 {
		return nil, false
	}
	size, kind := 4, "ps"
	switch vector.ElemType {
	case types.Float:
	case types.Double:
		size, kind = 8, "pd"
	default:
		return nil, false
	}
	lanes := int(vector.Len)
	each := lanesOfRegister(lanes, size)
	if each == 0 {
		return nil, false
	}
	best := r.inParts(lanes, each, func(first, n int) value.Value {
		return r.rangePart(op, kind, r.slice(x, first, n), r.slice(y, first, n))
	})
	return r.at.NewSelect(r.at.NewFCmp(enum.FPredUNO, x, y), r.at.NewFAdd(x, y), best), true
}

// rangePart is the instruction on one register, all of its lanes.
func (r *renderer) rangePart(op ir.Op, kind string, x, y value.Value) value.Value {
	imm := int64(rangeLarger)
	if op == ir.OpMin {
		imm = rangeSmaller
	}
	return r.onRegister("range."+kind, x, y, intOf(types.I32, imm))
}

// lanesOfRegister is how many lanes of so many bytes one AVX-512 instruction takes of a vector: a register of them, or
// all where they are a smaller one; 0: they fill none.
func lanesOfRegister(lanes, size int) int {
	width := min(lanes*size, 64)
	if width != 16 && width != 32 && lanes*size%64 != 0 {
		return 0
	}
	return width / size
}

// onRegister is an AVX-512 instruction on all lanes of one register, named without its width.
func (r *renderer) onRegister(name string, x value.Value, rest ...value.Value) value.Value {
	t := x.Type().(*types.VectorType)
	bits := int(t.Len) * 32
	if t.ElemType == types.Double {
		bits *= 2
	}
	args := append(append([]value.Value{x}, rest...), &literal{t, "zeroinitializer"}, intOf(types.NewInt(max(t.Len, 8)), -1))
	if bits == 512 {
		args = append(args, intOf(types.I32, currentRounded))
	}
	return r.intrinsic(fmt.Sprintf("llvm.x86.avx512.mask.%s.%d", name, bits), t, args...)
}
