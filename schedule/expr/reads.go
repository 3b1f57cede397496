package expr

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// LoadsOf lists the reads of a param in an expression.
func (s *Exprs) LoadsOf(body, param *ir.UOp) []*ir.UOp {
	return lists.Filter(ir.Toposort(body), func(u *ir.UOp) bool { return u.Op == ir.OpLoad && u.Src[0] == param })
}

// IsNarrowing reports the conversion to a byte of something wider: a value worth
// keeping, however cheap it is to make.
func IsNarrowing(u *ir.UOp) bool {
	return u.Op == ir.OpCast && u.DType.IsInt() && u.DType.Size() == 1 && u.Src[0].DType.Size() > 1
}

// RoundsToHalf reports a float that is rounded to one of 16 bits.
func RoundsToHalf(u *ir.UOp) bool {
	if u.Op != ir.OpCast || u.DType != ir.F32 || u.Src[0].Op != ir.OpCast {
		return false
	}
	half := u.Src[0]
	return (half.DType == ir.F16 || half.DType == ir.BF16) && half.Src[0].DType == ir.F32
}

// ReadsField reports an expression that reads packed data.
func (s *Exprs) ReadsField(u *ir.UOp) bool {
	if len(u.Src) == 0 || u.Op == ir.OpField {
		return u.Op == ir.OpField
	}
	hit, ok := s.fields.Get(u)
	if !ok {
		hit = slices.ContainsFunc(u.Src, s.ReadsField)
		s.fields.Set(u, hit)
	}
	return hit
}

// HasLoad reports that an index expression depends on memory.
func HasLoad(u *ir.UOp) bool {
	if u.Op == ir.OpLoad || u.Op == ir.OpReduce || u.Op == ir.OpField {
		return true
	}
	return u.Op != ir.OpRange && slices.ContainsFunc(u.Src, HasLoad)
}
