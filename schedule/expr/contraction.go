package expr

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"tgc/ir"
	"tgc/ir/analyse"
)

// Contraction is a sum of products taken apart, before it is decided in which form it
// is computed. Of a weight with a scale and a minimum for each group, d*sc*q - dmin*m,
//
//	sum_k y*(d*sc*q - dmin*m)
//
// has two terms, with k as digits b, g and j:
//
//	  b: d     g: sc  j: q y
//	- b: dmin  g: m   j: y
//
// What is multiplied stands at the innermost digit that it depends on: scales at the
// levels of their groups, integers and activations at the last one.
type Contraction struct {
	Sum   *ir.UOp // the REDUCE that it was derived from
	Terms []Term
}

// Term is one of the products that a contraction sums.
type Term struct {
	Minus   bool      // it is subtracted from those before it
	Outside []*ir.UOp // factors free of the sum's range
	Levels  []Level   // outermost first
}

// Level is a digit of the sum's range with the factors that depend on it, but on no
// digit inside of it.
type Level struct {
	Range   *ir.UOp
	Factors []*ir.UOp
	Inside  []*ir.UOp // factors that multiply what is inside before the others do
}

// Innermost is the level that has a factor for every point.
func (t *Term) Innermost() *Level { return &t.Levels[len(t.Levels)-1] }

// IsFlat reports a contraction that is the sum as it stands: nothing is coarser than
// its range.
func (c *Contraction) IsFlat() bool { return len(c.Terms) == 1 && len(c.Terms[0].Levels) == 1 }

// ContractionOf derives the contraction of a float sum, whose factors are given: the
// caller may know what the values that they read are made of. Digits are cut where index
// expressions of the factors and of the sums beside it cut the range, so that all of them
// can share loops.
func (s *Exprs) ContractionOf(u *ir.UOp, factors []*ir.UOp, beside []*ir.UOp) *Contraction {
	k := u.ReduceRange()
	cuts := slices.Clone(factors)
	for _, other := range beside {
		if other.ReduceRange() == k {
			cuts = append(cuts, other.Src[0])
		}
	}
	chain := s.DivisorChain(k, cuts...)
	c := &Contraction{Sum: u}
	for _, t := range s.terms(factors, k, false) {
		t.Outside, t.Levels = s.levels(t.Innermost().Factors, k, chain)
		c.Terms = append(c.Terms, t)
	}
	return c
}

// terms distributes a product over a packed weight of two terms, of which one has a
// factor that is coarser than the weight. Each term then has scales of its own.
func (s *Exprs) terms(factors []*ir.UOp, k *ir.UOp, minus bool) []Term {
	i := slices.IndexFunc(factors, func(f *ir.UOp) bool { return s.isSumOfScaled(f, k) })
	if i < 0 {
		return []Term{{Minus: minus, Levels: []Level{{Range: k, Factors: factors}}}}
	}
	f := factors[i]
	left := s.terms(InPlace(factors, i, f.Src[0]), k, minus)
	return append(left, s.terms(InPlace(factors, i, f.Src[1]), k, minus != (f.Op == ir.OpSub))...)
}

// InPlace is a list of factors with those of u in place of the i-th.
func InPlace(factors []*ir.UOp, i int, u *ir.UOp) []*ir.UOp {
	return slices.Concat(factors[:i], analyse.Factors(u), factors[i+1:])
}

// levels writes k as digits, one for every boundary of the chain, and puts each factor
// at the innermost digit that it depends on. Where no factor is as coarse as a boundary
// k stays one digit.
func (s *Exprs) levels(factors []*ir.UOp, k *ir.UOp, chain []int64) (outside []*ir.UOp, levels []Level) {
	isCoarse := func(f *ir.UOp) bool {
		g := s.Granularity(f, k)
		return g > 1 && slices.ContainsFunc(chain, func(c int64) bool { return g%c == 0 })
	}
	if !slices.ContainsFunc(factors, isCoarse) {
		return nil, []Level{{Range: k, Factors: factors}}
	}
	above, _ := k.Src[0].Int()
	var extents []int64
	for _, c := range append(slices.Clone(chain), 1) {
		extents = append(extents, above/c)
		above = c
	}
	digits, number := s.DigitsOf(extents)
	for _, digit := range digits {
		levels = append(levels, Level{Range: digit})
	}
	for _, f := range factors {
		f = s.Substitute(f, map[*ir.UOp]*ir.UOp{k: number})
		at := len(levels) - 1
		for at >= 0 && !s.DependsOn(f, levels[at].Range) {
			at--
		}
		if at < 0 {
			outside = append(outside, f)
		} else {
			levels[at].Factors = append(levels[at].Factors, f)
		}
	}
	return outside, levels
}

