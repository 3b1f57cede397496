package heuristic

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Sums of products of bytes, for which targets have a dot instruction of four
// lanes.

// dotLanes is the number of products that one lane of a dot instruction sums.
const dotLanes = 4

// dotAxis reports a reduce axis over which bytes, or products of bytes, are
// summed and nothing else is.
func (a *analysis) dotAxis(i int) bool {
	others := func(u *ir.UOp) bool { return !analyse.IsSum(u) || u.DType != ir.I32 || !a.isBytes(u.Src[0]) }
	reduces := a.reduces[i]
	return len(reduces) > 0 && a.constant(i) && a.size(i)%dotLanes == 0 && a.laneSafe(i) && !slices.ContainsFunc(reduces, others)
}

// isBytes reports i32(x) or i32(x)*i32(y) of bytes, or of what is known to be one.
func (a *analysis) isBytes(u *ir.UOp) bool {
	if u.Op == ir.OpMul {
		return u.Src[0].Op == ir.OpCast && u.Src[1].Op == ir.OpCast && a.isBytes(u.Src[0]) && a.isBytes(u.Src[1])
	}
	return u.Op == ir.OpCast && u.DType == ir.I32 && shape.ByteFactor(a.arena, a.bounds, u, true) != nil
}

// dot sums the lowest points of an axis with the target's dot instruction, if
// that is what they are. It reports how many points that took.
func (p *planner) dot(i int) int64 {
	if p.taken[i] > 1 || !p.dotAxis(i) {
		return 1
	}
	p.split(plan.TC, i, dotLanes)
	return dotLanes
}
