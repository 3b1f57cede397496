package expr

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
)

// functionCost is the cost of an exponential, a logarithm or a sine, in plain operations.
const functionCost = 8

// OperationCost is the cost of one scalar operation, in plain operations.
// Movement of data, casts between integers and index arithmetic are free.
func OperationCost(op ir.Op) int64 {
	switch op {
	case ir.OpExp2, ir.OpLog2, ir.OpSin:
		return functionCost
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

// Work counts the scalar operations of an expression over all points of the
// given axes: a node runs once per point of the axes and closed ranges that it
// depends on.
func (s *Exprs) Work(u *ir.UOp, axes []*ir.UOp) int64 {
	total := int64(0)
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if len(u.Src) == 0 || u.Op == ir.OpRange || u.DType == ir.Idx && !HasLoad(u) || !seen.Add(u) {
			return
		}
		cost := int64(0)
		if u.DType != ir.Idx && !(u.Op == ir.OpCast && IsFreeCast(u)) {
			cost = OperationCost(u.Op)
		}
		if u.Op == ir.OpReduce {
			cost += s.foldCost(u)
		}
		total = min(total+Saturate(s.Times(u, axes), cost), ManyOps)
		for _, src := range u.Src {
			visit(src)
		}
	}
	visit(u)
	return total
}

// foldCost is what a reduce adds to the work of its values: a step for each point,
// or for four of a sum of bytes, which a dot instruction adds at once. A step of a tuple
// counts its functions: exponentials, by which a softmax rescales.
func (s *Exprs) foldCost(u *ir.UOp) int64 {
	n := s.Points(BinderRanges(u))
	if analyse.IsTuple(u) {
		return Saturate(n, 1+CombineFunctions(u))
	}
	if x := u.Src[0]; u.DType == ir.I32 && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && x.Op == ir.OpCast && x.Src[0].DType.Size() == 1 {
		return (n + 3) / 4
	}
	return n
}

// CombineFunctions is the cost of the functions in a step of a tuple.
func CombineFunctions(u *ir.UOp) (ops int64) {
	for _, x := range ir.Toposort(u.ReduceCombine()...) {
		if cost := OperationCost(x.Op); cost == functionCost {
			ops += cost
		}
	}
	return ops
}

// CombineQuotients is the cost of the quotients in a step of a tuple, which Work leaves out: those of mean and squares.
func CombineQuotients(u *ir.UOp) (ops int64) {
	for _, x := range ir.Toposort(u.ReduceCombine()...) {
		if cost := OperationCost(x.Op); cost > 1 && cost < functionCost {
			ops += cost
		}
	}
	return ops
}

// Times is how often a node is evaluated: the points of the closed ranges and
// axes that it depends on.
func (s *Exprs) Times(u *ir.UOp, axes []*ir.UOp) int64 {
	n := int64(1)
	for _, r := range s.Free.Of(u) {
		if IsClosed(r) || slices.Contains(axes, r) {
			n = Saturate(n, max(s.Bounds.Of(r.Src[0]).Hi, 1))
		}
	}
	return n
}

// MostReads is how many elements one of the reads of an expression has over all points of the given axes, at most.
func (s *Exprs) MostReads(u *ir.UOp, axes []*ir.UOp) (most int64) {
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpLoad && (x.Src[0].Op == ir.OpParam || x.Src[0].Op == ir.OpValue) {
			most = max(most, s.Times(x, axes))
		}
	}
	return most
}

// ManyOps is where operation counts stop: more than any threshold.
const ManyOps = 1 << 50

// Saturate multiplies, up to ManyOps.
func Saturate(x, y int64) int64 {
	if p, ok := ir.CheckedMul(x, y); ok {
		return min(p, ManyOps)
	}
	return ManyOps
}

// Points is the number of points of ranges, at the upper bounds of symbols.
func (s *Exprs) Points(ranges []*ir.UOp) int64 {
	n := int64(1)
	for _, r := range ranges {
		n = Saturate(n, max(s.Bounds.Of(r.Src[0]).Hi, 1))
	}
	return n
}

// ConstantExtents reports that all ranges have constant extents.
func ConstantExtents(ranges []*ir.UOp) bool {
	return !slices.ContainsFunc(ranges, func(r *ir.UOp) bool {
		_, ok := r.Src[0].Int()
		return !ok
	})
}

// Operations counts the scalar operations of one evaluation of u, reduces
// counting their body once: index arithmetic is free, shared nodes count once.
func (s *Exprs) Operations(u *ir.UOp) int64 {
	if n, ok := s.opsMemo[u]; ok {
		return n
	}
	var n int64
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if len(u.Src) == 0 || u.DType == ir.Idx || !seen.Add(u) {
			return
		}
		if !(u.Op == ir.OpCast && IsFreeCast(u)) {
			n += OperationCost(u.Op)
		}
		for _, src := range u.Src {
			visit(src)
		}
	}
	visit(u)
	s.opsMemo[u] = n
	return n
}

// IsFreeCast reports a conversion that a load or a wider operation absorbs.
func IsFreeCast(u *ir.UOp) bool {
	from := u.Src[0]
	return from.Op == ir.OpLoad && from.Src[0].Op == ir.OpParam || from.DType == ir.Idx
}
