package ir

import (
	"fmt"
	"math"
	"math/bits"
)

// The ends of int64 stand for minus and plus infinity in an Interval.
const (
	NegInf = math.MinInt64
	PosInf = math.MaxInt64
)

// Interval is what bounds analysis knows about an integer, Bool or Idx value:
// a range, a residue class and bits. Every part holds by itself.
type Interval struct {
	// Lo <= value <= Hi; NegInf and PosInf are "no bound". A U64 past
	// MaxInt64 counts as past every bound.
	Lo, Hi int64
	// value = Mult*n + Rem for some integer n, 0 <= Rem < Mult. Mult 1 says
	// nothing, Mult 0 means the constant Rem.
	Mult, Rem int64
	// Bits known to be 0 and known to be 1, sign-extended (or zero-extended,
	// for unsigned dtypes) to 64 bits.
	Zeros, Ones uint64
}

// anything is the interval that says nothing.
var anything = Interval{Lo: NegInf, Hi: PosInf, Mult: 1}

// String shows range, residue and bits where they say something.
func (v Interval) String() string {
	end := func(x int64) string {
		switch x {
		case NegInf:
			return "-inf"
		case PosInf:
			return "+inf"
		}
		return fmt.Sprint(x)
	}
	s := "[" + end(v.Lo) + ", " + end(v.Hi) + "]"
	if v.Mult > 1 {
		s += fmt.Sprintf(" = %d mod %d", v.Rem, v.Mult)
	}
	return s
}

// Const reports a value with one possibility.
func (v Interval) Const() (int64, bool) {
	return v.Lo, v.Lo == v.Hi && v.Lo != PosInf && v.Lo != NegInf
}

// DivisibleBy reports that n (positive) divides the value.
func (v Interval) DivisibleBy(n int64) bool { return v.Mult%n == 0 && v.Rem%n == 0 }

// Within reports lo <= value <= hi for finite lo and hi.
func (v Interval) Within(lo, hi int64) bool { return v.Lo >= lo && v.Hi <= hi && v.Hi != PosInf }

// Finite reports that both ends are known.
func (v Interval) Finite() bool { return v.Lo != NegInf && v.Hi != PosInf }

// constant is the interval of one value.
func constant(v int64) Interval {
	return Interval{Lo: v, Hi: v, Mult: 0, Rem: v, Zeros: ^uint64(v), Ones: uint64(v)}
}

// span is the interval lo..hi.
func span(lo, hi int64) Interval { return Interval{Lo: lo, Hi: hi, Mult: 1} }

// settle lets range, residue and bits sharpen each other. Contradictions (dead
// code) leave the parts as they are.
func (v Interval) settle(d DType) Interval {
	if d == U64 && v.Hi == PosInf && v.Zeros>>63 == 0 {
		return v.residueFromBits() // no sign bit to reason with
	}
	if v.Lo >= 0 {
		v.Zeros |= 1 << 63
		if v.Hi != PosInf {
			v.Zeros |= ^(uint64(1)<<bits.Len64(uint64(v.Hi)) - 1)
		}
	}
	v = v.residueFromBits()
	v = v.bitsFromResidue()
	if v.Zeros>>63 == 1 && v.Zeros&v.Ones == 0 {
		v.Hi = min(v.Hi, int64(^v.Zeros))
		v.Lo = max(v.Lo, int64(v.Ones))
	}
	if v.Mult > 1 {
		if v.Lo != NegInf {
			if gap := FloorMod(v.Rem-FloorMod(v.Lo, v.Mult), v.Mult); v.Lo <= PosInf-1-gap {
				v.Lo += gap
			}
		}
		if v.Hi != PosInf {
			if gap := FloorMod(FloorMod(v.Hi, v.Mult)-v.Rem, v.Mult); v.Hi >= NegInf+1+gap {
				v.Hi -= gap
			}
		}
	}
	if c, ok := v.Const(); ok {
		return constant(c)
	}
	return v
}

