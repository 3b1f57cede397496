package emit

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// axes: a buffer [.., n, m, ..] that a kernel reads at [.., x/m, x%m, ..] becomes one with an
// axis of n*m elements that is read at x. A tensor is stored in the shape in which it was
// computed, [200, 4, 50] where its rows were normalised in groups, and read as rows of 200,
// whose elements lie side by side all the same. Lanes see it only then: eight of them would
// be parts of two groups. Where whole iterations are a group, nothing is gained.

// CollapseAxes merges the axes of the buffers of every kernel.
func CollapseAxes(s *state.State) { eachWritten(s, joinAxes, "read across two axes as along one") }

// joinAxes merges axes of a kernel's buffers as long as there are such.
func joinAxes(s *state.State, sink *ir.UOp) *ir.UOp {
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpLoad && u.Op != ir.OpStore || u.Src[0].Op != ir.OpParam || isPacked(u.Src[0]) {
			continue
		}
		for k := range len(u.Indices()) - 1 {
			if readsAcross(s, u, k) {
				return joinAxes(s, joinAxis(s.Exprs, sink, u.Src[0], k))
			}
		}
	}
	return sink
}

// vectorsAtOnce is how many vectors an iteration of a long loop takes.
const vectorsAtOnce = 4

// readsAcross reports an access whose indices k and k+1 are the digits of one position, of
// which the lower one counts over no whole number of iterations, or begins within one.
func readsAcross(s *state.State, u *ir.UOp, k int) bool {
	extents, index := u.Src[0].Src, u.Indices()
	m, constant := extents[k+1].Int()
	n, outer := extents[k].Int()
	low := index[k+1]
	if !constant || !outer || n <= 1 || m <= 1 || low.Op != ir.OpFloorMod || !low.Src[1].IsInt(m) {
		return false
	}
	if iteration := vectorsAtOnce * s.Opt.Profile.Lanes; m%iteration == 0 && s.Linear.Of(low.Src[0]).Const%iteration == 0 {
		return false
	}
	flat := flatIndex(s.Exprs, index, k, m)
	return !slices.Contains(ir.Toposort(flat), low)
}

// flatIndex is the position that indices k and k+1 are the digits of. Of one that turns the higher
// digit does: (x/m+c)%n and x%m are those of (x+c*m)%(n*m).
func flatIndex(s *expr.Exprs, index []*ir.UOp, k int, m int64) *ir.UOp {
	high, low := index[k], index[k+1]
	if high.Op == ir.OpFloorMod && low.Op == ir.OpFloorMod && low.Src[1].IsInt(m) {
		x, whole := low.Src[0], s.A.Index(m)
		n, constant := high.Src[1].Int()
		turned := s.Simplify(s.A.Sub(high.Src[0], s.A.Binary(ir.OpFloorDiv, x, whole)))
		if c, is := turned.Int(); is && constant {
			return s.Simplify(s.A.Binary(ir.OpFloorMod, s.A.Add(x, s.A.Index(c*m)), s.A.Index(n*m)))
		}
	}
	return s.Simplify(s.A.Add(s.A.Mul(high, s.A.Index(m)), low))
}

// joinAxis writes a kernel in which axes k and k+1 of a buffer are one.
func joinAxis(s *expr.Exprs, sink, param *ir.UOp, k int) *ir.UOp {
	n, _ := param.Src[k].Int()
	m, _ := param.Src[k+1].Int()
	joined := s.A.With(param, slices.Replace(slices.Clone(param.Src), k, k+2, s.A.Index(n*m)))
	return s.A.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		switch {
		case u == param:
			return joined
		case u.Op == ir.OpLoad && u.Src[0] == param:
			return s.A.With(u, slices.Replace(slices.Clone(src), 1+k, 3+k, flatIndex(s, src[1:], k, m)))
		case u.Op == ir.OpStore && u.Src[0] == param:
			return s.A.Make(u.Op, u.DType, u.Arg.(ir.IntArg)-1, slices.Replace(slices.Clone(src), 2+k, 4+k, flatIndex(s, src[2:], k, m))...)
		}
		return nil
	})
}
