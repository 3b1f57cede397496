package llvm

import (
	"strconv"
	"strings"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Dot products of bytes: by one instruction (VNNI, ARM's), by two that add pairs (AVX2 and
// what came before), or by widened products.

// byteDot are the factors of a Dot4; of two that differ in sign x is the unsigned one.
type byteDot struct {
	x, y             value.Value
	xSigned, ySigned bool
}

// dotFactors are the factors in that order.
func dotFactors(in *program.Instr) (x, y *program.Value) {
	if in.Args[1].Type.Elem == ir.I8 && in.Args[2].Type.Elem == ir.U8 {
		return in.Args[2], in.Args[1]
	}
	return in.Args[1], in.Args[2]
}

// dot4 uses the target's instruction where lanes and signs fit one.
func (r *renderer) dot4(in *program.Instr) value.Value {
	x, y := dotFactors(in)
	d := byteDot{r.value(x), r.value(y), x.Type.Elem == ir.I8, y.Type.Elem == ir.I8}
	if r.pairs != nil {
		return r.dotByPairs(in, d)
	}
	acc := r.value(in.Args[0])
	if lanesOf(acc) == 1 && d.ySigned && !d.xSigned && r.isX86() && r.dotIntrinsic(fewestDotLanes) != "" {
		return r.dotScalar(acc, d)
	}
	if name := r.dotIntrinsic(lanesOf(acc)); name != "" && d.ySigned {
		return r.dotInstruction(name, acc, d)
	}
	return r.dotWidened(acc, d)
}

// dotScalar uses one lane of a register.
func (r *renderer) dotScalar(acc value.Value, d byteDot) value.Value {
	register := lists.Map([]value.Value{acc, d.x, d.y}, func(v value.Value) value.Value {
		return r.widenTo(r.bitcast(v, types.I32), fewestDotLanes)
	})
	return r.lane(r.intrinsic(r.dotIntrinsic(fewestDotLanes), register[0].Type(), register...), 0)
}

// dotInstruction is one instruction. Of two signed sides one is moved up by 128, and what that adds
// is taken off.
func (r *renderer) dotInstruction(name string, acc value.Value, d byteDot) value.Value {
	t := acc.Type()
	side := t // of x86's, a lane of four bytes; of ARM's, the bytes
	if !r.isX86() {
		side = d.x.Type()
	}
	dot := func(acc, x value.Value) value.Value {
		return r.intrinsic(name, t, acc, r.bitcast(x, side), r.bitcast(d.y, side))
	}
	if !d.xSigned {
		return dot(acc, d.x)
	}
	top := intOf(d.x.Type(), -128)
	zero := intOf(t, 0)
	return r.at.NewSub(dot(acc, r.at.NewXor(d.x, top)), dot(zero, top))
}

// dotWidened multiplies in 32 bits.
func (r *renderer) dotWidened(acc value.Value, d byteDot) value.Value {
	n := lanesOf(acc)
	wide := types.NewVector(uint64(4*n), types.I32)
	product := r.at.NewMul(r.extend(d.x, wide, d.xSigned), r.extend(d.y, wide, d.ySigned))
	for k := range 4 {
		mask := lists.Make(n, func(i int) int { return 4*i + k })
		acc = r.at.NewAdd(acc, r.shuffleLanes(product, product, mask))
	}
	return acc
}

func (r *renderer) extend(v value.Value, to types.Type, signed bool) value.Value {
	if signed {
		return r.at.NewSExt(v, to)
	}
	return r.at.NewZExt(v, to)
}

// fewestDotLanes are those of the smallest register that a dot instruction works on.
const fewestDotLanes = 4

// dotIntrinsic is the instruction for so many lanes. vpdpbusd does not saturate its sums: it is Dot4
// exactly. The contraction table names the widest form of x86's; narrower ones have the same name but
// the width. ARM's has one.
func (r *renderer) dotIntrinsic(lanes int) string {
	if r.desc == nil {
		return ""
	}
	for _, c := range r.desc.Contractions {
		if !c.IsByteDot() || 4*lanes > r.desc.VectorBytes {
			continue
		}
		if base, isX86 := strings.CutSuffix(c.Intrinsic, "."+strconv.Itoa(8*r.desc.VectorBytes)); isX86 && lanes >= 4 && lanes&(lanes-1) == 0 {
			return base + "." + strconv.Itoa(32*lanes)
		} else if !isX86 && lanes == 4 {
			return c.Intrinsic
		}
	}
	return ""
}
