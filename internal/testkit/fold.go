package testkit

import (
	"math"

	"tgc/ir"
)

// fold adds up the elements of a reduce. Float sums are taken in float64; the
// bound allows any order of summation and factors moved in or out of the sum.
// Rounding errors of a sum are taken to grow with the root of its length, as
// they do unless all have one sign.
type fold struct {
	precision
	op    ir.Op
	dtype ir.DType
	total Number
	count int
}

// movedFactors is how many roundings a term may suffer more in one form of a
// sum than in another, because factors moved across it.
const movedFactors = 12

func (p precision) fold(op ir.Op, dtype ir.DType) fold {
	dtype = p.of(dtype)
	return fold{precision: p, op: op, dtype: dtype, total: exact(dtype, ir.ReduceIdentity(op, dtype))}
}

func (f *fold) add(n Number) {
	f.count++
	if !f.dtype.IsFloat() {
		f.total = f.apply(f.op, f.dtype, f.dtype, []Number{f.total, n})
		return
	}
	switch f.op {
	case ir.OpAdd:
		f.total.F += n.F
		f.total.Error += n.Error
		f.total.Magnitude += n.Magnitude
	case ir.OpMul:
		f.total.Error = mulError(f.total, n)
		f.total.F *= n.F
		f.total.Error += 4 * unit(f.dtype) * math.Abs(f.total.F)
		f.total.Magnitude *= n.Magnitude
	default:
		largest := max(f.total.Error, n.Error)
		if f.count == 1 {
			largest = n.Error
		}
		f.total.Scalar = ir.EvalScalar(f.op, f.dtype, f.dtype, []ir.Scalar{f.total.Scalar, n.Scalar})
		f.total.Error = largest
		f.total.Magnitude = math.Abs(f.total.F)
	}
}

func (f *fold) result() Number {
	n := f.total
	if !f.dtype.IsFloat() {
		return n
	}
	if f.count == 0 {
		if f.op == ir.OpMax || f.op == ir.OpMin {
			n.Error = math.Inf(1) // of nothing: an infinity, or the largest finite number in a tuple
		}
		return n
	}
	if f.op == ir.OpAdd {
		n.Error += (movedFactors + 4*math.Sqrt(float64(f.count))) * unit(f.dtype) * n.Magnitude
	}
	if math.IsNaN(n.F) || math.IsNaN(n.Error) || (f.op == ir.OpAdd || f.op == ir.OpMul) && math.IsInf(n.F, 0) {
		n.Error = math.Inf(1)
	}
	n.F = ir.RoundFloat(f.dtype, n.F)
	// No rule takes a finished sum apart again: from here on it is one term.
	n.Magnitude = math.Abs(n.F)
	return n
}
