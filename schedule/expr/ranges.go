package expr

import (
	"slices"

	"tgc/ir"
)

// Zero is the constant 0 of a type.
func (s *Exprs) Zero(dtype ir.DType) *ir.UOp { return s.A.Const(dtype, 0) }

// BinderRanges lists the ranges that a REDUCE or STAGE closes.
func BinderRanges(u *ir.UOp) []*ir.UOp {
	if u.Op == ir.OpStage {
		return u.Src[1:]
	}
	return []*ir.UOp{u.ReduceRange()}
}

// Within reports that node x occurs in u, not counting u itself. Only binders
// below the height of u can.
func (s *Exprs) Within(x, u *ir.UOp) bool {
	if x == u {
		return false
	}
	var seen ir.Visited
	var visit func(u *ir.UOp) bool
	visit = func(u *ir.UOp) bool {
		if u == x {
			return true
		}
		if len(u.Src) == 0 || s.Height(u) == 0 || !seen.Add(u) { // an index may hold a reduce, too
			return false
		}
		return slices.ContainsFunc(u.Src, visit)
	}
	return slices.ContainsFunc(u.Src, visit)
}

// NewRange makes a RANGE with an id of its own. Its extent is simplified at once: expressions that are simplified later hold the
// extents of ranges and values, which would else be others there.
func (s *Exprs) NewRange(extent *ir.UOp) *ir.UOp {
	s.NextRange++
	return s.A.Range(s.NextRange, s.index.Do(extent))
}

// RangeID is the id of a RANGE.
func RangeID(r *ir.UOp) int { return r.Arg.(ir.RangeArg).ID }

// IsClosed reports a range that some REDUCE or STAGE closes.
func IsClosed(r *ir.UOp) bool { return RangeID(r) < FirstFree }

// IsUnit reports an extent of 1: such an axis has index 0 and no range.
func IsUnit(extent *ir.UOp) bool { return extent.IsInt(1) }

// RangesOf makes a range for every axis of a shape that is not 1, and the full
// index (0 on the axes of extent 1).
func (s *Exprs) RangesOf(shape []*ir.UOp) (ranges, index []*ir.UOp) {
	index = make([]*ir.UOp, len(shape))
	for i, extent := range shape {
		if IsUnit(extent) {
			index[i] = s.A.Index(0)
			continue
		}
		index[i] = s.NewRange(extent)
		ranges = append(ranges, index[i])
	}
	return ranges, index
}

// DropUnits keeps the index entries of axes that are not 1.
func DropUnits(shape, index []*ir.UOp) []*ir.UOp {
	var kept []*ir.UOp
	for i, extent := range shape {
		if !IsUnit(extent) {
			kept = append(kept, index[i])
		}
	}
	return kept
}

// Height is the largest canonical name closed inside u, 0 for none. See value.
func (s *Exprs) Height(u *ir.UOp) int {
	if len(u.Src) == 0 {
		return 0
	}
	if h, ok := s.heights.Get(u); ok {
		return h
	}
	h := 0
	for _, src := range u.Src {
		h = max(h, s.Height(src))
	}
	switch u.Op {
	case ir.OpReduce:
		if r := u.ReduceRange(); IsClosed(r) {
			h = max(h, RangeID(r))
		}
	case ir.OpStage:
		for _, r := range u.Src[1:] {
			if IsClosed(r) {
				h = max(h, RangeID(r))
			}
		}
	}
	s.heights.Set(u, h)
	return h
}
