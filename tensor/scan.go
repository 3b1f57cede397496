package tensor

import (
	"math"

	"tgc/ir"
	"tgc/target"
)

// Running folds along an axis: element i of the result folds elements 0..i.
// f16 and bf16 accumulate in f32, integers in their own dtype. A long axis is
// folded in blocks, whose totals are folded in turn.

// scanBlock is the longest axis that is folded directly, by a reduction for each
// element.
const scanBlock = 64

// scanLanes is the block of a row of a CPU: its results are the lanes of a register or two, and each of its elements
// is added to all lanes from its own on. One Zen 4 core, 1000 rows of 1000: sums 1045 us in blocks of
// 64, 751 so, maxima 3138 (2150 with instructions for these) and 1138.
const scanLanes = 16

// Rows that a block of a GPU keeps are folded there, some steps at once. A longer one is folded in
// runs, each the work of a thread, which reads it twice: of 64 a block makes the folds, as it does
// those of up to 1,024 such blocks.
const (
	scanSteps  = 3
	scanRun    = 16
	scanRuns   = 64
	scanBlocks = 1024
)

// Cumsum is the running sum.
func (t *Tensor) Cumsum(axis int) *Tensor {
	return t.running("cumsum", axis, fold{
		identity: number(0), combine: (*Tensor).Add, reduce: (*Tensor).Sum,
		direct: func(x *Tensor, k int) *Tensor { return x.make(ir.OpScan, x.DType(), ir.IntArg(k)) },
	})
}

// Cumprod is the running product. The work of its derivative is of order n too; zeros are no
// special case there: element i gets the product before it times a sum y[i] = g[i] + x[i+1]*y[i+1].
func (t *Tensor) Cumprod(axis int) *Tensor {
	products := folded(number(1), (*Tensor).Mul, (*Tensor).Prod)
	return t.runningWith("cumprod", axis, func(x *Tensor, k int) *Tensor {
		y := x.prefix(k, products)
		if _, known := x.Dim(k).Int(); !known || !x.DType().IsFloat() {
			return y
		}
		return y.derived([]*Tensor{x}, func(y, g *Tensor, in []*Tensor) []*Tensor {
			return []*Tensor{products.exclusive(y, k).Mul(g.recurrence(products.movedBack(in[0], k, 1), k, true))}
		})
	})
}

// Cummax is the running maximum (NaN from the first NaN on) and its index (i32),
// the last of equals, to which the derivative goes.
func (t *Tensor) Cummax(axis int) (values, indices *Tensor) {
	return t.runningExtreme("cummax", axis, (*Tensor).runningMax)
}

// Cummin is the running minimum (NaN from the first NaN on) and its index (i32),
// the last of equals, to which the derivative goes.
func (t *Tensor) Cummin(axis int) (values, indices *Tensor) {
	return t.runningExtreme("cummin", axis, func(x *Tensor, k int) *Tensor {
		return x.prefix(k, folded((*Tensor).most, (*Tensor).Minimum, (*Tensor).Min))
	})
}

func (t *Tensor) runningMax(k int) *Tensor {
	return t.prefix(k, folded((*Tensor).least, (*Tensor).Maximum, (*Tensor).Max))
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
	indices = met.Where(position, t.graph.Scalar(ir.I32, 0)).runningMax(k)
	if _, known := t.Dim(k).Int(); !known || !t.DType().IsFloat() {
		return values, indices
	}
	return values.derived([]*Tensor{t}, func(_, g *Tensor, _ []*Tensor) []*Tensor {
		sums := g.widely(func(g *Tensor) *Tensor { return g.sumsOfRuns(indices, k, true) })
		return []*Tensor{indices.Eq(position).Where(sums, g.scalar(0))}
	}), indices
}

// LogCumSumExp is log of the running sum of e**t without overflow: a running maximum, and the sum of exponentials
// below it as a linear recurrence whose factors are at most 1. The work is of order n, two exponentials and a
// logarithm an element, that of the derivative too. Elements of -Inf have the derivative 0.
func (t *Tensor) LogCumSumExp(axis int) *Tensor {
	return t.runningWith("logcumsumexp", axis, func(x *Tensor, k int) *Tensor {
		if _, known := x.Dim(k).Int(); !known {
			return x.prefix(k, fold{direct: runningLogSum})
		}
		largest := x.runningMax(k).Detach() // the result is the same whatever is taken off
		before := fold{identity: (*Tensor).least}.moved(largest, k, 1)
		base := largest.IsFinite().Where(largest, x.scalar(0))
		sums := x.Sub(base).Exp().recurrence(before.below(largest).Exp(), k, false)
		none := sums.Eq(sums.scalar(0))
		return none.Where(x.least(), none.Where(x.scalar(1), sums).Log().Add(base))
	})
}

