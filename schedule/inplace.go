package schedule

import (
	"slices"

	"tgc/ir"
)

// inPlace reports that value v may write the version after previous while its
// body reads the buffer: every read of it is at the point that is written, or
// provably in another region.
func (s *scheduler) inPlace(v *value, previous int) bool {
	buffer := s.versions[previous].buffer
	index := v.storeIndex()
	for _, u := range ir.Toposort(v.body) {
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam {
			continue
		}
		if s.versions[u.Src[0].Arg.(ir.ParamArg).Slot].buffer != buffer {
			continue
		}
		if !slices.Equal(u.Indices(), index) && !s.disjoint(u.Indices(), index, v.ranges) {
			return false
		}
	}
	return true
}

// disjoint proves that no point of one index tuple equals any point of the
// other: regions are compared, so the second one's ranges are renamed first.
func (s *scheduler) disjoint(x, y, ranges []*ir.UOp) bool {
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for _, r := range ranges {
		with[r] = s.newRange(r.Src[0])
	}
	y = s.rename(y, with)
	for k := range x {
		if s.bounds.Of(s.simplify(s.a.Eq(x[k], y[k]))).Hi == 0 {
			return true
		}
		diff := s.bounds.Of(s.simplify(s.a.Sub(x[k], y[k])))
		if diff.Lo > 0 || diff.Hi < 0 || diff.Mult > 1 && diff.Rem != 0 {
			return true
		}
	}
	return false
}
