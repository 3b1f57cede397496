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
		head := 2 + int(store.Arg.(ir.IntArg))
		for _, swap := range swaps {
			if !slices.Contains(src[head:], swap[0]) || !slices.Contains(src[head:], swap[1]) {
				continue
			}
			for k := head; k < len(src); k++ {
				switch src[k] {
				case swap[0]:
					src[k] = swap[1]
				case swap[1]:
					src[k] = swap[0]
				}
			}
		}
		stores[i] = a.With(store, src)
	}
	return a.With(sink, stores)
}