// below is t - u, at most 0, which is 0 for equal infinities.
func (t *Tensor) below(u *Tensor) *Tensor {
	infinite := t.Eq(u).And(t.IsFinite().Not())
	return infinite.Where(t.scalar(0), t.Sub(u))
}

// runningLogSum takes the running maximum off before the exponentials, n*n of them.
func runningLogSum(x *Tensor, k int) *Tensor {
	largest := x.runningMax(k).Detach()
	base := largest.IsFinite().Where(largest, x.scalar(0))
	past, here := x.Unsqueeze(k+1).Transpose(k, k+1), base.Unsqueeze(k+1) // [.. 1 j ..], [.. i 1 ..]
	terms := x.past(k).Where(past, x.scalar(math.Inf(-1))).Sub(here).Exp()
	return terms.Sum(k + 1).Log().Add(base)
}

// fold is an associative operation with a direct way to run it along axis k.
type fold struct {
	identity func(x *Tensor) *Tensor // a scalar of x's dtype
	combine  func(x, y *Tensor) *Tensor
	reduce   func(x *Tensor, axes ...int) *Tensor // all of an axis; nil: there is no such operation
	direct   func(x *Tensor, k int) *Tensor
}

// folded is a fold that runs by reductions.
func folded(identity func(x *Tensor) *Tensor, combine func(x, y *Tensor) *Tensor, reduce func(x *Tensor, axes ...int) *Tensor) fold {
	f := fold{identity: identity, combine: combine, reduce: reduce}
	f.direct = func(x *Tensor, k int) *Tensor { return f.masked(x, k, x.past(k)) }
	return f
}

// masked folds for each i the elements j of which a mask of shape [.. i j ..] holds.
func (f fold) masked(x *Tensor, k int, mask *Tensor) *Tensor {
	terms := x.Unsqueeze(k+1).Transpose(k, k+1) // [.. 1 j ..]
	return f.reduce(mask.Where(terms, f.identity(x)), k+1)
}

// past is true where j <= i, of shape [.. i j ..] at axes k and k+1.
func (t *Tensor) past(k int) *Tensor {
	j := t.graph.axisIota(ir.I32, t.shape(), k).Unsqueeze(k + 1)
	return j.Transpose(k, k+1).Le(j)
}

// running folds along an axis.
func (t *Tensor) running(op string, axis int, f fold) *Tensor {
	return t.runningWith(op, axis, func(x *Tensor, k int) *Tensor { return x.prefix(k, f) })
}

// runningWith checks the axis and runs along it, f16 and bf16 in f32.
func (t *Tensor) runningWith(op string, axis int, run func(x *Tensor, k int) *Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail(op, "axis %d of %s", axis, t)
	}
	if t.DType().IsFloat() {
		return t.widely(func(x *Tensor) *Tensor { return run(x, k) })
	}
	return run(t, k)
}

// prefix folds along axis k: in blocks when it is long.
func (t *Tensor) prefix(k int, f fold) *Tensor {
	n, ok := t.shape()[k].Int()
	y := t.prefixIn(k, f, scanBlock)
	if !ok || n <= scanBlock || f.reduce == nil || k != t.Rank()-1 {
		return y
	}
	return y.OnTarget(func(desc *target.Desc) *Tensor {
		switch {
		case desc.Kind != target.GPU:
			return t.prefixIn(k, f, scanLanes)
		case int(n) <= mostRowWords:
			return t.rowSteps(f)
		}
		return t.rowPrefix(f)
	})
}

// prefixIn folds along axis k in blocks of a size, unless it is no longer than one.
func (t *Tensor) prefixIn(k int, f fold, block int) *Tensor {
	n, ok := t.shape()[k].Int()
	if !ok || n <= int64(block) {
		return f.direct(t, k)
	}
	inside := f.direct(t.inBlocks(k, f, block), k+1)
	if block == scanLanes && inside.node.Op != ir.OpScan {
		inside = inside.Contiguous() // lanes of a block share their terms, those of a row of some do not
	}
	totals := inside.SliceInts(k+1, block-1, 1).Squeeze(k + 1) // [.. blocks ..]
	before := f.exclusive(totals.prefixIn(k, f, block), k)
	if block == scanLanes { // where it is one element further than the last block's, lanes of two blocks are no gather
		before = before.Contiguous()
	}
	return f.combine(before.Unsqueeze(k+1), inside).Flatten(k, k+1).SliceInts(k, 0, int(n))
}

