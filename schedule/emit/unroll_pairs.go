package emit

import (
	"maps"
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// pairs: loops of two points that read each other's elements, x[1-r] beside x[r], become a store
// for each point. What the points of a tile have in common is then one node of the
// kernel: a step of a sorting network is computed once for each element, not once for each that reads it.

// UnrollPairs writes the points of such loops one by one.
func UnrollPairs(s *state.State) { eachWritten(s, unrollPairs, "elements of a tile are computed once") }

// mostUnrolled bounds the stores of a kernel.
const mostUnrolled = 64

func unrollPairs(s *state.State, sink *ir.UOp) *ir.UOp {
	loops := sink.Src[0].Ranges()
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpReduce || u.Op == ir.OpStage || u.Op == ir.OpStore && !slices.Equal(u.Ranges(), loops) {
			return sink
		}
	}
	stores := sink.Src
	for k, r := range loops {
		if withinVector(s, loops[k:], sink.Src[0].Src[0].DType) {
			break
		}
		if 2*len(stores) > mostUnrolled || !r.Src[0].IsInt(2) || len(stores[0].Ranges()) == 1 {
			continue
		}
		if readSame(s, stores, r) {
			stores = slices.Concat(storesAt(s, stores, r, 0), storesAt(s, stores, r, 1))
		}
	}
	if len(stores) == len(sink.Src) {
		return sink
	}
	return s.A.With(sink, stores)
}

// withinVector reports loops that are lanes of one vector.
func withinVector(s *state.State, loops []*ir.UOp, dtype ir.DType) bool {
	bytes := int64(dtype.Size())
	for _, r := range loops {
		n, constant := r.Src[0].Int()
		if !constant {
			return false
		}
		bytes = expr.Saturate(bytes, n)
	}
	return bytes <= s.Opt.Profile.Lanes*int64(ir.F32.Size())
}

// readSame reports that both points of a loop read the same elements, wherever it says which.
func readSame(s *state.State, stores []*ir.UOp, r *ir.UOp) bool {
	at := [2]map[*ir.UOp]bool{{}, {}}
	for _, u := range ir.Toposort(stores...) {
		if u.Op == ir.OpLoad && slices.Contains(s.Free.Of(u), r) {
			for point := range at {
				at[point][s.Substitute(u, map[*ir.UOp]*ir.UOp{r: s.A.Index(int64(point))})] = true
			}
		}
	}
	return len(at[0]) > 0 && maps.Equal(at[0], at[1])
}

// storesAt are stores at a point of a loop.
func storesAt(s *state.State, stores []*ir.UOp, r *ir.UOp, point int64) []*ir.UOp {
	with := map[*ir.UOp]*ir.UOp{r: s.A.Index(point)}
	out := make([]*ir.UOp, len(stores))
	for i, store := range stores {
		stored := 2 + len(store.Indices())
		src := slices.Clone(store.Src[:stored])
		for k := 1; k < stored; k++ {
			src[k] = s.Substitute(src[k], with)
		}
		loops := slices.DeleteFunc(slices.Clone(store.Ranges()), func(l *ir.UOp) bool { return l == r })
		out[i] = s.A.Make(ir.OpStore, store.DType, store.Arg, append(src, loops...)...)
	}
	return out
}
