package state

import (
	"slices"

	"tgc/ir"
)

// InPlace reports that value v may write the version after previous while its
// body reads the buffer: every read of it is at the point that is written, or
// provably in another region.
func (s *Graph) InPlace(v *Value, previous int) bool {
	buffer := s.Versions[previous].Buffer
	index := v.StoreIndex()
	for _, u := range ir.Toposort(v.Body) {
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam {
			continue
		}
		if s.Versions[u.Src[0].Arg.(ir.ParamArg).Slot].Buffer != buffer {
			continue
		}
		if !slices.Equal(u.Indices(), index) && !s.disjoint(u.Indices(), index, v.Ranges) {
			return false
		}
	}
	return true
}

// disjoint proves that no point of one index tuple equals any point of the
// other: regions are compared, so the second one's ranges are renamed first.
func (s *Graph) disjoint(x, y, ranges []*ir.UOp) bool {
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for _, r := range ranges {
		with[r] = s.NewRange(r.Src[0])
	}
	y = s.Rename(y, with)
	for k := range x {
		if s.Bounds.Of(s.Simplify(s.A.Eq(x[k], y[k]))).Hi == 0 {
			return true
		}
		diff := s.Bounds.Of(s.Simplify(s.A.Sub(x[k], y[k])))
		if diff.Lo > 0 || diff.Hi < 0 || diff.Mult > 1 && diff.Rem != 0 {
			return true
		}
	}
	return false
}
