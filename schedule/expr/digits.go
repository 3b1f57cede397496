package expr

import (
	"slices"

	"tgc/ir"
)

// Digit is (r/lo) % (hi/lo) of a range r: a mixed-radix digit. hi is 0 when no
// modulus cuts it above.
type Digit struct{ Lo, Hi int64 }

// DigitOf recognises an index expression that is a digit of range r: chains of
// division and modulus by constants.
func DigitOf(u, r *ir.UOp) (Digit, bool) {
	if u == r {
		return Digit{Lo: 1}, true
	}
	if u.Op != ir.OpFloorDiv && u.Op != ir.OpFloorMod {
		return Digit{}, false
	}
	c, ok := u.Src[1].Int()
	if !ok || c <= 0 {
		return Digit{}, false
	}
	d, ok := DigitOf(u.Src[0], r)
	if !ok {
		return Digit{}, false
	}
	if u.Op == ir.OpFloorDiv {
		d.Lo *= c
		if d.Hi != 0 && d.Lo > d.Hi {
			return Digit{}, false
		}
		return d, true
	}
	if d.Hi == 0 || d.Hi%(d.Lo*c) == 0 {
		d.Hi = d.Lo * c
		return d, true
	}
	return Digit{}, false
}

// thresholdOf recognises a comparison of a digit of range r with a constant,
// which depends on a coarser digit only: x < c on x/c.
func thresholdOf(u, r *ir.UOp) (Digit, bool) {
	if u.Op != ir.OpCmpLt {
		return Digit{}, false
	}
	x, bound := u.Src[0], u.Src[1]
	above := int64(0)
	if x.Op == ir.OpConst { // c < x: not x < c+1
		x, bound, above = bound, x, 1
	}
	c, ok := bound.Int()
	if !ok || c+above <= 0 {
		return Digit{}, false
	}
	d, ok := DigitOf(x, r)
	d.Lo *= c + above
	return d, ok && (d.Hi == 0 || d.Hi%d.Lo == 0)
}

// Granularity is the largest g such that u depends on range r only through
// r/g as far as its index expressions show; 0 when u does not depend on r.
func (s *Exprs) Granularity(u, r *ir.UOp) int64 {
	var g int64
	s.eachDigit(u, r, func(d Digit) { g = Gcd(g, d.Lo) }, func() { g = 1 })
	return g
}

// eachDigit visits the digits of r in an expression; other is called for a use
// of r that is no digit.
func (s *Exprs) eachDigit(u, r *ir.UOp, visit func(Digit), other func()) {
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if !s.DependsOn(u, r) {
			return nil
		}
		d, ok := DigitOf(u, r)
		if !ok {
			d, ok = thresholdOf(u, r)
		}
		switch {
		case ok:
			visit(d)
			return nil
		case u == r:
			other()
			return nil
		}
		return u.Src
	}, u)
}

// DivisorChain is the list of boundaries of r in some expressions, largest
// first, that divide the extent and each other; 1 and the extent itself are left
// out.
func (s *Exprs) DivisorChain(r *ir.UOp, list ...*ir.UOp) []int64 {
	extent, ok := r.Src[0].Int()
	if !ok {
		return nil
	}
	var cuts []int64
	add := func(c int64) {
		if c > 1 && c < extent && !slices.Contains(cuts, c) {
			cuts = append(cuts, c)
		}
	}
	for _, u := range list {
		s.eachDigit(u, r, func(d Digit) { add(d.Lo); add(d.Hi) }, func() {})
	}
	slices.Sort(cuts)
	slices.Reverse(cuts)
	var chain []int64
	last := extent
	for _, c := range cuts {
		if last%c == 0 {
			chain = append(chain, c)
			last = c
		}
	}
	return chain
}

// DigitsOf makes a range for every digit of a mixed radix, the outermost first, and the
// number that they write.
func (s *Exprs) DigitsOf(extents []int64) (digits []*ir.UOp, number *ir.UOp) {
	number = s.A.Index(0)
	for _, n := range extents {
		digit := s.NewRange(s.A.Index(n))
		digits = append(digits, digit)
		number = s.A.Add(s.A.Mul(number, s.A.Index(n)), digit)
	}
	return digits, s.Simplify(number)
}

// Gcd is the greatest common divisor.
func Gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
