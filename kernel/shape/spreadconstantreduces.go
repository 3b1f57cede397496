package shape

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// A reduce that depends on no range at all, such as the mean square of a norm,
// is computed once before a block's rows. Where it runs over the same
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
	elsewhere := make(map[*ir.UOp]bool) // ranges of reduces that depend on others
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpReduce && !free.Of(u).Empty() {
			elsewhere[u.ReduceRange()] = true
		}
	}
	replace := make(map[*ir.UOp]*ir.UOp)
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op != ir.OpInvalid && free.Of(u).Empty() {
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
	var ranges []*ir.UOp
	shared := false
	for _, x := range ir.Toposort(u) {
		switch x.Op {
		case ir.OpRange:
			if _, constant := x.Src[0].Int(); !constant {
				return nil, nil
			}
			ranges = append(ranges, x)
			shared = shared || elsewhere[x]
		case ir.OpStage:
			return nil, nil
		}
	}
	if !shared {
		return nil, nil
	}
	inner := ranges[0]
	for _, r := range ranges {
		if free.Index.Of(r) > free.Index.Of(inner) {
			inner = r
		}
	}
	rename := make(map[*ir.UOp]*ir.UOp)
	warp, groups := int64(plan.WarpSize), st.Threads/plan.WarpSize
	var plans []Axis // innermost first
	var left []int64
	take := func(k int, role plan.Role, limit int64) int64 {
		got := powerOfTwo(left[k], limit)
		if got > 1 {
			plans[k].Segments = append(plans[k].Segments, plan.Segment{Size: got, Role: role})
			left[k] /= got
		}
		return got
	}
	for i := len(free.Axes) - 1; i >= 0; i-- {
		r := free.Axes[i].Range
		if !slices.Contains(ranges, r) {
			continue
		}
		n, _ := r.Src[0].Int()
		z := st.newRange(r.Src[0])
		rename[r] = z
		plans = append(plans, newAxis(fmt.Sprintf("n%d", i), plan.ReduceAxis, z, nil))
		left = append(left, n)
		if r == inner {
			take(len(left)-1, plan.Lane, int64(st.Desc.VectorBytes/4))
		}
		warp /= take(len(left)-1, plan.Warp, warp)
	}
	// Groups meet at barriers, which stand best outside of all loops.
	for k := len(plans) - 1; k >= 0; k-- {
		groups /= take(k, plan.Group, groups)
	}
	for k := range plans {
		if take(k, plan.Unroll, int64(st.Options.Program.Of(program.Loads))) > 1 {
			break
		}
	}
	return st.Arena.Substitute(u, rename), plans
}

// powerOfTwo is the largest power of two up to limit that divides n.
func powerOfTwo(n, limit int64) int64 {
	v := int64(1)
	for v*2 <= limit && n%(v*2) == 0 {
		v *= 2
	}
	return v
}
