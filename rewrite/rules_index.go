package rewrite

import "tgc/ir"

// Tensor programs compute coordinates in i32 or i64; kernels index with Idx.
// Arithmetic whose operands come from Idx goes back to Idx where bounds show
// that the fixed-width version cannot wrap, so that it meets the linear forms.
var indexCast = NewSet("index/cast",
	"Integer arithmetic on converted indices is done on the indices.",
	Measure{Text: "conversions between Idx and integers"},
	Rule{
		Name: "lift",
		Doc:  "T(a) + T(b) = T(a + b) for Idx a, b (or constants) if neither side wraps; also -, *, /, %, min, max, negation and comparisons.",
		On:   []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg, ir.OpFloorDiv, ir.OpFloorMod, ir.OpMin, ir.OpMax, ir.OpCmpLt, ir.OpCmpEq},
		Go:   liftRule,
	},
	Rule{
		Name: "split",
		Doc:  "idx(i + j) = idx(i) + idx(j) if the sum does not wrap, and idx(T(a)) = a; also -, and * by an index or a constant.",
		On:   []ir.Op{ir.OpCast},
		Go:   splitRule,
	},
)

func liftRule(c *Context, u *ir.UOp) *ir.UOp {
	d := u.Src[0].DType
	if !d.IsInt() {
		return nil
	}
	src := make([]*ir.UOp, len(u.Src))
	fromIndex := false
	for i, s := range u.Src {
		idx, isIndex := c.indexOf(s)
		if idx == nil {
			return nil
		}
		src[i] = idx
		fromIndex = fromIndex || isIndex
	}
	if !fromIndex {
		return nil
	}
	if u.DType == ir.Bool {
		return c.Arena.Make(u.Op, ir.Bool, nil, src...)
	}
	lifted := c.Arena.Make(u.Op, ir.Idx, nil, src...)
	if !holdsAll(c, d, lifted) {
		return nil
	}
	return c.Arena.Cast(lifted, d)
}

// indexOf is the Idx that an exact conversion or a constant stands for; nil
// when there is none. isIndex is false for the constant.
func (c *Context) indexOf(u *ir.UOp) (idx *ir.UOp, isIndex bool) {
	if v, ok := u.Int(); ok && (u.DType != ir.U64 || v >= 0) {
		return c.Arena.Index(v), false
	}
	if u.Op == ir.OpCast && u.Src[0].DType == ir.Idx && holdsAll(c, u.DType, u.Src[0]) {
		return u.Src[0], true
	}
	return nil, false
}

func splitRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.DType != ir.Idx {
		return nil
	}
	sum := u.Src[0]
	if !sum.DType.IsInt() || sum.Op != ir.OpAdd && sum.Op != ir.OpSub && sum.Op != ir.OpMul {
		return nil
	}
	src := make([]*ir.UOp, 2)
	indexes := 0
	for i, s := range sum.Src {
		if idx, _ := c.indexOf(s); idx != nil {
			src[i] = idx
			indexes++
		} else {
			src[i] = c.Arena.Cast(s, ir.Idx)
		}
	}
	if indexes == 0 && sum.Op == ir.OpMul {
		return nil // no linear form
	}
	split := c.Arena.Make(sum.Op, ir.Idx, nil, src...)
	if !holdsAll(c, sum.DType, split) {
		return nil
	}
	return split
}
