package llvm

import (
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// AVX-512 multiplies by 2^n, n a float, with one rounding (vscalefps, Intel's manual, volume 2). What EXP2 is expanded
// to (ir/program/opt) does so by two factors, 2^(n/2) and 2^(n-n/2), of which the first is exact, and which are seven
// instructions of integers: the bits are the same.

// scaled is a product by those two factors, done by that instruction; nil for anything else.
func (r *renderer) scaled(in *program.Instr) value.Value {
	t := in.Result.Type
	kind := map[ir.DType]string{ir.F32: "ps", ir.F64: "pd"}[t.Elem]
	each := lanesOfRegister(t.Lanes, t.Elem.Size())
	if in.Ir != ir.OpMul || !r.isX86() || r.desc.VectorBytes != 64 || kind == "" || t.Lanes == 1 || each == 0 {
		return nil
	}
	p, n := r.byTwoFactors(in)
	if p == nil {
		return nil
	}
	x, power := r.value(p), value.Value(r.at.NewSIToFP(r.value(n), valueType(t)))
	return r.inParts(t.Lanes, each, func(first, count int) value.Value {
		return r.onRegister("scalef."+kind, r.slice(x, first, count), r.slice(power, first, count))
	})
}

// byTwoFactors matches (p * 2^half) * 2^(n-half), half = n >> 1.
func (r *renderer) byTwoFactors(in *program.Instr) (p, n *program.Value) {
	inner := r.madeAs(in.Args[0], ir.OpMul)
	if inner == nil {
		return nil, nil
	}
	half, rest := r.exponentOf(inner.Args[1]), r.exponentOf(in.Args[1])
	shift, difference := r.madeAs(half, ir.OpShr), r.madeAs(rest, ir.OpSub)
	if shift == nil || difference == nil || difference.Args[1] != half || difference.Args[0] != shift.Args[0] {
		return nil, nil
	}
	if by, ok := r.constInt(shift.Args[1]); !ok || by != 1 {
		return nil, nil
	}
	return inner.Args[0], shift.Args[0]
}

// exponentOf is k of a float that is made as 2^k: k plus the bias where the exponent stands. nil: it is not.
func (r *renderer) exponentOf(v *program.Value) *program.Value {
	bias, mantissa := int64(127), int64(23)
	if v.Type.Elem == ir.F64 {
		bias, mantissa = 1023, 52
	}
	cast := r.madeAs(v, ir.OpBitcast)
	if cast == nil {
		return nil
	}
	shift := r.madeAs(cast.Args[0], ir.OpShl)
	if shift == nil {
		return nil
	}
	sum := r.madeAs(shift.Args[0], ir.OpAdd)
	if sum == nil {
		return nil
	}
	by, shifted := r.constInt(shift.Args[1])
	k, biased := r.constInt(sum.Args[1])
	if !shifted || !biased || by != mantissa || k != bias {
		return nil
	}
	return sum.Args[0]
}

// madeAs is the instruction that makes a value, if it is this arithmetic; nil else, and of no value.
func (r *renderer) madeAs(v *program.Value, op ir.Op) *program.Instr {
	if v == nil {
		return nil
	}
	if in := r.made[v.ID]; in != nil && in.Op == program.Alu && in.Ir == op {
		return in
	}
	return nil
}
