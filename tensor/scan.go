package tensor

import (
	"math"

	"tgc/ir"
)

// Running folds along an axis: element i of the result folds elements 0..i.
// f16 and bf16 accumulate in f32, integers in their own dtype. A long axis is
// folded in blocks, whose totals are folded in turn.

// scanBlock is the longest axis that is folded directly, by a reduction for each
// element.
const scanBlock = 64

// Cumsum is the running sum.
func (t *Tensor) Cumsum(axis int) *Tensor {
	return t.running("cumsum", axis, fold{
		identity: number(0), combine: (*Tensor).Add,
		direct: func(x *Tensor, k int) *Tensor { return x.make(ir.OpScan, x.DType(), ir.IntArg(k)) },
	})
}

// Cumprod is the running product.
func (t *Tensor) Cumprod(axis int) *Tensor {
	return t.running("cumprod", axis, fold{number(1), (*Tensor).Mul, masked(number(1), (*Tensor).Prod)})
}

// Cummax is the running maximum (NaN from the first NaN on) and its index (i32),
// the last of equals.
func (t *Tensor) Cummax(axis int) (values, indices *Tensor) {
	return t.runningExtreme("cummax", axis, (*Tensor).runningMax)
}

// Cummin is the running minimum (NaN from the first NaN on) and its index (i32),
// the last of equals.
func (t *Tensor) Cummin(axis int) (values, indices *Tensor) {
	return t.runningExtreme("cummin", axis, func(x *Tensor, k int) *Tensor {
		return x.prefix(k, fold{(*Tensor).most, (*Tensor).Minimum, masked((*Tensor).most, (*Tensor).Min)})
	})
}

func (t *Tensor) runningMax(k int) *Tensor {
	return t.prefix(k, fold{(*Tensor).least, (*Tensor).Maximum, masked((*Tensor).least, (*Tensor).Max)})
}

// runningExtreme finds indices as a running maximum too: of the positions where
// the extreme was met anew.
func (t *Tensor) runningExtreme(op string, axis int, run func(x *Tensor, k int) *Tensor) (values, indices *Tensor) {
	if !t.ok() {
		return t.bad(), t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		bad := t.graph.fail(op, "axis %d of %s", axis, t)
		return bad, bad
	}
	values = run(t, k)
	met := t.Eq(values)
	if t.DType().IsFloat() {
		met = met.Or(t.IsNaN())
	}
	position := t.graph.axisIota(ir.I32, t.shape(), k)
	return values, met.Where(position, t.graph.Scalar(ir.I32, 0)).runningMax(k)
}

// LogCumSumExp is log of the running sum of e**t without overflow.
func (t *Tensor) LogCumSumExp(axis int) *Tensor {
	return t.running("logcumsumexp", axis, fold{(*Tensor).least, (*Tensor).logAddExp, runningLogSum})
}

// runningLogSum takes the running maximum off before the exponentials.
func runningLogSum(x *Tensor, k int) *Tensor {
	largest := x.runningMax(k).Detach()
	base := largest.IsFinite().Where(largest, x.scalar(0))
	past, here := x.Unsqueeze(k+1).Transpose(k, k+1), base.Unsqueeze(k+1) // [.. 1 j ..], [.. i 1 ..]
	terms := x.past(k).Where(past, x.scalar(math.Inf(-1))).Sub(here).Exp()
	return terms.Sum(k + 1).Log().Add(base)
}

// logAddExp is log(e**t + e**u).
func (t *Tensor) logAddExp(u *Tensor) *Tensor {
	largest := t.Maximum(u).Detach()
	base := largest.IsFinite().Where(largest, t.scalar(0))
	return t.Sub(base).Exp().Add(u.Sub(base).Exp()).Log().Add(base)
}

// fold is an associative operation with a direct way to run it along axis k.
type fold struct {
	identity func(x *Tensor) *Tensor // a scalar of x's dtype
	combine  func(x, y *Tensor) *Tensor
	direct   func(x *Tensor, k int) *Tensor
}

// masked folds for each i the elements j <= i by a reduction.
func masked(identity func(x *Tensor) *Tensor, reduce func(x *Tensor, axes ...int) *Tensor) func(x *Tensor, k int) *Tensor {
	return func(x *Tensor, k int) *Tensor {
		past := x.Unsqueeze(k+1).Transpose(k, k+1) // [.. 1 j ..]
		return reduce(x.past(k).Where(past, identity(x)), k+1)
	}
}

// past is true where j <= i, of shape [.. i j ..] at axes k and k+1.
func (t *Tensor) past(k int) *Tensor {
	j := t.graph.axisIota(ir.I32, t.shape(), k).Unsqueeze(k + 1)
	return j.Transpose(k, k+1).Le(j)
}

// running checks the axis and folds along it, f16 and bf16 in f32.
func (t *Tensor) running(op string, axis int, f fold) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail(op, "axis %d of %s", axis, t)
	}
	if t.DType().IsFloat() {
		return t.widely(func(x *Tensor) *Tensor { return x.prefix(k, f) })
	}
	return t.prefix(k, f)
}

// prefix folds along axis k: in blocks when it is long.
func (t *Tensor) prefix(k int, f fold) *Tensor {
	n, ok := t.shape()[k].Int()
	if !ok || n <= scanBlock {
		return f.direct(t, k)
	}
	blocks := (int(n) + scanBlock - 1) / scanBlock
	x := t.Pad(k, 0, blocks*scanBlock-int(n))
	position := t.graph.axisIota(ir.I32, x.shape(), k)
	x = position.Lt(t.graph.Scalar(ir.I32, float64(n))).Where(x, f.identity(x))
	x = x.Unflatten(k, blocks, scanBlock)
	inside := f.direct(x, k+1)
	totals := inside.SliceInts(k+1, scanBlock-1, 1).Squeeze(k + 1) // [.. blocks ..]
	before := f.exclusive(totals.prefix(k, f), k).Unsqueeze(k + 1)
	return f.combine(before, inside).Flatten(k, k+1).SliceInts(k, 0, int(n))
}

// exclusive moves a running fold on by one: the identity comes first.
func (f fold) exclusive(x *Tensor, k int) *Tensor {
	n := x.Extent(k)
	moved := x.SliceInts(k, 0, n-1).Pad(k, 1, 0)
	first := x.graph.axisIota(ir.I32, x.shape(), k).Eq(x.graph.Scalar(ir.I32, 0))
	return first.Where(f.identity(x), moved)
}

// number is a constant identity.
func number(v float64) func(x *Tensor) *Tensor {
	return func(x *Tensor) *Tensor { return x.scalar(v) }
}

// least is the identity of maxima: the least value of t's dtype.
func (t *Tensor) least() *Tensor {
	if t.DType().IsFloat() {
		return t.scalar(math.Inf(-1))
	}
	lo, _ := t.DType().IntRange()
	return t.graph.wrap(t.graph.arena.ConstInt(t.DType(), lo))
}

// most is the identity of minima: the largest value of t's dtype.
func (t *Tensor) most() *Tensor {
	if t.DType().IsFloat() {
		return t.scalar(math.Inf(1))
	}
	_, hi := t.DType().IntRange()
	if t.DType() == ir.U64 {
		hi = -1 // its bits
	}
	return t.graph.wrap(t.graph.arena.ConstInt(t.DType(), hi))
}
