package rewrite

import "tgc/ir"

var foldSet = NewSet("fold",
	"Constants: an elementwise op of constants is a constant, and so is an integer that bounds leave one value.",
	Measure{Text: "nodes that are not CONST"},
	Rule{
		Name: "constants",
		Doc:  "f(c1, c2, ..) is computed by ir.EvalScalar; Idx that overflows stays.",
		On:   elementwiseOps(),
		Go:   foldConstants,
	},
	Rule{
		Name: "one-value",
		Doc:  "x = c if bounds, residues and known bits leave only c.",
		On:   elementwiseOps(),
		Go:   foldOneValue,
	},
)

// elementwiseOps lists the ops of the table that compute element by element.
func elementwiseOps() []ir.Op {
	var list []ir.Op
	for o := ir.Op(1); int(o) < ir.NumOps; o++ {
		if o.IsElementwise() {
			list = append(list, o)
		}
	}
	return list
}

func foldConstants(c *Context, u *ir.UOp) *ir.UOp {
	args := make([]ir.Scalar, len(u.Src))
	for i, s := range u.Src {
		v, ok := s.Scalar()
		if !ok {
			return nil
		}
		args[i] = v
	}
	if u.DType == ir.Idx && !foldsExactly(u, args) {
		return nil
	}
	src := u.Src[0].DType
	if u.Op == ir.OpWhere {
		src = u.DType
	}
	return c.Arena.ConstScalar(u.DType, ir.EvalScalar(u.Op, u.DType, src, args))
}

// foldsExactly reports that Idx arithmetic on constants does not overflow.
func foldsExactly(u *ir.UOp, args []ir.Scalar) bool {
	ok := true
	switch u.Op {
	case ir.OpAdd:
		_, ok = ir.CheckedAdd(args[0].I, args[1].I)
	case ir.OpSub:
		var back int64
		back, ok = ir.CheckedMul(args[1].I, -1)
		if ok {
			_, ok = ir.CheckedAdd(args[0].I, back)
		}
	case ir.OpMul:
		_, ok = ir.CheckedMul(args[0].I, args[1].I)
	case ir.OpNeg, ir.OpAbs:
		_, ok = ir.CheckedMul(args[0].I, -1)
	case ir.OpFloorDiv:
		_, ok = ir.CheckedMul(args[0].I, -1)
		ok = ok || args[1].I != -1
	case ir.OpShl, ir.OpMulHi, ir.OpClz, ir.OpNot, ir.OpPopc:
		ok = false // bit operations have no width on Idx
	}
	return ok
}

func foldOneValue(c *Context, u *ir.UOp) *ir.UOp {
	if u.DType.IsFloat() || u.DType == ir.Void {
		return nil
	}
	if v, ok := c.Bounds.Of(u).Const(); ok {
		return c.Arena.ConstInt(u.DType, v)
	}
	return nil
}
