package schedule

import (
	"slices"

	"tgc/ir"
)

// operationCost is the cost of one scalar operation, in plain operations.
// Movement of data, casts between integers and index arithmetic are free.
func operationCost(op ir.Op) int64 {
	switch op {
	case ir.OpExp2, ir.OpLog2, ir.OpSin:
		return 8
	case ir.OpSqrt, ir.OpRsqrt, ir.OpFDiv, ir.OpRecip:
		return 4
	case ir.OpField:
		return 4 // a byte load with a computed address
	}
	if op.IsElementwise() {
		return 1
	}
	return 0
}

// facts are what cost decisions need to know of an expression.
type facts struct {
	constant bool // all extents of closed ranges are constants
	weights  bool // reads a weight: packed, or a constant matrix
	state    bool // reads a buffer that kernels write
	reduce   bool // holds a REDUCE
	stage    bool
}

// factsOf gathers the facts of an expression.
func (s *scheduler) factsOf(u *ir.UOp) facts {
	if f, ok := s.factMemo[u]; ok {
		return f
	}
	f := facts{constant: true}
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if len(u.Src) == 0 || u.Op == ir.OpRange || !seen.Add(u) {
			return
		}
		switch u.Op {
		case ir.OpReduce, ir.OpStage:
			f.reduce = f.reduce || u.Op == ir.OpReduce
			f.stage = f.stage || u.Op == ir.OpStage
			ranges := binderRanges(u)
			f.constant = f.constant && constantExtents(ranges)
		case ir.OpField:
			f.weights = true
		case ir.OpLoad:
			if u.Src[0].Op == ir.OpParam {
				ver := s.versions[u.Src[0].Arg.(ir.ParamArg).Slot]
				if s.mutable[ver.buffer] {
					f.state = true
				} else if s.isWeight(ver) {
					f.weights = true
				}
			}
		}
		for _, src := range u.Src {
			visit(src)
		}
	}
	visit(u)
	s.factMemo[u] = f
	return f
}

// work counts the scalar operations of an expression over all points of the
// given axes: a node runs once per point of the axes and closed ranges that it
// depends on.
func (s *scheduler) work(u *ir.UOp, axes []*ir.UOp) int64 {
	total := int64(0)
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if len(u.Src) == 0 || u.Op == ir.OpRange || u.DType == ir.Idx && !hasLoad(u) || !seen.Add(u) {
			return
		}
		cost := int64(0)
		if u.DType != ir.Idx && !(u.Op == ir.OpCast && isFreeCast(u)) {
			cost = operationCost(u.Op)
		}
		if u.Op == ir.OpReduce {
			cost += s.foldCost(u)
		}
		total = min(total+saturate(s.times(u, axes), cost), manyOps)
		for _, src := range u.Src {
			visit(src)
		}
	}
	visit(u)
	return total
}

// foldCost is what a reduce adds to the work of its values: a step for each point,
// or for four of a sum of bytes, which a dot instruction adds at once.
func (s *scheduler) foldCost(u *ir.UOp) int64 {
	n := s.points(binderRanges(u))
	if x := u.Src[0]; u.DType == ir.I32 && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && x.Op == ir.OpCast && x.Src[0].DType.Size() == 1 {
		return (n + 3) / 4
	}
	return n
}

// times is how often a node is evaluated: the points of the closed ranges and
// axes that it depends on.
func (s *scheduler) times(u *ir.UOp, axes []*ir.UOp) int64 {
	n := int64(1)
	for _, r := range s.free.of(u) {
		if isClosed(r) || slices.Contains(axes, r) {
			n = saturate(n, max(s.bounds.Of(r.Src[0]).Hi, 1))
		}
	}
	return n
}

// manyOps is where operation counts stop: more than any threshold.
const manyOps = 1 << 50

func saturate(x, y int64) int64 {
	if p, ok := ir.CheckedMul(x, y); ok {
		return min(p, manyOps)
	}
	return manyOps
}

// isWeight reports a buffer that nothing writes, of several rows and large.
func (s *scheduler) isWeight(v *version) bool {
	rows, elems := 0, int64(1)
	for _, extent := range v.buffer.Src {
		if isUnit(extent) {
			continue
		}
		rows++
		elems = saturate(elems, max(s.bounds.Of(extent).Hi, 1))
	}
	return rows >= 2 && elems >= s.opt.Profile.WeightElems
}

// points is the number of points of ranges, at the upper bounds of symbols.
func (s *scheduler) points(ranges []*ir.UOp) int64 {
	n := int64(1)
	for _, r := range ranges {
		n = saturate(n, max(s.bounds.Of(r.Src[0]).Hi, 1))
	}
	return n
}

// constantExtents reports that all ranges have constant extents.
func constantExtents(ranges []*ir.UOp) bool {
	for _, r := range ranges {
		if _, ok := r.Src[0].Int(); !ok {
			return false
		}
	}
	return true
}

// whyHeavy is the reason for which a value is not light.
func (s *scheduler) whyHeavy(v *value, axes []*ir.UOp) string {
	f := s.factsOf(v.body)
	switch {
	case f.weights:
		return "reads weights"
	case f.state:
		return "reads state"
	case !f.constant || !constantExtents(axes):
		return "symbolic extents"
	case v.pinned || v.target >= 0:
		return "has a buffer of its own"
	case s.readsTooMuch(v.body, axes):
		return "reads too much for every block"
	}
	return "too much for a block"
}

// isLight reports a value that a block may compute for itself: no weight, no
// state, constant extents, and small over the given axes.
func (s *scheduler) isLight(v *value, axes []*ir.UOp) (light bool, size, work int64) {
	f := s.factsOf(v.body)
	size = s.points(axes)
	work = s.work(v.body, axes)
	if f.weights || f.state || !f.constant || !constantExtents(axes) || v.pinned || v.target >= 0 {
		return false, size, work
	}
	if s.readsTooMuch(v.body, axes) {
		return false, size, work
	}
	return size <= s.opt.Profile.StageCap && work <= s.stageWork(size), size, work
}

// stageWork is the work that a block may do for a value of so many points.
func (s *scheduler) stageWork(points int64) int64 {
	p := &s.opt.Profile
	if points > p.StageCap {
		return p.StageWork
	}
	return max(p.StageWork, p.StageOps*points)
}

// readsTooMuch reports an expression that loads more than StageReads elements over
// all points of the given axes.
func (s *scheduler) readsTooMuch(u *ir.UOp, axes []*ir.UOp) bool {
	total := int64(0)
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpField || x.Op == ir.OpLoad && (x.Src[0].Op == ir.OpParam || x.Src[0].Op == ir.OpValue) {
			total = min(total+s.times(x, axes), manyOps)
		}
	}
	limit := s.opt.Profile.StageReads
	return limit > 0 && total > limit
}