// JoinDigits makes of the two innermost digits of each term one, while the last has fewer than least points and
// both have at most most, where nothing is multiplied between them: an instruction that sums so many takes both at once.
func (s *Exprs) JoinDigits(c *Contraction, least, most int64) {
	for i := range c.Terms {
		t := &c.Terms[i]
		for len(t.Levels) > 1 {
			outer, inner := &t.Levels[len(t.Levels)-2], t.Innermost()
			n, constant := outer.Range.Src[0].Int()
			m, known := inner.Range.Src[0].Int()
			if !constant || !known || m >= least || n*m > most || len(outer.Factors)+len(outer.Inside)+len(inner.Inside) > 0 {
				break
			}
			digits, _ := s.DigitsOf([]int64{n * m})
			with := map[*ir.UOp]*ir.UOp{
				outer.Range: s.A.Div(digits[0], s.A.Index(m)),
				inner.Range: s.A.Mod(digits[0], s.A.Index(m)),
			}
			joined := Level{Range: digits[0]}
			for _, f := range inner.Factors {
				joined.Factors = append(joined.Factors, s.Substitute(f, with))
			}
			t.Levels = append(t.Levels[:len(t.Levels)-2], joined)
		}
	}
}

// JoinScales has integer scales multiply the codes of their groups where an instruction sums so many points
// at once as several groups have:
//
//	g: sc  j: q y  ->  j: f(sc*q) y
//
// for products that most holds; all these groups are then one sum.
func (s *Exprs) JoinScales(c *Contraction, points int64, most int64) {
	for i := range c.Terms {
		t := &c.Terms[i]
		if len(t.Levels) < 2 {
			continue
		}
		outer, inner := &t.Levels[len(t.Levels)-2], t.Innermost()
		n, constant := outer.Range.Src[0].Int()
		m, known := inner.Range.Src[0].Int()
		if !constant || !known || m >= points || n*m < points || points%m != 0 || n%(points/m) != 0 || len(outer.Inside)+len(inner.Inside) > 0 {
			continue
		}
		factors := s.scaledCodes(outer.Factors, inner.Factors, most)
		if factors == nil {
			continue
		}
		extents := []int64{points}
		if n*m > points {
			extents = []int64{n * m / points, points}
		}
		digits, number := s.DigitsOf(extents)
		with := map[*ir.UOp]*ir.UOp{
			outer.Range: s.A.Div(number, s.A.Index(m)),
			inner.Range: s.A.Mod(number, s.A.Index(m)),
		}
		t.Levels = t.Levels[:len(t.Levels)-2]
		for _, d := range digits {
			t.Levels = append(t.Levels, Level{Range: d})
		}
		for _, f := range factors {
			t.Innermost().Factors = append(t.Innermost().Factors, s.Substitute(f, with))
		}
	}
}

// scaledCodes are the factors of points with the code among them multiplied with scales; nil where scales or
// codes are no integers, or their products larger than most.
func (s *Exprs) scaledCodes(scales, factors []*ir.UOp, most int64) []*ir.UOp {
	i := slices.IndexFunc(factors, s.ReadsField)
	if i < 0 || len(scales) == 0 {
		return nil
	}
	product := s.IntegerOf(factors[i])
	for _, f := range scales {
		x := s.IntegerOf(f)
		if x == nil || product == nil {
			return nil
		}
		product = s.A.Mul(product, x)
	}
	if product == nil || !s.Bounds.Of(product).Within(-most, most) {
		return nil
	}
	return InPlace(factors, i, s.A.Cast(product, factors[i].DType))
}

