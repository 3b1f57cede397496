package rangeify

import (
	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// AFTER reads a stored tensor a second time: a version of its own kind, on the
// same memory. Its readers are other expressions than those of the first
// reading, and they wait for the values that AFTER names, so that the second
// computation does not run beside the first.

// addReading registers what an AFTER node reads. Without values to wait for it
// only marks its source.
func (s *builder) addReading(u *ir.UOp) {
	if len(u.Src) == 1 {
		return
	}
	slot := len(s.Versions)
	v := &state.Version{Previous: -1, Writer: -1, Under: -1, Waits: s.valuesOf(u.Src[1:])}
	if stored, ok := s.valueOf[u.Src[0]]; ok {
		v.Buffer, v.Writer = stored.Node, stored.ID
		s.Mutable[stored.Node] = true
	} else {
		v.Under = s.versionOf[u.Src[0]]
		base := s.Versions[v.Under]
		v.Buffer, v.Number, v.Writer = base.Buffer, base.Number, base.Writer
	}
	v.Param = s.A.Make(ir.OpParam, u.DType, ir.ParamArg{Slot: slot}, v.Buffer.Src...)
	s.Versions = append(s.Versions, v)
	s.versionOf[u] = slot
}

// readAgain is an element of an AFTER node.
func (s *builder) readAgain(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	if len(u.Src) == 1 {
		return s.at(u.Src[0], index)
	}
	v := s.Versions[s.versionOf[u]]
	if v.Buffer.Op == ir.OpValue { // values have no axes of extent 1
		index = expr.DropUnits(s.shapes.Of(u), index)
	}
	return s.A.Load(v.Param, index...)
}

// valuesOf lists the values that tensors are, or are computed from.
func (s *builder) valuesOf(tensors []*ir.UOp) []int {
	var r state.Reads
	var seen ir.Visited
	for _, t := range tensors {
		_, index := s.RangesOf(s.shapes.Of(t))
		state.CollectReads(s.at(t, index), &seen, &r)
	}
	return append(r.Values, s.Writers(r.Versions)...)
}
