package ir

import (
	"fmt"

	"tgc/internal/lists"
)

// Shapes answers the shape (extents, Idx) of tensor-graph nodes, memoised. The
// arena is where derived extents are made.
type Shapes struct {
	arena *Arena
	memo  map[*UOp][]*UOp
}

// NewShapes makes an empty memo over an arena.
func NewShapes(a *Arena) *Shapes { return &Shapes{arena: a, memo: make(map[*UOp][]*UOp)} }

// Forget drops what was asked before.
func (s *Shapes) Forget() { clear(s.memo) }

// Of returns the extents of u, outermost first. The graph must pass
// VerifyTensor; a malformed node panics. It visits the nodes whose shapes were
// not asked for before, so that a graph costs as much as it grows while it is
// built; it does not recurse.
func (s *Shapes) Of(u *UOp) []*UOp {
	if shape, ok := s.memo[u]; ok {
		return shape
	}
	stack := []*UOp{u}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		waits := len(stack)
		for _, src := range top.Src {
			if _, ok := s.memo[src]; !ok {
				stack = append(stack, src)
			}
		}
		if len(stack) == waits {
			s.memo[top] = s.derive(top)
			stack = stack[:waits-1]
		}
	}
	return s.memo[u]
}

func (s *Shapes) derive(u *UOp) []*UOp {
	switch u.Op {
	case OpConst, OpVar, OpRng, OpSink:
		if u.Op == OpRng {
			return s.elementwise(u)
		}
		return nil
	case OpBuffer, OpTable:
		return u.Src
	case OpIota:
		return u.Src[:1]
	case OpReshape, OpExpand:
		return u.Src[1:]
	case OpPermute:
		from := s.memo[u.Src[0]]
		shape := make([]*UOp, len(from))
		for k, axis := range u.Arg.(AxesArg).List() {
			shape[k] = from[axis]
		}
		return shape
	case OpPad:
		from := s.memo[u.Src[0]]
		return lists.Make(len(from), func(k int) *UOp { return s.arena.Add(s.arena.Add(from[k], u.Src[1+2*k]), u.Src[2+2*k]) })
	case OpShrink:
		return lists.Make(len(s.memo[u.Src[0]]), func(k int) *UOp { return u.Src[2+2*k] })
	case OpReduceAxes:
		shape := append([]*UOp(nil), s.memo[u.Src[0]]...)
		for _, axis := range u.Src[1:] {
			k, _ := axis.Int()
			shape[k] = s.arena.Index(1)
		}
		return shape
	case OpGather:
		axis := int(u.Arg.(IntArg))
		from, index := s.memo[u.Src[0]], s.memo[u.Src[1]]
		shape := append([]*UOp(nil), from[:axis]...)
		return append(append(shape, index...), from[axis+1:]...)
	case OpFlip, OpScan, OpScatterAdd, OpDecode, OpAssign, OpCopy, OpContiguous, OpStageRow, OpDetach, OpAfter:
		return s.memo[u.Src[0]]
	}
	if u.Op.IsElementwise() {
		return s.elementwise(u)
	}
	panic(fmt.Sprintf("ir: %s has no shape", u.Op))
}

// elementwise takes the shape of the first source that has axes: the tensor
// API broadcasts by EXPAND, and a rank-0 CONST or VAR fits everywhere.
func (s *Shapes) elementwise(u *UOp) []*UOp {
	for _, src := range u.Src {
		if shape := s.memo[src]; len(shape) > 0 {
			return shape
		}
	}
	return nil
}
