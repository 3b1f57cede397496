package shape

import (
	"slices"

	"tgc/ir"
)

// swapStoreLoops applies SWAPs to the loop order of every store.
func swapStoreLoops(st *State, sink *ir.UOp) *ir.UOp {
	a, swaps := st.Arena, st.Options.Swaps
	if len(swaps) == 0 {
		return sink
	}
	stores := make([]*ir.UOp, len(sink.Src))
	for i, store := range sink.Src {
		src := append([]*ir.UOp(nil), store.Src...)
		loops := src[2+int(store.Arg.(ir.IntArg)):]
		for _, swap := range swaps {
			if i, j := slices.Index(loops, swap[0]), slices.Index(loops, swap[1]); i >= 0 && j >= 0 {
				loops[i], loops[j] = loops[j], loops[i]
			}
		}
		stores[i] = a.With(store, src)
	}
	return a.With(sink, stores)
}
