package state

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
)

// FactsOf gathers the facts of an expression.
func (s *State) FactsOf(u *ir.UOp) Facts {
	if f, ok := s.factMemo[u]; ok {
		return f
	}
	f := Facts{Constant: true}
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		switch u.Op {
		case ir.OpRange:
			return nil
		case ir.OpReduce, ir.OpStage:
			f.Reduce = f.Reduce || u.Op == ir.OpReduce
			f.Stage = f.Stage || u.Op == ir.OpStage
			ranges := expr.BinderRanges(u)
			f.Constant = f.Constant && expr.ConstantExtents(ranges)
		case ir.OpField:
			f.Weights = true
		case ir.OpLoad:
			if u.Src[0].Op == ir.OpParam {
				ver := s.Versions[u.Src[0].Arg.(ir.ParamArg).Slot]
				if s.Mutable[ver.Buffer] {
					f.State = true
				} else if s.isWeight(ver) {
					f.Weights = true
				}
			}
		}
		return u.Src
	}, u)
	s.factMemo[u] = f
	return f
}

// isWeight reports a buffer that nothing writes, of several rows and large.
func (s *State) isWeight(v *Version) bool {
	rows, elems := 0, int64(1)
	for _, extent := range v.Buffer.Src {
		if expr.IsUnit(extent) {
			continue
		}
		rows++
		elems = expr.Saturate(elems, max(s.Bounds.Of(extent).Hi, 1))
	}
	return rows >= 2 && elems >= s.Opt.Profile.WeightElems
}

// WhyHeavy is the reason for which a value is not light.
func (s *State) WhyHeavy(v *Value, axes []*ir.UOp) string {
	f := s.FactsOf(v.Body)
	switch {
	case f.Weights:
		return "reads weights"
	case f.State:
		return "reads state"
	case !f.Constant || !expr.ConstantExtents(axes):
		return "symbolic extents"
	case v.Pinned || v.Target >= 0:
		return "has a buffer of its own"
	case s.readsTooMuch(v.Body, axes):
		return "reads too much for every block"
	}
	return "too much for a block"
}

// IsLight reports a value that a block may compute for itself: no weight, no
// state, constant extents, and small over the given axes.
func (s *State) IsLight(v *Value, axes []*ir.UOp) (light bool, size, work int64) {
	f := s.FactsOf(v.Body)
	size = s.Points(axes)
	work = s.Work(v.Body, axes)
	if f.Weights || f.State || !f.Constant || !expr.ConstantExtents(axes) || v.Pinned || v.Target >= 0 {
		return false, size, work
	}
	if s.readsTooMuch(v.Body, axes) {
		return false, size, work
	}
	return size <= s.Opt.Profile.StageCap && work <= s.StageWork(size), size, work
}

// StageWork is the work that a block may do for a value of n points.
func (s *State) StageWork(points int64) int64 {
	p := &s.Opt.Profile
	if points > max(p.StageCap, p.BlockElements) {
		return p.StageWork
	}
	return max(p.StageWork, p.StageOps*points)
}

// readsTooMuch reports an expression that loads more than StageReads elements over
// all points of the given axes.
func (s *State) readsTooMuch(u *ir.UOp, axes []*ir.UOp) bool {
	total := int64(0)
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpField || x.Op == ir.OpLoad && (x.Src[0].Op == ir.OpParam || x.Src[0].Op == ir.OpValue) {
			total = min(total+s.Times(x, axes), expr.ManyOps)
		}
	}
	limit := s.Opt.Profile.StageReads
	return limit > 0 && total > limit
}

// BlocksPrepare reports rows of activations, of so many elements in all, that each block makes ready for itself.
func (s *State) BlocksPrepare(rows, elements int64) bool {
	p := &s.Opt.Profile
	return rows <= p.BlockRows && elements <= p.BlockElements
}

// WeightReuse is how many points of p use the same packed data: those of the
// ranges that no weight's index holds. Data in a stage is used once for all points
// of the stage's own ranges.
func (s *State) WeightReuse(p *Value) int64 {
	unused := p.Ranges
	for _, u := range ir.Toposort(p.Body) {
		switch {
		case s.ReadsWeight(u):
			unused = ir.WithoutRanges(unused, s.Free.Of(u))
		case u.Op == ir.OpStage && s.FactsOf(u).Weights:
			unused = ir.WithoutRanges(unused, ir.WithoutRanges(unused, s.Free.Of(u)))
		}
	}
	return s.Points(unused)
}

// ReadsWeight reports a read of packed data, or of a buffer that is a weight.
func (s *State) ReadsWeight(u *ir.UOp) bool {
	if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam {
		return u.Op == ir.OpField
	}
	ver := s.Versions[u.Src[0].Arg.(ir.ParamArg).Slot]
	return !s.Mutable[ver.Buffer] && s.isWeight(ver)
}

// OperandReuse is how many points of p, a sum of products, use the same element of each of its
// operands; 1 where it is none. Both operands may be weights, of which WeightReuse then knows
// no use.
func (s *State) OperandReuse(p *Value) int64 {
	if !analyse.IsSum(p.Body) || p.Body.Src[0].Op != ir.OpMul {
		return 1
	}
	least := int64(expr.ManyOps)
	for _, operand := range p.Body.Src[0].Src {
		least = min(least, s.Points(ir.WithoutRanges(p.Ranges, s.Free.Of(operand))))
	}
	return least
}