// IntegerOf is the integer of which a factor of a weight is the float; nil where it is none.
func (s *Exprs) IntegerOf(f *ir.UOp) *ir.UOp {
	offset := int64(0)
	if !s.isFieldsOnly(f) {
		return nil
	}
	if s.RoleOf(f) == OffsetCode {
		c, _ := f.Src[1].Float()
		if offset = int64(c); f.Op == ir.OpSub {
			offset = -offset
		}
		f = f.Src[0]
	}
	if f.Op != ir.OpCast || !f.Src[0].DType.IsInt() {
		return nil
	}
	x := s.A.Cast(f.Src[0], ir.I32)
	if offset == 0 {
		return x
	}
	return s.A.Add(x, s.A.ConstInt(ir.I32, offset))
}

// Nest writes a contraction as sums in sums, each with the factors of its level; what
// the innermost sums are is up to innermost.
func (s *Exprs) Nest(c *Contraction, innermost func(*Level) *ir.UOp) *ir.UOp {
	var total *ir.UOp
	for i := range c.Terms {
		t := &c.Terms[i]
		x := innermost(t.Innermost())
		for _, l := range slices.Backward(t.Levels[:len(t.Levels)-1]) {
			x = analyse.Product(s.A, append([]*ir.UOp{x}, l.Inside...))
			x = s.SumOf(append(slices.Clone(l.Factors), x), l.Range, x.DType)
		}
		x = analyse.Product(s.A, append(slices.Clone(t.Outside), x))
		switch {
		case total == nil:
			total = x
		case t.Minus:
			total = s.A.Sub(total, x)
		default:
			total = s.A.Add(total, x)
		}
	}
	return total
}

// SeparateOffsets makes of every term with an offset two: that of the stored integer and
// that of the constant,
//
//	b: d  h: s  g: sc  j: (q + c) y  ->  b: d  h: s  g: sc  j: q y  +  b: d  h:  g: sc*(s*..)  j: c y
//
// In the latter the scales of activations stand next to what is inside of the innermost
// scale of the weight, so that all that is free of rows is one number.
func (s *Exprs) SeparateOffsets(c *Contraction) {
	var terms []Term
	for _, t := range c.Terms {
		last := t.Innermost()
		i := slices.IndexFunc(last.Factors, func(f *ir.UOp) bool { return s.RoleOf(f) == OffsetCode })
		if i < 0 {
			terms = append(terms, t)
			continue
		}
		f := last.Factors[i]
		code, offset := t, t
		code.Levels = append(slices.Clone(t.Levels[:len(t.Levels)-1]), Level{Range: last.Range, Factors: InPlace(last.Factors, i, f.Src[0])})
		offset.Levels = append(s.activationsInside(t.Levels[:len(t.Levels)-1], false), Level{Range: last.Range, Factors: InPlace(last.Factors, i, f.Src[1])})
		offset.Minus = t.Minus != (f.Op == ir.OpSub)
		terms = append(terms, code, offset)
	}
	c.Terms = terms
}

// ScaleOwnSums has the scales of activations multiply sums of activations alone, those of minima
// of weights, before the scales of rows do: the product is one number for all rows.
func (s *Exprs) ScaleOwnSums(c *Contraction) {
	for i := range c.Terms {
		t := &c.Terms[i]
		if last := len(t.Levels) - 1; last > 0 && !slices.ContainsFunc(t.Innermost().Factors, s.ReadsField) {
			t.Levels = append(s.activationsInside(t.Levels[:last], true), t.Levels[last])
		}
	}
}

// activationsInside moves scales that are no weights from outer levels to the innermost
// one with a scale that is a weight, and there, too, if own.
func (s *Exprs) activationsInside(levels []Level, own bool) []Level {
	levels = slices.Clone(levels)
	at := len(levels) - 1
	for at >= 0 && !slices.ContainsFunc(levels[at].Factors, s.ReadsField) {
		at--
	}
	outer := max(at, 0)
	if own {
		outer = at + 1
	}
	for i := range outer {
		for _, f := range levels[i].Factors {
			if !s.ReadsField(f) {
				levels[at].Inside = append(slices.Clone(levels[at].Inside), f)
			}
		}
		levels[i].Factors = slices.DeleteFunc(slices.Clone(levels[i].Factors), func(f *ir.UOp) bool { return !s.ReadsField(f) })
	}
	return levels
}

