package emit

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
)

// span is the axes of a buffer from one index to another, both included; axes of
// extent 1 may be between. first is -1 where there are no such axes.
type span struct{ first, last int }

// sideBySide reports that a and b are used as neighbouring indices only, at one
// place of each buffer and over its whole extents there, and lists the places.
func sideBySide(nodes []*ir.UOp, a, b *ir.UOp) (at map[*ir.UOp]span, ok bool) {
	_, fixedA := a.Src[0].Int()
	_, fixedB := b.Src[0].Int()
	if !fixedA || !fixedB {
		return nil, false
	}
	at = make(map[*ir.UOp]span)
	for _, u := range nodes {
		access := u.Op == ir.OpLoad || u.Op == ir.OpStore
		if !access {
			if slices.Contains(u.Src, a) || slices.Contains(u.Src, b) {
				return nil, false
			}
			continue
		}
		if u.Op == ir.OpStore && (u.Src[1] == a || u.Src[1] == b) {
			return nil, false
		}
		place, found := placeOf(u, a, b)
		if known, seen := at[u.Src[0]]; !found || seen && known != place {
			return nil, false
		}
		at[u.Src[0]] = place
	}
	return at, true
}

// placeOf is where an access has a and b as neighbouring indices.
func placeOf(u, a, b *ir.UOp) (at span, ok bool) {
	index, buffer := u.Indices(), u.Src[0]
	first := slices.Index(index, a)
	if first < 0 {
		return span{-1, -1}, !slices.Contains(index, b)
	}
	last := nextLoop(index, first)
	if buffer.Op != ir.OpParam || last == len(index) || index[last] != b {
		return at, false
	}
	for k := first; k <= last; k++ {
		if index[k].Op == ir.OpRange && buffer.Src[k] != index[k].Src[0] || index[k].Op != ir.OpRange && !expr.IsUnit(buffer.Src[k]) {
			return at, false
		}
	}
	rest := slices.Delete(slices.Clone(index), first, last+1)
	return span{first, last}, !slices.Contains(rest, a) && !slices.Contains(rest, b)
}

// nextLoop is the place of the next index that is not 0.
func nextLoop(index []*ir.UOp, after int) int {
	at := after + 1
	for at < len(index) && index[at].IsInt(0) {
		at++
	}
	return at
}

// mergeLoops writes the kernel with one loop for a and b.
func mergeLoops(s *expr.Exprs, sink, a, b *ir.UOp, at map[*ir.UOp]span) *ir.UOp {
	n, _ := a.Src[0].Int()
	m, _ := b.Src[0].Int()
	extent := s.A.Index(n * m)
	both := s.A.Range(expr.RangeID(a), extent)
	return s.A.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		switch place, known := at[u]; {
		case u.Op == ir.OpParam && known && place.first >= 0:
			return s.A.With(u, slices.Replace(slices.Clone(src), place.first, place.last+1, extent))
		case u.Op == ir.OpLoad:
			return s.A.With(u, mergePairs(src, a, b, both))
		case u.Op == ir.OpStore:
			place := at[u.Src[0]]
			return s.A.Make(u.Op, u.DType, u.Arg.(ir.IntArg)-ir.IntArg(place.last-place.first), mergePairs(src, a, b, both)...)
		}
		return nil
	})
}

// mergePairs puts one range for every pair of neighbours a, b, among indices and
// among the loops of a store.
func mergePairs(src []*ir.UOp, a, b, both *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for i := 0; i < len(src); i++ {
		if last := nextLoop(src, i); src[i] == a && last < len(src) && src[last] == b {
			out = append(out, both)
			i = last
			continue
		}
		out = append(out, src[i])
	}
	return out
}
