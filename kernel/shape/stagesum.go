package shape

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Sums over what lies in a stage. The rows read integers of a group from a stage
// and, for an offset of the weights, their sum. Hoisted on its own that sum is a
// second pass over the stage, after a barrier. The threads that fill the stage
// have the integers in registers: the sum is a stage over the same ranges, whose
// value is computed from the body of the first one.

// stageSum stages u along the stage that it reads, if it is nothing but a sum of
// neighbouring elements of it. It reports success.
func (h *hoister) stageSum(u *ir.UOp) bool {
	if h.st.Threads < 2 {
		return false
	}
	sum, load := soleSum(u)
	if sum == nil {
		return false
	}
	stage, index := load.Src[0], load.Indices()
	n, constant := sum.ReduceRange().Src[0].Int()
	last := len(index) - 1
	if !constant || !within(h.st, stage, index) {
		return false
	}
	outer := h.blockOf(index[last], sum.ReduceRange(), n)
	if outer == nil {
		return false
	}
	ranges, plans, point := h.alongStage(stage, sum.ReduceRange(), n)
	if ranges == nil {
		return false
	}
	a := h.st.Arena
	at := append(ranges[:last:last], point)
	body := a.Reduce(ir.OpAdd, a.Substitute(sum.Src[0], map[*ir.UOp]*ir.UOp{load: bodyAt(h.st, stage, at)}), plans[len(plans)-1].Axis.Range)
	value := a.Substitute(u, map[*ir.UOp]*ir.UOp{sum: body})
	read := append(index[:last:last], outer)
	h.fresh = append(h.fresh, plans...)
	h.replace[u] = a.Load(a.Make(ir.OpStage, u.DType, ir.StageArg{}, append([]*ir.UOp{value}, ranges...)...), read[:len(ranges)]...)
	return true
}

// stageFactor stages the sum in a product of such a sum with something that is read
// again for every row anyway: the scale of a group of activations.
func (h *hoister) stageFactor(u *ir.UOp) bool {
	return u.Op == ir.OpMul && (h.cheap(u.Src[0]) && h.stageSum(u.Src[1]) || h.cheap(u.Src[1]) && h.stageSum(u.Src[0]))
}

// soleSum takes u apart that is a sum over elements of one stage and operations
// on that sum, without any other range.
func soleSum(u *ir.UOp) (sum, load *ir.UOp) {
	for _, x := range analyse.OutsideStages(u) {
		switch x.Op {
		case ir.OpReduce:
			if sum != nil || x.Arg.(ir.ReduceArg).Op != ir.OpAdd {
				return nil, nil
			}
			sum = x
		case ir.OpLoad:
			if load != nil || x.Src[0].Op != ir.OpStage {
				return nil, nil
			}
			load = x
		case ir.OpField, ir.OpVar, ir.OpProj:
			return nil, nil
		}
	}
	if sum == nil || load == nil {
		return nil, nil
	}
	// Ranges stand in the index only.
	inIndex := func(x *ir.UOp) bool { return x == load || x == sum.ReduceRange() }
	if slices.ContainsFunc(ir.ToposortWithin(inIndex, u), func(x *ir.UOp) bool { return x.Op == ir.OpRange }) {
		return nil, nil
	}
	return sum, load
}

// blockOf reads an index as n*f + r and returns f; nil where it is no such form.
func (h *hoister) blockOf(index, r *ir.UOp, n int64) *ir.UOp {
	a := h.st.Arena
	form := ir.NewLinearizer(a).Of(index)
	if form.Const%n != 0 {
		return nil
	}
	f := a.Index(form.Const / n)
	found := false
	for _, t := range form.Terms {
		switch {
		case t.Atom == r && t.Coef == 1:
			found = true
		case t.Coef%n != 0:
			return nil
		default:
			f = a.Add(f, a.Mul(t.Atom, a.Index(t.Coef/n)))
		}
	}
	if !found {
		return nil
	}
	return h.st.simp.Do(f)
}

