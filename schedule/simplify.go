package schedule

import "tgc/ir"

// simplify brings an index expression or condition to its canonical form.
func (s *scheduler) simplify(u *ir.UOp) *ir.UOp { return s.index.Do(u) }

// simplifyNode simplifies a node whose sources are simplified: index
// expressions, conditions and integers that positions are computed in, and the
// WHEREs that they decide. Float arithmetic
// is left alone.
func (s *scheduler) simplifyNode(u *ir.UOp) *ir.UOp {
	switch {
	case u.Op == ir.OpRange:
		return u
	case u.DType == ir.Idx || u.DType == ir.Bool || u.DType == ir.I32 || u.DType == ir.I64:
		return s.simplify(u)
	case u.Op == ir.OpWhere:
		return s.choose(u)
	}
	return u
}
