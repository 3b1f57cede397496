package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// analysis is what heuristics ask of a kernel.
type analysis struct {
	arena *ir.Arena
	sink  *ir.UOp
	desc  *target.Desc
	knobs Knobs

	refused []plan.Plan // when they were carried out

	order   []*ir.UOp // every node, sources first
	axes    []plan.Axis
	free    *analyse.FreeSets // axes by number that a node depends on
	bounds  *ir.Bounds
	stages  []*ir.UOp
	reduces map[int][]*ir.UOp   // over each axis
	cuts    map[*ir.UOp][]int64 // where index expressions cut a range into digits

	operands []*operand // of sums, large ones first
	written  map[*ir.UOp]bool

	dependent []analyse.RangeSet // see together; nil: not asked for yet
}

func newAnalysis(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs) (*analysis, error) {
	a := &analysis{arena: arena, sink: sink, desc: desc, knobs: knobs,
		order: ir.Toposort(sink), bounds: ir.NewBounds(),
		reduces: make(map[int][]*ir.UOp), written: make(map[*ir.UOp]bool), cuts: plan.Boundaries(arena, sink)}
	free, err := plan.NewFree(sink)
	if err != nil {
		return nil, fmt.Errorf("heuristic: %w", err)
	}
	a.axes, a.free = free.Axes, free.FreeSets
	for _, u := range a.order {
		switch u.Op {
		case ir.OpStage:
			a.stages = append(a.stages, u)
		case ir.OpReduce:
			i := a.axisOf(u.ReduceRange())
			a.reduces[i] = append(a.reduces[i], u)
		}
	}
	for _, store := range sink.Src {
		a.written[store.Src[0]] = true
	}
	a.findOperands()
	return a, nil
}

// axisOf is the number of the axis of a RANGE.
func (a *analysis) axisOf(r *ir.UOp) int { return a.free.Index.Of(r) }

// size is the extent of an axis, an upper bound where it is symbolic.
func (a *analysis) size(i int) int64 {
	return min(max(a.bounds.Of(a.axes[i].Range.Src[0]).Hi, 1), 1<<40)
}

func (a *analysis) constant(i int) bool {
	_, ok := a.axes[i].Size()
	return ok
}

// allConstant reports axes of constant extents.
func (a *analysis) allConstant(axes []int) bool {
	return !slices.ContainsFunc(axes, func(i int) bool { return !a.constant(i) })
}

// points is the number of points over some axes, saturated.
func (a *analysis) points(axes []int) int64 {
	n := int64(1)
	for _, i := range axes {
		n = satMul(n, a.size(i))
	}
	return n
}

func (a *analysis) axesOf(kind plan.AxisKind) []int {
	return lists.Indices(a.axes, func(x plan.Axis) bool { return x.Kind == kind })
}

// around are the axes on which the reduces over an axis depend.
func (a *analysis) around(axis int) (s analyse.RangeSet) {
	for _, u := range a.reduces[axis] {
		s = s.Union(a.free.Of(u))
	}
	return s
}

// setOf is a list of axes as a set.
func setOf(axes []int) analyse.RangeSet {
	var s analyse.RangeSet
	for _, i := range axes {
		s = s.With(i)
	}
	return s
}

// storeSet are the axes of stores.
func (a *analysis) storeSet() analyse.RangeSet { return setOf(a.axesOf(plan.StoreAxis)) }

// longest is the first of the axes with the most points.
func (a *analysis) longest(axes []int) int {
	return slices.MaxFunc(axes, func(i, j int) int { return cmp.Compare(a.size(i), a.size(j)) })
}

// laneSafe reports an axis that no STAGE depends on: lanes cannot each have an
// array of their own.
func (a *analysis) laneSafe(i int) bool {
	return !slices.ContainsFunc(a.stages, func(s *ir.UOp) bool { return a.free.Of(s).Has(i) })
}

// lineBytes is what caches of a CPU keep together.
const lineBytes = 64

// lanesOf is the number of f32 lanes of a vector register.
func lanesOf(desc *target.Desc) int64 { return int64(max(desc.VectorBytes/4, 1)) }

// storedTogether is how many points of one buffer a kernel stores at a time, and their size: those of a tile, which
// have steps in common.
func (a *analysis) storedTogether() (points, size int64) {
	count := make(map[*ir.UOp]int64)
	for _, store := range a.sink.Src {
		param := store.Src[0]
		if count[param]++; count[param] > points {
			points, size = count[param], int64(param.DType.Size())
		}
	}
	return points, size
}

// ceil is x/y, rounded up.
func ceil(x, y int64) int64 { return (x + y - 1) / y }

// powerOfTwoDivisor is the largest power of two up to limit that divides n.
func powerOfTwoDivisor(n, limit int64) int64 {
	v := int64(1)
	for v*2 <= limit && n%(v*2) == 0 {
		v *= 2
	}
	return v
}

// divisor is the largest divisor of n up to limit.
func divisor(n, limit int64) int64 {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

// readsAcross are the loads of buffers among some nodes whose lanes along an axis do not lie side by side.
func (a *analysis) readsAcross(nodes []*ir.UOp, axis int) []*ir.UOp {
	return lists.Filter(nodes, func(u *ir.UOp) bool {
		return u.Op == ir.OpLoad && u.Src[0].Op == ir.OpParam && a.dependsByIndex(u, axis) && a.stride(u, axis) != 1
	})
}
