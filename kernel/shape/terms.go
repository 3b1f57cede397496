package shape

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
)

// precision is the number of terms that hold a value of each type.
type precision struct{ F16, BF16 int }

// TermsOf tells how many terms hold every value of a factor.
func TermsOf(bounds *ir.Bounds, u *ir.UOp) precision {
	if f, ok := u.Float(); ok && ir.RoundFloat(ir.BF16, f) == f && ir.RoundFloat(ir.F16, f) == f {
		return precision{1, 1}
	}
	if copies := ScaledCopies(u); len(copies) > 1 {
		return precision{F16: 1, BF16: 2}
	}
	none := precision{F16: 4, BF16: 3} // the range of f16 is too small for any number of terms
	if isShare(u) {
		return precision{F16: 2, BF16: 3}
	}
	if terms := StoredTerms(u); len(terms) > 1 {
		if terms[0].Value.DType == ir.F16 {
			return precision{F16: len(terms), BF16: 3}
		}
		return precision{F16: 4, BF16: len(terms)}
	}
	most, isInteger := mostOfInteger(bounds, u)
	switch {
	case Narrowest(u, ir.BF16) != u:
		return precision{F16: 4, BF16: 1}
	case Narrowest(u, ir.F16) != u:
		return precision{F16: 1, BF16: 2}
	case isInteger && most <= 1<<8:
		return precision{1, 1}
	case isInteger && most <= mostOfHalf:
		return precision{F16: 1, BF16: 2}
	}
	return none
}

// TermsOfProduct is the type of the terms of two factors, and how many of each hold them. Those of f64 are
// taken as they are.
func TermsOfProduct(bounds *ir.Bounds, rows, columns *ir.UOp) (elem ir.DType, ofRows, ofColumns int) {
	x, y := TermsOf(bounds, rows), TermsOf(bounds, columns)
	switch {
	case rows.DType == ir.F64:
		return ir.F64, 1, 1
	case x.F16 == 1 && (y.F16 == 1 || y.F16 == 2 && takesScales(bounds, rows, columns)), y.F16 == 1 && x.F16 == 2 && takesScales(bounds, columns, rows):
		return ir.F16, x.F16, y.F16
	case inPlainTerms(rows) && inPlainTerms(columns), isShare(rows) && y.F16 == 1, isShare(columns) && x.F16 == 1:
		return ir.F16, x.F16, y.F16
	}
	return ir.BF16, x.BF16, y.BF16
}

// inPlainTerms reports a factor of two terms of f16 of which neither is scaled: stored ones, or a share of a largest.
func inPlainTerms(u *ir.UOp) bool {
	if isShare(u) {
		return true
	}
	terms := StoredTerms(u)
	return len(terms) == 2 && terms[0].Value.DType == ir.F16 && terms[0].Scale == 1 && terms[1].Scale == 1
}

// isShare reports the weight of a softmax beside its largest (ir.Monoid: Share), a number from 0 to 1. Two terms of f16 are within 2^-25
// of it, as near as an f32 comes to a sum in which that largest is.
func isShare(u *ir.UOp) bool {
	if u.Op != ir.OpExp2 || u.Src[0].Op != ir.OpMin {
		return false
	}
	most, constant := lastConstant(u.Src[0])
	return constant && most <= 0
}

// IsExactSum reports that an f32 holds every sum of so many products of two factors.
func IsExactSum(bounds *ir.Bounds, x, y *ir.UOp, points int64) bool {
	mostX, okX := mostOfInteger(bounds, x)
	mostY, okY := mostOfInteger(bounds, y)
	return okX && okY && mostX*mostY <= exactInteger/points
}

// mostOfInteger is the magnitude of a float that is an integer, a stored one too; ok is false where it is not known to be one.
func mostOfInteger(bounds *ir.Bounds, u *ir.UOp) (most int64, ok bool) {
	b, ok := integerBounds(bounds, u)
	return max(b.Hi, -b.Lo), ok
}

// integerBounds are those of such a float.
func integerBounds(bounds *ir.Bounds, u *ir.UOp) (b ir.Interval, ok bool) {
	if f, ok := u.Float(); ok {
		return ir.Interval{Lo: int64(f), Hi: int64(f)}, f == math.Trunc(f) && math.Abs(f) <= exactInteger
	}
	switch {
	case u.DType.IsInt():
		b = bounds.Of(u)
		return b, b.Within(-exactInteger, exactInteger)
	case u.Op == ir.OpAdd || u.Op == ir.OpMul:
		x, okX := integerBounds(bounds, u.Src[0])
		y, okY := integerBounds(bounds, u.Src[1])
		if ok = okX && okY; u.Op == ir.OpAdd {
			b = ir.Interval{Lo: x.Lo + y.Lo, Hi: x.Hi + y.Hi}
		} else {
			corners := []int64{x.Lo * y.Lo, x.Lo * y.Hi, x.Hi * y.Lo, x.Hi * y.Hi}
			b = ir.Interval{Lo: slices.Min(corners), Hi: slices.Max(corners)}
		}
	case u.Op == ir.OpCast:
		b, ok = integerBounds(bounds, u.Src[0])
	case u.Op == ir.OpMax:
		if copies := ScaledCopies(u); len(copies) > 1 {
			b, ok = integerBounds(bounds, copies[0].Value)
		}
	case u.Op == ir.OpLoad && u.Src[0].Op == ir.OpStage:
		b, ok = integerBounds(bounds, u.Src[0].Src[0])
	}
	exact := int64(1) << (u.DType.MantissaBits() + 1) // the first bit is not stored
	return b, ok && b.Within(-exact, exact)
}

