package plan

import (
	"maps"
	"slices"

	"tgc/ir"
)

// Boundaries finds where index expressions cut a range into sub-axes: the c of
// k/c and k%c, the m*c of (k/c)%m. If k is split at these boundaries, every
// field index of a packed format becomes a linear form of the sub-axes.
func Boundaries(a *ir.Arena, root *ir.UOp) map[*ir.UOp][]int64 {
	lin := ir.NewLinearizer(a)
	cuts := make(map[*ir.UOp]map[int64]bool)
	for _, u := range ir.Toposort(root) {
		if (u.Op != ir.OpFloorDiv && u.Op != ir.OpFloorMod) || u.DType != ir.Idx {
			continue
		}
		c, ok := u.Src[1].Int()
		if !ok || c <= 1 {
			continue
		}
		for _, t := range lin.Of(u.Src[0]).Terms {
			r, unit := subAxisOf(t.Atom)
			if r == nil || t.Coef <= 0 || c%t.Coef != 0 {
				continue
			}
			cut, ok := ir.CheckedMul(unit, c/t.Coef)
			if !ok || cut <= 1 {
				continue
			}
			if cuts[r] == nil {
				cuts[r] = make(map[int64]bool)
			}
			cuts[r][cut] = true
		}
	}
	out := make(map[*ir.UOp][]int64, len(cuts))
	for r, set := range cuts {
		out[r] = slices.Sorted(maps.Keys(set))
	}
	return out
}

// subAxisOf reads an atom as a sub-axis of a range: r, r/c, (r/c)%m, ..; unit is
// what one step of the atom is worth in steps of the range.
func subAxisOf(atom *ir.UOp) (r *ir.UOp, unit int64) {
	switch atom.Op {
	case ir.OpRange:
		return atom, 1
	case ir.OpFloorDiv, ir.OpFloorMod:
		c, ok := atom.Src[1].Int()
		if !ok || c <= 0 {
			return nil, 0
		}
		r, unit = subAxisOf(atom.Src[0])
		if r == nil || atom.Op == ir.OpFloorMod {
			return r, unit
		}
		unit, ok = ir.CheckedMul(unit, c)
		if !ok {
			return nil, 0
		}
		return r, unit
	}
	return nil, 0
}

// ChainWithin picks from candidate boundaries those that cut a segment lo..hi
// (hi 0: open end) into sub-axes: each divides the next.
func ChainWithin(candidates []int64, lo, hi int64) []int64 {
	var chain []int64
	at := lo
	for _, c := range candidates {
		if c > at && c%at == 0 && (hi == 0 || c < hi && hi%c == 0) {
			chain = append(chain, c)
			at = c
		}
	}
	return chain
}
