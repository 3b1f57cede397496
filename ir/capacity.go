package ir

import "slices"

// A capacity is an extent of a PARAM that no loop of fixed size reaches: all of its indices come
// from variables or from values, as the rows of a cache, of which a kernel visits those that are
// there. Kernels that differ in capacities alone do the same with other strides and bounds. They are
// of one class if the capacities are within a factor of classStep, from leastClass on.
const (
	leastClass = 256
	classStep  = 16
	mostExtent = 1 << 40
	noCapacity = 0
)

// classOf is the largest extent of a class.
func classOf(extent int64) int64 {
	top := int64(leastClass)
	for top < extent {
		top *= classStep
	}
	return top
}

// capacities are what is larger in the largest kernel of a class.
type capacities struct {
	extents map[*UOp][]int64 // of each PARAM that has one, by dimension; noCapacity: as it is
	vars    map[*UOp]int64   // the largest value of each VAR that counts rows of one, or is a place in it
}

// capacitiesOf finds them among the nodes of a kernel, sources first.
func capacitiesOf(order []*UOp) capacities {
	c := capacities{make(map[*UOp][]int64), make(map[*UOp]int64)}
	dynamic := make(map[*UOp]bool)
	for _, u := range order {
		dynamic[u] = u.Op == OpVar || u.Op == OpLoad || u.Op == OpField || slices.ContainsFunc(u.Src, func(s *UOp) bool { return dynamic[s] })
	}
	closed := make(map[*UOp][]bool)
	for _, u := range order {
		for i, s := range u.Src {
			if s.Op == OpParam {
				closed[s] = closedBy(u, i, closed[s], dynamic)
			}
		}
	}
	tops := make(map[int64]int64) // by capacity
	for p, dims := range closed {
		for i, fixed := range dims {
			n, ok := p.Src[i].Int()
			if fixed || !ok || n < 1 || n > mostExtent {
				continue
			}
			if c.extents[p] == nil {
				c.extents[p] = make([]int64, len(p.Src))
			}
			tops[n] = classOf(n)
			c.extents[p][i] = tops[n]
		}
	}
	for _, u := range order {
		if v, ok := u.Arg.(VarArg); ok && u.Op == OpVar {
			if top, count := tops[v.Hi]; count {
				c.vars[u] = top
			} else if top, position := tops[v.Hi+1]; position {
				c.vars[u] = top - 1
			}
		}
	}
	return c
}

// closedBy says which dimensions of a PARAM the uses so far, and one more, reach by loops of fixed
// size.
func closedBy(use *UOp, source int, closed []bool, dynamic map[*UOp]bool) []bool {
	p := use.Src[source]
	if closed == nil {
		closed = make([]bool, len(p.Src))
	}
	var indices []*UOp
	switch {
	case source != 0:
	case use.Op == OpLoad || use.Op == OpStore:
		indices = use.Indices()
	case use.Op == OpField:
		indices = use.Src[1:]
		closed[len(closed)-1] = true // blocks and what is in one
	}
	for i := range closed {
		if i >= len(indices) || !dynamic[indices[i]] {
			closed[i] = true
		}
	}
	return closed
}

// ClassHash is the same for expressions that are equal up to range ids, PARAM slots, the order of
// commutative operands and capacities of one class, and whatever bounds of variables are of one.
// It may be another one in another version.
func ClassHash(root *UOp) uint64 {
	order := Toposort(root)
	c := capacitiesOf(order)
	for _, u := range order {
		if v, ok := u.Arg.(VarArg); ok && u.Op == OpVar && c.vars[u] == 0 {
			c.vars[u] = classOf(v.Hi)
		}
	}
	return newColouring(root, c).hash[root]
}

// MixHashes is a hash of hashes, in their order.
func MixHashes(words ...uint64) uint64 { return mixWords(words...) }

// HasCapacities reports a kernel of whose class there are others.
func HasCapacities(root *UOp) bool { return len(capacitiesOf(Toposort(root)).extents) > 0 }

// Class returns the largest kernel of a kernel's class, in canonical form: the kernel itself where
// it has no capacities, or is the largest.
func Class(a *Arena, root *UOp) *UOp {
	order := Toposort(root)
	c := capacitiesOf(order)
	if len(c.extents) == 0 {
		return root
	}
	done := make(map[*UOp]*UOp, len(order))
	for _, u := range order {
		src := make([]*UOp, len(u.Src))
		for i, s := range u.Src {
			src[i] = done[s]
		}
		for i, top := range c.extents[u] {
			if top != noCapacity {
				src[i] = a.Index(top)
			}
		}
		arg := u.Arg
		if top, ok := c.vars[u]; ok {
			v := arg.(VarArg)
			v.Hi = top
			arg = v
		}
		done[u] = a.Make(u.Op, u.DType, arg, src...)
	}
	if done[root] == a.Import(root) || VerifyKernel(done[root]) != nil {
		return root
	}
	class, _ := Canonicalise(a, done[root])
	return class
}
