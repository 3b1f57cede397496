package grad

import (
	"tgc/ir"
	"tgc/tensor"
)

// Checkpoint is t, kept in memory as a value that backward passes begin again
// from (Chen et al. 2016, "Training deep nets with sublinear memory cost").
//
// Without checkpoints a derivative reads the values that the forward pass
// computed, which must stay in memory until then. What lies before a
// checkpoint, back to the checkpoints and inputs that it was computed from, is
// not read again: the backward pass computes it a second time, from those, and
// not before the derivative by the checkpoint is known. What lies behind the
// last checkpoint is read as ever.
//
//	for _, layer := range layers {
//		x = grad.Checkpoint(layer.Forward(x))
//	}
//
// Values and derivatives are those of t itself.
func Checkpoint(t *tensor.Tensor) *tensor.Tensor {
	return make1(t.Contiguous(), ir.OpAfter, nil)
}

// isCheckpoint reports a node that Checkpoint made.
func isCheckpoint(u *ir.UOp) bool { return u.Op == ir.OpAfter && len(u.Src) == 1 }

// segment is what lies before a checkpoint, and its second computation.
type segment struct {
	checkpoint *ir.UOp
	nodes      []*ir.UOp           // sources first
	copies     map[*ir.UOp]*ir.UOp // nil until it is asked for
}

// findSegments gives every node on a path the segment that it is computed again
// with: that of the first checkpoint that it lies before, whose derivative is
// the last to be known.
func (r *reverse) findSegments() {
	for _, u := range r.order {
		if !isCheckpoint(u) || !r.active[u] {
			continue
		}
		s := &segment{checkpoint: u, nodes: segmentNodes(u)}
		for _, node := range s.nodes {
			if r.segments[node] == nil {
				r.segments[node] = s
			}
		}
	}
}

// segmentNodes lists the nodes before a checkpoint, sources first, without what
// is there anyway: earlier checkpoints, buffers, extents.
func segmentNodes(checkpoint *ir.UOp) []*ir.UOp {
	return ir.ToposortWithin(startsSegment, checkpoint.Src[0])
}

// startsSegment reports a node that no second computation goes behind.
func startsSegment(u *ir.UOp) bool {
	switch u.Op {
	case ir.OpBuffer, ir.OpAssign, ir.OpDecode, ir.OpTable, ir.OpConst, ir.OpVar, ir.OpIota:
		return true
	}
	return isCheckpoint(u) || u.DType == ir.Idx
}

// forward is a node of the forward pass as a rule of node reader sees it: the
// node itself, or its second computation.
func (r *reverse) forward(reader, node *ir.UOp) *ir.UOp {
	s := r.segments[reader]
	if s == nil || r.adjoint[s.checkpoint] == nil {
		return node
	}
	if s.copies == nil {
		s.recompute(r.graph.Arena(), r.adjoint[s.checkpoint].Node())
	}
	if again, ok := s.copies[node]; ok {
		return again
	}
	return node
}

// recompute rebuilds the segment on second readings of what it starts from.
func (s *segment) recompute(a *ir.Arena, after *ir.UOp) {
	s.copies = make(map[*ir.UOp]*ir.UOp, len(s.nodes))
	for _, u := range s.nodes {
		src := make([]*ir.UOp, len(u.Src))
		for i, x := range u.Src {
			if _, done := s.copies[x]; !done {
				s.copies[x] = readAgain(a, x, after)
			}
			src[i] = s.copies[x]
		}
		s.copies[u] = a.With(u, src)
	}
}

// readAgain is a second reading of what a segment starts from: of memory once
// the derivative behind the segment is known; constants are what they are.
func readAgain(a *ir.Arena, u, after *ir.UOp) *ir.UOp {
	switch {
	case isCheckpoint(u):
		return a.Make(ir.OpAfter, u.DType, nil, u.Src[0], after)
	case u.Op == ir.OpBuffer || u.Op == ir.OpAssign:
		return a.Make(ir.OpAfter, u.DType, nil, u, after)
	}
	return u
}
