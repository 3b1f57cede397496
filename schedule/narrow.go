package schedule

import (
	"slices"

	"tgc/ir"
)

// storeNarrow stores values that end in a widening conversion of a float before
// it; their readers convert. Half the bytes move, and a reader sees from its own
// expression that few bits suffice: a matrix product of halves is one
// instruction.
func (s *scheduler) storeNarrow() {
	live := s.liveValues()
	read := make(map[*ir.UOp]*ir.UOp)
	for _, v := range live {
		if y := widened(v.body); y != nil && v.target < 0 && !v.pinned && s.onlyLoaded(v, live) {
			narrow := s.a.Make(ir.OpValue, y.DType, v.node.Arg, v.node.Src...)
			read[v.node] = narrow
			v.node, v.body = narrow, y
			s.record(NarrowStore, v, true, "conversion of "+y.DType.String())
		}
	}
	if len(read) == 0 {
		return
	}
	for _, v := range live {
		v.body = s.widenReads(v.body, read)
		for i, x := range v.index {
			v.index[i] = s.widenReads(x, read)
		}
	}
}

// widened is the operand of an exact conversion to a wider float; else nil.
func widened(u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpCast || u.DType != ir.F32 {
		return nil
	}
	if y := u.Src[0]; y.DType == ir.F16 || y.DType == ir.BF16 {
		return y
	}
	return nil
}

// onlyLoaded reports a value of which nothing but elements is read.
func (s *scheduler) onlyLoaded(v *value, live []*value) bool {
	for _, version := range s.versions {
		if version.buffer == v.node {
			return false
		}
	}
	for _, reader := range live {
		for _, u := range ir.Toposort(append(slices.Clone(reader.storeIndex()), reader.body)...) {
			if i := slices.Index(u.Src, v.node); i > 0 || i == 0 && u.Op != ir.OpLoad {
				return false
			}
		}
	}
	return true
}

// widenReads converts what is read of narrow values.
func (s *scheduler) widenReads(u *ir.UOp, read map[*ir.UOp]*ir.UOp) *ir.UOp {
	a := s.a
	done := make(map[*ir.UOp]*ir.UOp)
	for _, x := range ir.Toposort(u) {
		src := make([]*ir.UOp, len(x.Src))
		for i, y := range x.Src {
			src[i] = done[y]
		}
		if narrow := firstOf(x, read); narrow != nil {
			src[0] = narrow
			done[x] = a.Cast(a.Make(ir.OpLoad, narrow.DType, x.Arg, src...), x.DType)
			continue
		}
		done[x] = a.With(x, src)
	}
	return done[u]
}

// firstOf is the narrow value that a LOAD reads; nil for other nodes.
func firstOf(x *ir.UOp, read map[*ir.UOp]*ir.UOp) *ir.UOp {
	if x.Op != ir.OpLoad {
		return nil
	}
	return read[x.Src[0]]
}
