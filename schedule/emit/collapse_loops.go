package emit

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// flat: neighbouring loops of a pointwise kernel that run through all its buffers
// side by side, [.., a, b, ..] everywhere, become one loop. Lanes then run over
// the whole row: the step of a convolution's weights, [512, 512, 3, 3], has no
// other axis for them.

// CollapseLoops merges the loops of every kernel.
func CollapseLoops(s *state.State) { eachWritten(s, flattenLoops, "one loop for lanes") }

// eachWritten rewrites kernels that have been written, and says why.
func eachWritten(s *state.State, rewrite func(s *state.State, sink *ir.UOp) *ir.UOp, why string) {
	for i, launch := range s.Out.Launches {
		for j, k := range launch.Kernels {
			s.A.TakeOrigins(k.Origins)
			merged := rewrite(s, k.AST)
			if merged == k.AST {
				continue
			}
			k.AST, k.Name, k.Origins = merged, kernelName(merged), s.A.OriginsUnder(merged)
			if i < len(s.Launches) { // not of kernels that were read from a text
				s.Record(s.Launches[i][j].Values[0], true, why, state.Number{Name: "loops", Value: int64(len(merged.Src[0].Ranges()))})
			}
		}
	}
}

// flattenLoops merges loops of a kernel as long as there are such.
func flattenLoops(s *state.State, sink *ir.UOp) *ir.UOp {
	nodes := ir.Toposort(sink)
	loops := sink.Src[0].Ranges()
	for _, store := range sink.Src {
		if !slices.Equal(store.Ranges(), loops) {
			return sink
		}
	}
	if slices.ContainsFunc(nodes, func(u *ir.UOp) bool { return u.Op == ir.OpReduce || u.Op == ir.OpStage }) {
		return sink
	}
	for i := 0; i+1 < len(loops); i++ {
		if at, ok := sideBySide(nodes, loops[i], loops[i+1]); ok {
			return flattenLoops(s, mergeLoops(s.Exprs, sink, loops[i], loops[i+1], at))
		}
	}
	if last := len(loops) - 1; last > 0 && isShort(s, loops[last]) && isInterleaved(nodes, loops[last]) && storedSideBySide(sink, loops[last-1], loops[last]) {
		return flattenLoops(s, interleave(s.Exprs, sink, loops[last-1], loops[last]))
	}
	return sink
}

// isShort reports a loop that leaves most lanes of a vector empty.
func isShort(s *state.State, loop *ir.UOp) bool {
	n, constant := loop.Src[0].Int()
	return constant && n <= s.Opt.Profile.Lanes/2
}

// isInterleaved reports a loop that chooses, or counts with another one, and does not merely
// walk along an axis, as the loops of a transpose do.
func isInterleaved(nodes []*ir.UOp, loop *ir.UOp) bool {
	return slices.ContainsFunc(nodes, func(u *ir.UOp) bool {
		return u.Op != ir.OpLoad && u.Op != ir.OpStore && slices.Contains(u.Src, loop)
	})
}

// storedSideBySide reports that every store has a and b, in this order, as its last indices,
// over whole axes: what is stored for both lies side by side.
func storedSideBySide(sink, a, b *ir.UOp) bool {
	if _, constant := a.Src[0].Int(); !constant {
		return false
	}
	return !slices.ContainsFunc(sink.Src, func(store *ir.UOp) bool {
		index, extents := store.Indices(), store.Src[0].Src
		last := len(index) - 1
		return last < 1 || store.Src[0].Op != ir.OpParam || isPacked(store.Src[0]) ||
			index[last-1] != a || index[last] != b || extents[last-1] != a.Src[0] || extents[last] != b.Src[0]
	})
}

// interleave writes the kernel with one loop for a and b, whose points are the digits of its
// position.
func interleave(s *expr.Exprs, sink, a, b *ir.UOp) *ir.UOp {
	n, _ := a.Src[0].Int()
	m, _ := b.Src[0].Int()
	both := s.A.Range(expr.RangeID(a), s.A.Index(n*m))
	with := map[*ir.UOp]*ir.UOp{a: s.A.Div(both, s.A.Index(m)), b: s.A.Mod(both, s.A.Index(m))}
	stores := make([]*ir.UOp, len(sink.Src))
	for i, store := range sink.Src {
		stored := 2 + len(store.Indices())
		src := slices.Clone(store.Src[:stored])
		for k := 1; k < stored; k++ {
			src[k] = s.Substitute(src[k], with)
		}
		loops := store.Ranges()
		stores[i] = s.A.Make(ir.OpStore, store.DType, store.Arg, slices.Concat(src, loops[:len(loops)-2], []*ir.UOp{both})...)
	}
	return s.A.With(sink, stores)
}

// isPacked reports a buffer of blocks, whose axes are not those of its elements.
func isPacked(param *ir.UOp) bool { return param.Arg.(ir.ParamArg).Format != "" }
