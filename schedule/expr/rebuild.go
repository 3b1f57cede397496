package expr

import "tgc/ir"

// RewriteReduces applies f to every plain REDUCE of an expression, inner ones
// first, and keeps the canonical names.
func (s *Exprs) RewriteReduces(u *ir.UOp, f func(*ir.UOp) *ir.UOp) *ir.UOp {
	out := s.rebuild(u, nil, f)
	if out != u { // inner reduces may have made way for outer names: settle
		out = s.rebuild(out, nil, nil)
	}
	return out
}

// ReplaceNodes puts other nodes in place of some and keeps the canonical names.
func (s *Exprs) ReplaceNodes(body *ir.UOp, with map[*ir.UOp]*ir.UOp) *ir.UOp {
	return s.RewriteReduces(s.rebuild(body, with, nil), nil)
}

// rebuild puts other nodes in place of some, applies f, if there is one, to every
// plain REDUCE, and gives binders their canonical names, inner ones first.
func (s *Exprs) rebuild(u *ir.UOp, with map[*ir.UOp]*ir.UOp, f func(*ir.UOp) *ir.UOp) *ir.UOp {
	r := ir.Rebuild{
		Arena: s.A,
		Instead: func(u *ir.UOp) *ir.UOp {
			if to := with[u]; to != nil {
				return to
			}
			if s.Height(u) == 0 {
				return u
			}
			return nil
		},
		Visit: func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
			u = s.A.With(u, src)
			switch u.Op {
			case ir.OpReduce:
				u = s.CloseReduce(u)
				if f != nil && u.Arg.(ir.ReduceArg).Op != ir.OpInvalid {
					u = f(u)
				}
			case ir.OpStage:
				u = s.CloseStage(u)
			}
			return u
		},
	}
	return r.Do(u)
}