// alongStage makes ranges for sums of n neighbouring elements of a stage, filled
// by the threads that fill the stage. The last plan is that of the sum's own
// range; point is the element's index along the stage's last range. It returns
// nil where threads and copies do not hold all of the stage.
func (h *hoister) alongStage(stage, reduced *ir.UOp, n int64) (ranges []*ir.UOp, plans []Axis, point *ir.UOp) {
	a := h.st.Arena
	z := stage.Src[1:]
	for k, r := range z {
		p := h.planOf(r)
		if p == nil || !coversAll(p) {
			return nil, nil, nil
		}
		extent, _ := r.Src[0].Int()
		segments := p.Segments
		if k == len(z)-1 {
			inner, rest, ok := cutSegments(segments, n)
			if !ok {
				return nil, nil, nil
			}
			own := newAxis(fmt.Sprintf("h%d", len(h.fresh)), plan.ReduceAxis, h.st.newRange(reduced.Src[0]), nil)
			own.Segments, own.Dot = dotFirst(inner)
			point = own.Axis.Range
			if extent > n {
				zz := h.st.newRange(a.Index(extent / n))
				plans = append(plans, h.stagePlan(zz, rest))
				ranges = append(ranges, zz)
				point = a.Add(a.Mul(zz, a.Index(n)), point)
			}
			return ranges, append(plans, own), point
		}
		fresh := h.st.newRange(r.Src[0])
		plans = append(plans, h.stagePlan(fresh, segments))
		ranges = append(ranges, fresh)
	}
	return nil, nil, nil
}

func (h *hoister) stagePlan(z *ir.UOp, segments []plan.Segment) Axis {
	return newAxis(fmt.Sprintf("h%d", len(h.fresh)), plan.StageAxis, z, segments)
}

func (h *hoister) planOf(r *ir.UOp) *Axis {
	if i := slices.IndexFunc(h.plans, func(p Axis) bool { return p.Axis.Range == r }); i >= 0 {
		return &h.plans[i]
	}
	return nil
}

// coversAll reports an axis whose sub-axes are all lanes, copies and threads.
func coversAll(p *Axis) bool {
	n, constant := p.Axis.Size()
	for _, s := range p.Segments {
		if s.Size <= 0 || n%s.Size != 0 || s.Role != plan.Lane && s.Role != plan.Unroll && s.Role != plan.Local {
			return false
		}
		n /= s.Size
	}
	return constant && n == 1
}

// cutSegments cuts the sub-axes of a stage's axis at n points; the threads below
// then share a sum, by shuffles.
func cutSegments(segments []plan.Segment, n int64) (inner, rest []plan.Segment, ok bool) {
	for _, s := range segments {
		if n > 1 && s.Size > n {
			if s.Size%n != 0 {
				return nil, nil, false
			}
			rest = append(rest, plan.Segment{Size: s.Size / n, Role: s.Role})
			s.Size = n
		} else if n == 1 {
			rest = append(rest, s)
			continue
		}
		if n%s.Size != 0 {
			return nil, nil, false
		}
		n /= s.Size
		if s.Role == plan.Local {
			s.Role = plan.Warp
		}
		inner = append(inner, s)
	}
	return inner, rest, n == 1
}

// dotFirst makes a sub-axis of its own of the four lanes that a dot instruction
// sums.
func dotFirst(segments []plan.Segment) ([]plan.Segment, bool) {
	if len(segments) == 0 || segments[0].Role != plan.Lane || segments[0].Size%plan.WordElements != 0 {
		return segments, false
	}
	out := []plan.Segment{{Size: plan.WordElements, Role: plan.Lane}}
	if n := segments[0].Size / plan.WordElements; n > 1 {
		out = append(out, plan.Segment{Size: n, Role: plan.Lane})
	}
	return append(out, segments[1:]...), true
}