// residueFromBits turns known low bits into a residue class.
func (v Interval) residueFromBits() Interval {
	low := bits.TrailingZeros64(^(v.Zeros | v.Ones))
	if low == 0 || low >= 62 || v.Mult == 0 {
		return v
	}
	m := int64(1) << low
	if m > v.Mult && m%v.Mult == 0 {
		v.Mult, v.Rem = m, int64(v.Ones)&(m-1)
	}
	return v
}

// bitsFromResidue turns a residue class into known low bits.
func (v Interval) bitsFromResidue() Interval {
	if v.Mult <= 1 {
		return v
	}
	mask := uint64(1)<<bits.TrailingZeros64(uint64(v.Mult)) - 1
	v.Ones |= uint64(v.Rem) & mask
	v.Zeros |= ^uint64(v.Rem) & mask
	return v
}

// wrap brings the exact result of arithmetic into a fixed-width dtype: where
// it may not fit, only the residue of a power of two and low bits survive.
func (v Interval) wrap(d DType) Interval {
	if d == Idx {
		return v.settle(d)
	}
	lo, hi := d.IntRange()
	fits := v.Lo >= lo && v.Hi <= hi
	if d == I64 || d == U64 {
		// An end of int64 may be a saturated overflow.
		fits = fits && v.Lo != NegInf && v.Hi != PosInf
	}
	if fits {
		return v.settle(d)
	}
	v.Lo, v.Hi = lo, hi
	v.Zeros, v.Ones = 0, 0
	if width := intBits(d); v.Mult != 1 {
		v.Mult = GCD(v.Mult, 1<<min(width, 62))
		v.Rem = FloorMod(v.Rem, v.Mult)
	}
	return v.settle(d)
}

// rangeOf is what a dtype alone says.
func rangeOf(d DType) Interval {
	if d.IsFloat() || d == Void {
		return anything
	}
	lo, hi := d.IntRange()
	v := span(lo, hi)
	if !d.IsSigned() && d != U64 {
		v.Zeros = ^uint64(hi)
	}
	return v
}

// GCD is the greatest common divisor of absolute values; GCD(0, x) is |x|. MinInt64
// counts as 1.
func GCD(a, b int64) int64 {
	if a == math.MinInt64 || b == math.MinInt64 {
		return 1
	}
	a, b = max(a, -a), max(b, -b)
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// satAdd and satMul saturate at the infinities.
func satAdd(a, b int64) int64 {
	s := a + b
	switch {
	case a == NegInf || b == NegInf || a < 0 && b < 0 && s >= 0:
		return NegInf
	case a == PosInf || b == PosInf || a > 0 && b > 0 && s < 0:
		return PosInf
	}
	return s
}

func satMul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if p, ok := CheckedMul(a, b); ok && !isInf(a) && !isInf(b) {
		return p
	}
	if (a < 0) == (b < 0) {
		return PosInf
	}
	return NegInf
}

func isInf(v int64) bool { return v == NegInf || v == PosInf }

// CheckedAdd is a+b; ok is false on overflow.
func CheckedAdd(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// CheckedMul is a*b; ok is false on overflow.
func CheckedMul(a, b int64) (product int64, ok bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	if a == math.MinInt64 || b == math.MinInt64 {
		return a * b, a == 1 || b == 1
	}
	product = a * b
	return product, product/b == a
}

// satDiv is floor(a/b) for b != 0, with infinite a or b.
func satDiv(a, b int64) int64 {
	switch {
	case isInf(b) && isInf(a):
		return map[bool]int64{true: 0, false: -1}[(a < 0) == (b < 0)]
	case isInf(b):
		if a == 0 || (a < 0) == (b < 0) {
			return 0
		}
		return -1
	case isInf(a):
		if (a < 0) == (b < 0) {
			return PosInf
		}
		return NegInf
	}
	return FloorDiv(a, b)
}
