package lower

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// How threads exchange what they combine: lanes by shuffles, warps through shared memory.

// warpPart splits a thread sub-axis: masks of shuffles, largest first, then parts
// that lie step threads apart.
func (l *folder) warpPart(i int) (masks []int64, step, parts int64) {
	d := l.block.subAxes[i]
	if d.stride >= plan.WarpSize || d.stride&(d.stride-1) != 0 || d.extent&(d.extent-1) != 0 {
		return nil, d.stride, d.extent
	}
	top := min(d.end(), plan.WarpSize)
	for m := top / 2; m >= d.stride; m /= 2 {
		masks = append(masks, m)
	}
	return masks, top, d.end() / top
}

// combineThreads combines items over a thread sub-axis.
func (l *folder) combineThreads(i int, items []*program.Value, f folding) []*program.Value {
	masks, step, parts := l.warpPart(i)
	if len(masks) > 0 {
		l.block.mustBeUniform(true)
	}
	for _, m := range masks {
		other := lists.Map(items, func(x *program.Value) *program.Value { return l.exchange(x, m) })
		if f.symmetric {
			items = f.fold(items, other)
			continue
		}
		// The lower lane's part comes first on both sides.
		low := l.b.Lt(l.exprs.indexMod(l.exprs.indexDiv(l.block.tid, l.b.Index(m)), l.b.Index(2)), l.b.Index(1))
		first, second := make([]*program.Value, len(items)), make([]*program.Value, len(items))
		for k, x := range items {
			c := l.b.Broadcast(low, x.Type.Lanes)
			first[k], second[k] = l.b.Where(c, x, other[k]), l.b.Where(c, other[k], x)
		}
		items = f.fold(first, second)
	}
	if parts > 1 {
		items = l.combineWarps(items, step, parts, f)
	}
	return items
}

// exchange is the value of the lane whose index differs by mask.
func (l *folder) exchange(x *program.Value, mask int64) *program.Value {
	by := l.b.Int(program.Scalar(ir.I32), mask)
	if x.Type.Elem == ir.Bool {
		return l.b.Cast(l.b.ShuffleLane(l.b.Cast(x, ir.I32), by), ir.Bool)
	}
	return l.b.ShuffleLane(x, by)
}