// lastConstant is the float that a node has as its last source.
func lastConstant(u *ir.UOp) (float64, bool) {
	if len(u.Src) == 0 {
		return 0, false
	}
	return u.Src[len(u.Src)-1].Float()
}

// Term is one of the stored values whose sum a factor is, of bf16, or of f16 times a power of two. The instruction
// takes terms as they are, and the other factor times that power, which is an integer that is one term (isTermCode).
type Term struct {
	Value *ir.UOp
	Scale float64
}

// StoredTerms are those of a factor, all of one type; nil where it has none.
func StoredTerms(u *ir.UOp) []Term {
	switch {
	case u.Op == ir.OpAdd:
		x, y := StoredTerms(u.Src[0]), StoredTerms(u.Src[1])
		if x == nil || y == nil || x[0].Value.DType != y[0].Value.DType {
			return nil
		}
		return append(x, y...)
	case u.Op == ir.OpMul:
		c, constant := lastConstant(u)
		if fraction, _ := math.Frexp(c); !constant || fraction != 0.5 {
			return nil
		}
		terms := StoredTerms(u.Src[0])
		if terms == nil || terms[0].Value.DType != ir.F16 {
			return nil
		}
		for i := range terms {
			terms[i].Scale *= c
		}
		return terms
	case u.Op == ir.OpCast && (u.Src[0].DType == ir.BF16 || u.Src[0].DType == ir.F16):
		return []Term{{u.Src[0], 1}}
	}
	return nil
}

// A factor of one term that lies in memory times several powers of two is written as the largest of them, each taken back: all
// are the same number. withScaled adds one of them.
func withScaled(a *ir.Arena, u, scaled *ir.UOp, scale float64) *ir.UOp {
	return a.Binary(ir.OpMax, u, a.Mul(a.Cast(scaled, u.DType), a.Const(u.DType, 1/scale)))
}

// ScaledCopies are the stored values that a factor is the same multiple of, that of scale 1 first; nil where it is no such factor.
func ScaledCopies(u *ir.UOp) []Term {
	if u.Op != ir.OpMax {
		if terms := StoredTerms(u); len(terms) == 1 && terms[0].Scale == 1 {
			return terms
		}
		return nil
	}
	for k, x := range u.Src {
		rest := ScaledCopies(u.Src[1-k])
		if terms := StoredTerms(x); len(terms) == 1 && terms[0].Scale != 1 && rest != nil {
			return append(rest, Term{terms[0].Value, 1 / terms[0].Scale})
		}
	}
	return nil
}

// mostOfHalf is the magnitude up to which an f16 holds every integer.
const mostOfHalf = 1 << 11

// HalfOf is an integer that an f16 holds as one, computed as f16 as far as it is a sum or product of such integers: nothing is rounded,
// and an instruction computes two of them.
func HalfOf(a *ir.Arena, bounds *ir.Bounds, u *ir.UOp) *ir.UOp {
	if f, ok := u.Float(); ok {
		return a.Const(ir.F16, f)
	}
	if (u.Op == ir.OpMul || u.Op == ir.OpAdd) && isTermCode(bounds, u.Src[0]) && isTermCode(bounds, u.Src[1]) {
		return a.Binary(u.Op, HalfOf(a, bounds, u.Src[0]), HalfOf(a, bounds, u.Src[1]))
	}
	return a.Cast(u, ir.F16)
}

// isTermCode reports a factor that an f16 holds, and holds times the scale of a second term, too: an integer.
func isTermCode(bounds *ir.Bounds, u *ir.UOp) bool {
	most, isInteger := mostOfInteger(bounds, u)
	return isInteger && most <= mostOfHalf
}

// takesScales reports a factor that is one f16 times the scales of another's terms, too: an integer, a half beside terms that are scaled
// for it (analyse.HalfTermScale), or one whose multiples lie in panels.
func takesScales(bounds *ir.Bounds, u, other *ir.UOp) bool {
	if isTermCode(bounds, u) || len(ScaledCopies(u)) > 1 {
		return true
	}
	terms := StoredTerms(other)
	return Narrowest(u, ir.F16) != u && len(terms) > 1 && !slices.ContainsFunc(terms, func(t Term) bool { return t.Scale < analyse.HalfTermScale })
}

// Narrowest is what a factor of a type was converted from.
func Narrowest(u *ir.UOp, elem ir.DType) *ir.UOp {
	if u.Op == ir.OpCast && u.Src[0].DType == elem {
		return u.Src[0]
	}
	return u
}