// rowSteps folds along the last axis in rows that a block keeps: each step adds what lies 1, 2, 4 ..
// before an element (Hillis and Steele 1986), some steps at once.
func (t *Tensor) rowSteps(f fold) *Tensor {
	x := t.stageRow()
	for k, by := 0, 1; by < t.Extent(-1); k, by = k+1, 2*by {
		if x = f.combine(f.moved(x, x.Rank()-1, by), x); k%scanSteps == scanSteps-1 {
			x = x.stageRow()
		}
	}
	return x.stageRow()
}

// rowPrefix folds along the last axis in three kernels: the folds of runs within their
// block, those of all blocks, and those of elements within their run.
func (t *Tensor) rowPrefix(f fold) *Tensor {
	k, n := t.Rank()-1, t.Extent(-1)
	runs := min((n+4*scanRun-1)/(4*scanRun)*4, scanRuns) // whole vectors of folds
	if n%(runs*scanRun) != 0 {                           // stored with identities after it: no term asks where it ends
		x := t.inBlocks(k, f, runs*scanRun)
		return x.Flatten(k, k+1).Contiguous().rowPrefix(f).Contiguous().SliceInts(k, 0, n)
	}
	blocks := n / (runs * scanRun)
	x := t.inMemory().Unflatten(k, blocks, runs, scanRun) // [.. blocks runs run]
	upTo := f.direct(f.reduce(x, k+2), k+1).Contiguous()
	y := f.combine(f.exclusive(upTo, k+1).Unsqueeze(k+2), f.direct(x, k+2))
	if totals := upTo.SliceInts(k+1, runs-1, 1).Squeeze(k + 1); blocks > 1 {
		y = f.combine(f.before(totals).Contiguous().Unsqueeze(k+1).Unsqueeze(k+2), y)
	}
	return y.Flatten(k, k+2)
}

// inMemory stores what is not a buffer already: two kernels read it.
func (t *Tensor) inMemory() *Tensor {
	u := t.node
	for u.Op == ir.OpReshape || u.Op == ir.OpDetach {
		u = u.Src[0]
	}
	if u.Op == ir.OpBuffer || u.Op == ir.OpContiguous {
		return t
	}
	return t.Contiguous()
}

// before folds along the last axis what comes before each element.
func (f fold) before(x *Tensor) *Tensor {
	k := x.Rank() - 1
	if x.Extent(k) > scanBlocks {
		return f.exclusive(x.prefix(k, f), k)
	}
	return f.masked(x, k, x.past(k).Transpose(k, k+1).Not())
}

// inBlocks cuts axis k into blocks [.. blocks size ..], the last filled up with identities.
func (t *Tensor) inBlocks(k int, f fold, size int) *Tensor {
	n := t.Extent(k)
	blocks := (n + size - 1) / size
	x := t.Pad(k, 0, blocks*size-n)
	position := t.graph.axisIota(ir.I32, x.shape(), k)
	x = position.Lt(t.graph.Scalar(ir.I32, float64(n))).Where(x, f.identity(x))
	return x.Unflatten(k, blocks, size)
}

// exclusive moves a running fold on by one: the identity comes first.
func (f fold) exclusive(x *Tensor, k int) *Tensor { return f.moved(x, k, 1) }

// moved moves elements on; identities come first.
func (f fold) moved(x *Tensor, k, by int) *Tensor {
	by = min(by, x.Extent(k))
	moved := x.SliceInts(k, 0, x.Extent(k)-by).Pad(k, by, 0)
	first := x.graph.axisIota(ir.I32, x.shape(), k).Lt(x.graph.Scalar(ir.I32, float64(by)))
	return first.Where(f.identity(x), moved)
}

// movedBack moves elements towards the start; identities come last.
func (f fold) movedBack(x *Tensor, k, by int) *Tensor {
	by = min(by, x.Extent(k))
	n := x.Extent(k) - by
	moved := x.SliceInts(k, by, n).Pad(k, 0, by)
	kept := x.graph.axisIota(ir.I32, x.shape(), k).Lt(x.graph.Scalar(ir.I32, float64(n)))
	return kept.Where(moved, f.identity(x))
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