// SumOf is the sum of a product over a range, the number of its points where there are
// no factors.
func (s *Exprs) SumOf(factors []*ir.UOp, r *ir.UOp, dtype ir.DType) *ir.UOp {
	p := analyse.Product(s.A, factors)
	if p == nil {
		p = s.A.Const(dtype, 1)
	}
	return s.CloseReduce(s.A.Reduce(ir.OpAdd, p, r))
}

// Role is what a factor of the innermost level is.
type Role string

// The roles.
const (
	Activation Role = "activation"
	Digits     Role = "digits" // of integer activations: c*f(hi) + f(lo)
	Code       Role = "code"   // what a packed weight stores for a point, converted
	OffsetCode Role = "offset" // a stored integer and a constant: f(q) - 32
	Constant   Role = "constant"
)

// RoleOf tells what a factor of an innermost level is.
func (s *Exprs) RoleOf(f *ir.UOp) Role {
	sum := f.Op == ir.OpAdd || f.Op == ir.OpSub
	switch {
	case f.Op == ir.OpConst:
		return Constant
	case sum && s.IsWidened(f):
		return Digits
	case sum && s.isOffsetCode(f):
		return OffsetCode
	case s.isFieldsOnly(f):
		return Code
	}
	return Activation
}

// IsWidened reports narrow integers converted to float that are no weights, or a sum of
// such with constant factors.
func (s *Exprs) IsWidened(f *ir.UOp) bool {
	switch f.Op {
	case ir.OpCast:
		x := f.Src[0]
		return x.DType.IsInt() && x.DType.Size() <= 2 && !s.ReadsField(x)
	case ir.OpAdd, ir.OpSub:
		return s.IsWidened(f.Src[0]) && s.IsWidened(f.Src[1])
	case ir.OpMul:
		return s.IsWidened(f.Src[0]) && f.Src[1].Op == ir.OpConst
	}
	return false
}

// Unsigned is a factor that converts a signed byte of a weight as an unsigned one with an
// offset, for instructions that sum products of unsigned and signed bytes; others stay.
func (s *Exprs) Unsigned(f *ir.UOp) *ir.UOp {
	if !s.isSignedCode(f) {
		return f
	}
	q := s.A.Cast(s.A.Binary(ir.OpXor, f.Src[0], s.A.ConstInt(ir.I8, -128)), ir.U8)
	return s.A.Add(s.A.Cast(q, f.DType), s.A.Const(f.DType, -128))
}

// UnlessNegated is such a factor where the byte may be -128, which has no other sign: others are products of
// abs(y) with what has the sign of y.
func (s *Exprs) UnlessNegated(f *ir.UOp) *ir.UOp {
	if s.isSignedCode(f) && s.Bounds.Of(f.Src[0]).Lo > math.MinInt8 {
		return f
	}
	return s.Unsigned(f)
}

// isSignedCode reports a signed byte of a weight, converted.
func (s *Exprs) isSignedCode(f *ir.UOp) bool {
	return f.Op == ir.OpCast && f.Src[0].DType == ir.I8 && s.isFieldsOnly(f) && s.Bounds.Of(f.Src[0]).Lo < 0
}

// OfBit is a factor that chooses one of two integers by a bit of a weight as a number with an
// offset, (bit << n) + c, for instructions that sum products of bytes; others stay. Compared, the
// bit is the condition as a number: lanes that test bits of their own have comparisons of bytes, but no
// shifts of them.
func (s *Exprs) OfBit(f *ir.UOp, compared bool) *ir.UOp {
	if f.Op != ir.OpWhere || !f.DType.IsFloat() || !s.isFieldsOnly(f) {
		return f
	}
	set, okSet := f.Src[1].Float()
	clear, okClear := f.Src[2].Float()
	x, n := analyse.TestedBit(f.Src[0])
	up := bits.TrailingZeros64(uint64(int64(set - clear)))
	if x == nil || !okSet || !okClear || clear != float64(int64(clear)) || math.Abs(clear) > maxExactInteger || set-clear != float64(int64(1)<<up) || up > 6 {
		return f
	}
	bit := s.A.And(s.A.Binary(ir.OpShr, x, n), s.A.ConstInt(x.DType, 1))
	if compared {
		bit = f.Src[0]
	}
	code := s.A.Binary(ir.OpShl, s.A.Cast(bit, ir.U8), s.A.ConstInt(ir.U8, int64(up)))
	return s.A.Add(s.A.Cast(code, f.DType), s.A.Const(f.DType, clear))
}

