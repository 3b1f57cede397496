package heuristic

import (
	"tgc/ir"

	"tgc/kernel/plan"
	"tgc/target"
)

// analysis is what heuristics ask of a kernel.
type analysis struct {
	arena *ir.Arena
	sink  *ir.UOp
	desc  *target.Desc
	knobs Knobs

	order  []*ir.UOp // every node, sources first
	axes   []plan.Axis
	index  map[*ir.UOp]int // RANGE -> axis
	free   map[*ir.UOp]axisSet
	bounds *ir.Bounds
	stages []*ir.UOp
	cuts   map[*ir.UOp][]int64 // where index expressions cut a range into digits

	operands []*operand // of sums, large ones first
	written  map[*ir.UOp]bool
}

func analyse(arena *ir.Arena, sink *ir.UOp, desc *target.Desc, knobs Knobs) *analysis {
	a := &analysis{arena: arena, sink: sink, desc: desc, knobs: knobs,
		order: ir.Toposort(sink), axes: plan.Axes(sink), index: make(map[*ir.UOp]int),
		free: make(map[*ir.UOp]axisSet), bounds: ir.NewBounds(), written: make(map[*ir.UOp]bool), cuts: plan.Boundaries(arena, sink)}
	for i, x := range a.axes {
		a.index[x.Range] = i
	}
	for _, u := range a.order {
		a.free[u] = a.freeOf(u)
		if u.Op == ir.OpStage {
			a.stages = append(a.stages, u)
		}
	}
	for _, store := range sink.Src {
		a.written[store.Src[0]] = true
	}
	a.findOperands()
	return a
}

// freeOf is the axes that a node depends on and that no REDUCE or STAGE below
// it closes.
func (a *analysis) freeOf(u *ir.UOp) axisSet {
	var s axisSet
	switch u.Op {
	case ir.OpRange:
		s = s.with(a.index[u])
	case ir.OpReduce:
		for _, v := range u.ReduceValues() {
			s = s.union(a.free[v])
		}
		return s.without(a.index[u.ReduceRange()]).union(a.free[u.ReduceRange().Src[0]])
	case ir.OpProj:
		tuple := u.Src[0]
		for _, c := range components(tuple, int(u.Arg.(ir.IntArg))) {
			s = s.union(a.free[tuple.Src[c]])
		}
		return s.without(a.index[tuple.ReduceRange()]).union(a.free[tuple.ReduceRange().Src[0]])
	case ir.OpStage:
		s = a.free[u.Src[0]]
		for _, z := range u.Src[1:] {
			s = s.without(a.index[z]).union(a.free[z.Src[0]])
		}
		return s
	}
	for _, x := range u.Src {
		s = s.union(a.free[x])
	}
	return s
}

// components is what component c of a tuple needs: itself and, through the
// combine lambda, others.
func components(tuple *ir.UOp, c int) []int {
	n := tuple.Arg.(ir.ReduceArg).N
	lambda := tuple.Src[2*n+1:]
	needed := make([]bool, n)
	list := []int{c}
	needed[c] = true
	for k := 0; k < len(list); k++ {
		for _, u := range ir.Toposort(lambda[list[k]]) {
			if u.Op != ir.OpArg {
				continue
			}
			if o := int(u.Arg.(ir.IntArg)) % n; !needed[o] {
				needed[o] = true
				list = append(list, o)
			}
		}
	}
	return list
}

// size is the extent of an axis, an upper bound where it is symbolic.
func (a *analysis) size(i int) int64 {
	return min(max(a.bounds.Of(a.axes[i].Range.Src[0]).Hi, 1), 1<<40)
}

func (a *analysis) constant(i int) bool {
	_, ok := a.axes[i].Size()
	return ok
}

// points is the number of points over some axes, saturated.
func (a *analysis) points(axes []int) int64 {
	n := int64(1)
	for _, i := range axes {
		m, ok := ir.CheckedMul(n, a.size(i))
		if !ok {
			return 1 << 62
		}
		n = m
	}
	return n
}

func (a *analysis) axesOf(kind plan.AxisKind) []int {
	var out []int
	for i, x := range a.axes {
		if x.Kind == kind {
			out = append(out, i)
		}
	}
	return out
}

// laneSafe reports an axis that no STAGE depends on: lanes cannot each have an
// array of their own.
func (a *analysis) laneSafe(i int) bool {
	for _, s := range a.stages {
		if a.free[s].has(i) {
			return false
		}
	}
	return true
}

// isTuple reports a REDUCE of several components.
func isTuple(u *ir.UOp) bool { return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpInvalid }

// isSum reports a plain ADD reduce.
func isSum(u *ir.UOp) bool { return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpAdd }

// lanesOf is the number of f32 lanes of a vector register.
func lanesOf(desc *target.Desc) int64 { return int64(max(desc.VectorBytes/4, 1)) }

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
