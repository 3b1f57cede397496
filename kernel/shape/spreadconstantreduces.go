package shape

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// A reduce that depends on no range at all, such as the mean square of a norm, or
// only on those of which a block has one point (gridAxes), is computed once before a block's rows. Where it runs over the same
// ranges as the sums of the rows, it would be shared out as they are: every row
// of threads would compute it again. It gets ranges of its own, over all
// threads of the block.
func spreadConstantReduces(st *State, sink *ir.UOp, plans []Axis) (*ir.UOp, []Axis) {
	if st.Threads < 2*plan.WarpSize {
		return sink, plans
	}
	free, err := plan.NewFree(sink)
	if err != nil {
		return sink, plans
	}
	grid := gridAxes(st, free, sink, plans)
	once := func(u *ir.UOp) bool { return free.Of(u).Minus(grid).Empty() }
	elsewhere := make(map[*ir.UOp]bool) // ranges of reduces that depend on others
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpReduce && !once(u) {
			elsewhere[u.ReduceRange()] = true
		}
	}
	replace := make(map[*ir.UOp]*ir.UOp)
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op != ir.OpInvalid && once(u) {
			if to, fresh := overBlock(st, free, u, elsewhere); to != nil {
				replace[u], plans = to, append(plans, fresh...)
			}
			return nil
		}
		return u.Src
	}, sink)
	if len(replace) == 0 {
		return sink, plans
	}
	return st.Arena.Substitute(sink, replace), plans
}

// overBlock is a reduce over fresh ranges, all threads of the block sharing it;
// nil where it has its ranges for itself or their extents are not constant.
func overBlock(st *State, free *plan.Free, u *ir.UOp, elsewhere map[*ir.UOp]bool) (*ir.UOp, []Axis) {
	ranges, shared := rangesOf(free, u), false
	for _, r := range ranges {
		if _, constant := r.Src[0].Int(); !constant {
			return nil, nil
		}
		shared = shared || elsewhere[r]
	}
	if !shared || analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpStage }) {
		return nil, nil
	}
	if one, z := st.overOneRange(u, ranges); z != nil {
		return one, st.shareAmongThreads([]*ir.UOp{z}, ranges[len(ranges)-1])
	}
	rename := make(map[*ir.UOp]*ir.UOp)
	fresh := make([]*ir.UOp, len(ranges))
	for k, r := range ranges {
		fresh[k] = st.newRange(r.Src[0])
		rename[r] = fresh[k]
	}
	return st.Arena.Substitute(u, rename), st.shareAmongThreads(fresh, ranges[len(ranges)-1])
}

// rangesOf are the ranges that a value is computed over, outer before inner.
func rangesOf(free *plan.Free, u *ir.UOp) []*ir.UOp {
	outside := func(r *ir.UOp) bool { return free.Of(u).Has(free.Index.Of(r)) }
	ranges := slices.DeleteFunc(analyse.RangesIn(u), outside)
	slices.SortFunc(ranges, func(a, b *ir.UOp) int { return free.Index.Of(a) - free.Index.Of(b) })
	return ranges
}

// overOneRange is a nest of reduces of one operation as one over all points of its ranges,
// so that threads share them whatever the extents are: 30 blocks of 32 activations are 960.
// nil where something stands between two reduces.
func (st *State) overOneRange(u *ir.UOp, ranges []*ir.UOp) (one, z *ir.UOp) {
	a, op, body, points := st.Arena, u.Arg.(ir.ReduceArg).Op, u, int64(1)
	at := make(map[*ir.UOp]int64) // points of the ranges inside, of each range of the nest
	var nest []*ir.UOp
	for body.Op == ir.OpReduce && analyse.IsPlain(body) && body.Arg.(ir.ReduceArg).Op == op {
		nest, body = append(nest, body.ReduceRange()), body.Src[0]
	}
	if len(nest) != len(ranges) {
		return nil, nil
	}
	for _, r := range slices.Backward(nest) {
		n, _ := r.Src[0].Int()
		at[r], points = points, points*n
	}
	z = st.newRange(a.Index(points))
	rename := make(map[*ir.UOp]*ir.UOp)
	for _, r := range nest {
		rename[r] = a.Mod(a.Div(z, a.Index(at[r])), r.Src[0])
	}
	return a.Reduce(op, st.simp.Do(a.Substitute(body, rename)), z), z
}

// shareAmongThreads are the axes of ranges, outer before inner, over which all threads of
// a block share one reduce: lanes side by side, then a warp, then groups, and some points
// of a thread at once. The points of unit lie side by side in memory.
func (st *State) shareAmongThreads(ranges []*ir.UOp, unit *ir.UOp) []Axis {
	warp, groups := int64(plan.WarpSize), st.Threads/plan.WarpSize
	side, _ := unit.Src[0].Int()
	axes, left := make([]Axis, len(ranges)), make([]int64, len(ranges))
	take := func(k int, role plan.Role, n int64) {
		if n > 1 {
			axes[k].Segments = append(axes[k].Segments, plan.Segment{Size: n, Role: role})
			left[k] = (left[k] + n - 1) / n
		}
	}
	for k, z := range slices.Backward(ranges) {
		axes[k] = newAxis(fmt.Sprintf("n%d", z.Arg.(ir.RangeArg).ID), plan.ReduceAxis, z, nil)
		left[k], _ = z.Src[0].Int()
		if k == len(ranges)-1 {
			take(k, plan.Lane, powerOfTwoIn(side, int64(st.Desc.VectorBytes/4)))
		}
		n := plan.PartsOf(warp, left[k])
		take(k, plan.Warp, n)
		warp /= n
	}
	// Groups meet at barriers, which stand best outside of all loops.
	for k := range ranges {
		n := plan.PartsOf(groups, left[k])
		take(k, plan.Group, n)
		groups /= n
	}
	for k := range slices.Backward(ranges) {
		if n := st.loadsAtOnce(left[k]); n > 1 {
			take(k, plan.Unroll, n)
			break
		}
	}
	return axes
}

// loadsAtOnce is how many of so many turns of a thread are one: all where they are few.
func (st *State) loadsAtOnce(turns int64) int64 {
	return min(turns, int64(st.Options.Program.Of(program.Loads)))
}
