package shape

import (
	"fmt"
	"slices"
	"sort"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// orderRanges collects the ranges with their roles, and the stores.
func orderRanges(st *State) error {
	k := &Kernel{Arena: st.Arena, Sink: st.Sink, Tile: st.Tile, Options: st.Options,
		Desc: st.Desc, Simplify: st.simp, Bounds: st.bounds}
	for i, store := range st.Sink.Src {
		k.Stores = append(k.Stores, Store{Node: store, Gates: st.gates[i]})
	}
	if k.Ranges = analyse.RangesIn(st.Sink); len(k.Ranges) > analyse.MaxRanges {
		return fmt.Errorf("kernel: %d ranges after splitting, at most %d are allowed", len(k.Ranges), analyse.MaxRanges)
	}
	sort.SliceStable(k.Ranges, func(i, j int) bool {
		x, y := st.order[k.Ranges[i]], st.order[k.Ranges[j]]
		if x.axis != y.axis {
			return x.axis < y.axis
		}
		return x.subAxis < y.subAxis
	})
	for i, r := range k.Ranges {
		role, id := st.roles[r], r.Arg.(ir.RangeArg).ID
		if role == plan.NoRole {
			return fmt.Errorf("kernel: range %d has no axis", id)
		}
		if _, constant := r.Src[0].Int(); !constant && role != plan.Serial {
			return planError("range %d has no constant extent and cannot be %s", id, role)
		}
		if st.dots[r] {
			k.Dots.Add(i)
		}
		if st.rising[r] && role == plan.Grid {
			k.Rising.Add(i)
		}
		k.Roles = append(k.Roles, role)
	}
	if tile := st.Tile; tile != nil && !slices.Contains(k.Ranges, tile.Point) {
		k.Ranges, k.Roles = append(k.Ranges, tile.Point), append(k.Roles, plan.Lane)
	}
	st.Kernel = k
	return nil
}
