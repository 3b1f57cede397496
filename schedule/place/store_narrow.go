package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// StoreNarrow stores values that end in a widening conversion of a float before
// it; their readers convert. Half the bytes move, and a reader sees from its own
// expression that few bits suffice: a matrix product of halves is one
// instruction. What only moves such values, rows that memory names for example, is narrow then, too.
func StoreNarrow(s *state.State) {
	for storeNarrow(s) {
	}
}

// storeNarrow is a pass over all values, and reports whether there may be more.
func storeNarrow(s *state.State) bool {
	live := s.LiveValues()
	read := make(map[*ir.UOp]*ir.UOp)
	for _, v := range live {
		if y := widened(v.Body); y != nil && v.Target < 0 && !v.Pinned && onlyLoaded(s.Graph, v, live) {
			narrow := s.A.Make(ir.OpValue, y.DType, v.Node.Arg, v.Node.Src...)
			read[v.Node] = narrow
			v.Node, v.Body = narrow, y
			s.Record(v, true, "conversion of "+y.DType.String())
		}
	}
	if len(read) == 0 {
		return false
	}
	for _, v := range live {
		v.Body = widenReads(s.Exprs, v.Body, read)
		for i, x := range v.Index {
			v.Index[i] = widenReads(s.Exprs, x, read)
		}
	}
	return true
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
func onlyLoaded(s *state.Graph, v *state.Value, live []*state.Value) bool {
	for _, version := range s.Versions {
		if version.Buffer == v.Node {
			return false
		}
	}
	for _, reader := range live {
		for _, u := range ir.Toposort(append(slices.Clone(reader.StoreIndex()), reader.Body)...) {
			if i := slices.Index(u.Src, v.Node); i > 0 || i == 0 && u.Op != ir.OpLoad {
				return false
			}
		}
	}
	return true
}

// widenReads converts what is read of narrow values.
func widenReads(s *expr.Exprs, u *ir.UOp, read map[*ir.UOp]*ir.UOp) *ir.UOp {
	return s.A.Rebuild(u, func(x *ir.UOp, src []*ir.UOp) *ir.UOp {
		narrow := firstOf(x, read)
		if narrow == nil {
			return nil
		}
		load := append([]*ir.UOp{narrow}, src[1:]...)
		return s.A.Cast(s.A.Make(ir.OpLoad, narrow.DType, x.Arg, load...), x.DType)
	})
}

// firstOf is the narrow value that a LOAD reads; nil for other nodes.
func firstOf(x *ir.UOp, read map[*ir.UOp]*ir.UOp) *ir.UOp {
	if x.Op != ir.OpLoad {
		return nil
	}
	return read[x.Src[0]]
}