// WithinByte is a code with an offset as one signed byte where it is one, f(q + c) for f(q) + c; others stay.
func (s *Exprs) WithinByte(f *ir.UOp) *ir.UOp {
	if s.RoleOf(f) != OffsetCode {
		return f
	}
	q := f.Src[0].Src[0]
	c, _ := f.Src[1].Float()
	if f.Op == ir.OpSub {
		c = -c
	}
	if b := s.Bounds.Of(q); q.DType.Size() > 1 || !b.Within(-128-int64(c), 127-int64(c)) {
		return f
	}
	return s.A.Cast(s.A.Add(s.A.Cast(q, ir.I8), s.A.ConstInt(ir.I8, int64(c))), f.DType)
}

// maxExactInteger bounds integers whose offset is exact in f32.
const maxExactInteger = 1 << 20

// isOffsetCode reports float(q)+c or float(q)-c of packed fields, both small enough to
// be exact.
func (s *Exprs) isOffsetCode(f *ir.UOp) bool {
	q, c := f.Src[0], f.Src[1]
	value, ok := c.Float()
	if !ok || value != float64(int64(value)) || value > maxExactInteger || value < -maxExactInteger {
		return false
	}
	if q.Op != ir.OpCast || !(q.Src[0].DType.IsInt() || q.Src[0].DType == ir.Bool) || !s.isFieldsOnly(q) {
		return false
	}
	return s.Bounds.Of(q.Src[0]).Within(-maxExactInteger, maxExactInteger)
}

// isSumOfScaled reports t1+t2 or t1-t2 of packed fields only, no term a constant, where
// some term has a factor that is coarser in k than the whole.
func (s *Exprs) isSumOfScaled(f, k *ir.UOp) bool {
	if f.Op != ir.OpAdd && f.Op != ir.OpSub || !s.isFieldsOnly(f) || f.Src[0].Op == ir.OpConst || f.Src[1].Op == ir.OpConst {
		return false
	}
	whole := s.Granularity(f, k)
	return slices.ContainsFunc(slices.Concat(analyse.Factors(f.Src[0]), analyse.Factors(f.Src[1])), func(g *ir.UOp) bool {
		c := s.Granularity(g, k)
		return c > whole || c == 0
	})
}

// isFieldsOnly reports an expression that reads packed fields and tables only. A
// row may be gathered: what its index reads is not decoded (an expert's number).
func (s *Exprs) isFieldsOnly(u *ir.UOp) bool {
	found, only := false, true
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		switch u.Op {
		case ir.OpField:
			found = true
			return u.Src[2:]
		case ir.OpValue, ir.OpReduce, ir.OpStage:
			only = false
		case ir.OpLoad:
			only = only && u.Src[0].Op == ir.OpTable
		}
		return u.Src
	}, u)
	return found && only
}

// Text prints a contraction: a line for each level of each term, with the factors and,
// at the innermost level, their roles.
func (c *Contraction) Text(s *Exprs) string {
	var b strings.Builder
	for i := range c.Terms {
		t := &c.Terms[i]
		sign := "+"
		if t.Minus {
			sign = "-"
		}
		if len(t.Outside) > 0 {
			fmt.Fprintf(&b, "%s outside\n", sign)
			sign = " "
			for _, f := range t.Outside {
				fmt.Fprintf(&b, "    scale %s", KernelText(f))
			}
		}
		for at, l := range t.Levels {
			fmt.Fprintf(&b, "%s %s:%s\n", sign, strings.TrimSpace(KernelText(l.Range)), ExtentText(l.Range.Src[0]))
			sign = " "
			for _, f := range l.Factors {
				role := Role("scale")
				if at == len(t.Levels)-1 {
					role = s.RoleOf(f)
				}
				fmt.Fprintf(&b, "    %s %s", role, KernelText(f))
			}
			for _, f := range l.Inside {
				fmt.Fprintf(&b, "    inside %s", KernelText(f))
			}
		}
	}
	return b.String()
}
