package state

import (
	"tgc/internal/lists"
	"tgc/ir"
)

// IsRead reports LOAD(VALUE, ..) and returns the value.
func (s *Graph) IsRead(u *ir.UOp) (*Value, bool) {
	if u.Op == ir.OpLoad && u.Src[0].Op == ir.OpValue {
		return s.Values[u.Src[0].Arg.(ir.ValueArg).ID], true
	}
	return nil, false
}

// IsPointwise reports a body without REDUCE or STAGE.
func (s *Graph) IsPointwise(v *Value) bool { return s.Height(v.Body) == 0 }

// Instantiate is a value's body at an index into its signature. The index must
// not use closed ranges that the body closes too (see value): callers rename
// the reduces around a use first.
func (s *Graph) Instantiate(v *Value, index []*ir.UOp) *ir.UOp {
	key := instKey{v.Body, s.A.Make(ir.OpSink, ir.Void, nil, index...)}
	if e, ok := s.instMemo[key]; ok {
		return e
	}
	e := s.AtIndex(v.Ranges, v.Body, index)
	s.instMemo[key] = e
	return e
}

// SetSignature gives a new value ranges of its own for those that its body uses.
func (s *Graph) SetSignature(v *Value, ranges []*ir.UOp, body *ir.UOp) {
	own := make([]*ir.UOp, len(ranges))
	extents := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		own[i] = s.NewRange(r.Src[0])
		extents[i] = r.Src[0]
	}
	v.Ranges, v.Body = own, s.AtIndex(ranges, body, own)
	v.Node = s.A.Make(ir.OpValue, body.DType, ir.ValueArg{ID: v.ID}, extents...)
}

// NewValue adds a value over the given ranges. The body is set by the caller
// when it is not known yet.
func (s *Graph) NewValue(dtype ir.DType, ranges []*ir.UOp, body *ir.UOp) *Value {
	extents := lists.Map(ranges, func(r *ir.UOp) *ir.UOp { return r.Src[0] })
	id := len(s.Values)
	v := &Value{
		ID: id, Ranges: ranges, Body: body, Target: -1,
		Node: s.A.Make(ir.OpValue, dtype, ir.ValueArg{ID: id}, extents...),
	}
	s.Values = append(s.Values, v)
	return v
}
