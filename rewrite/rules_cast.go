package rewrite

import "tgc/ir"

var (
	sourceX   = Any("x", AnyTypes)
	sourceY   = Any("y", AnyTypes)
	inner     = Named("inner", cast(sourceX))
	innerY    = Named("other", cast(sourceY))
	intX      = Any("x", integral)
	intInner  = Named("inner", Op(ir.OpCast, intX).Of(Ints))
	someConst = Const("c", Ints)
	armC      = Const("c", AnyTypes)
	armD      = Const("d", AnyTypes)
)

var castSet = NewSet("cast",
	"Conversions: exact ones compose, comparisons happen before widening.",
	treeCost,
	Rule{Name: "cast-same", Doc: "A conversion to the same dtype does nothing.", From: cast(anyX), When: []Guard{{"same dtype", func(m *Match) bool { return m.Node(anyX).DType == m.Root.DType }}}, To: anyX},
	Rule{Name: "cast-after-exact", Doc: "T(U(x)) = T(x) if U holds every value of x; from a float U to an integer T, T must hold them too, because one saturates and the other wraps.", From: cast(inner), When: []Guard{exactInner}, To: cast(sourceX)},
	Rule{Name: "cast-wraps-once", Doc: "T(U(x)) = T(x) for integers if U is at least as wide as T.", From: Op(ir.OpCast, intInner).Of(Ints), When: []Guard{{"width of T <= width of U", func(m *Match) bool {
		return m.Root.DType.Bits() <= m.Node(intInner).DType.Bits()
	}}}, To: cast(intX)},
	Rule{Name: "bitcast-same", Doc: "A bitcast to the same dtype does nothing.", From: Op(ir.OpBitcast, anyX), When: []Guard{{"same dtype", func(m *Match) bool { return m.Node(anyX).DType == m.Root.DType }}}, To: anyX},
	Rule{Name: "less-of-casts", Doc: "T(x) < T(y) is x < y if both conversions are exact.", From: lt(inner, innerY), When: []Guard{bothExact}, To: lt(sourceX, sourceY)},
	Rule{Name: "equal-of-casts", Doc: "T(x) == T(y) is x == y if both conversions are exact.", From: eq(inner, innerY), When: []Guard{bothExact}, To: eq(sourceX, sourceY)},
	Rule{Name: "less-cast-const", Doc: "T(x) < c is x < c if the conversion is exact and x's dtype holds c.", From: lt(intInner, someConst), When: []Guard{exactToConst}, To: lt(intX, cast(someConst))},
	Rule{Name: "less-const-cast", Doc: "c < T(x) is c < x if the conversion is exact and x's dtype holds c.", From: lt(someConst, intInner), When: []Guard{exactToConst}, To: lt(cast(someConst), intX)},
	Rule{Name: "equal-cast-const", Doc: "T(x) == c is x == c if the conversion is exact and x's dtype holds c.", From: eq(intInner, someConst), When: []Guard{exactToConst}, To: eq(intX, cast(someConst))},
	Rule{Name: "cast-of-constants", Doc: "T(p ? c : d) = p ? T(c) : T(d).", From: cast(where(p, armC, armD)), To: where(p, cast(armC), cast(armD))},
)

// exactInner: the inner conversion keeps every value of its source.
var exactInner = Guard{"U holds every value of x", func(m *Match) bool {
	x, u, t := m.Node(sourceX), m.Node(inner).DType, m.Root.DType
	if !holdsAll(m.Context, u, x) {
		return false
	}
	if u.IsFloat() && !t.IsFloat() && t != ir.Bool && !x.DType.IsFloat() {
		return holdsAll(m.Context, t, x)
	}
	return true
}}

var bothExact = Guard{"both conversions exact, from one dtype", func(m *Match) bool {
	x, y := m.Node(sourceX), m.Node(sourceY)
	u := m.Node(inner).DType
	return x.DType == y.DType && u != ir.Bool && holdsAll(m.Context, u, x) && holdsAll(m.Context, u, y)
}}

var exactToConst = Guard{"the conversion is exact and x's dtype holds c", func(m *Match) bool {
	x, c := m.Node(intX), m.Node(someConst)
	return holdsAll(m.Context, m.Node(intInner).DType, x) && holdsAll(m.Context, x.DType, c)
}}

// holdsAll reports that every value that x can take is a value of dtype d.
func holdsAll(c *Context, d ir.DType, x *ir.UOp) bool {
	from := x.DType
	switch {
	case d == from || from == ir.Bool:
		return true
	case from.IsFloat():
		return d.IsFloat() && floatHolds(d, from)
	case d == ir.Bool:
		return false
	}
	iv := c.Bounds.Of(x)
	if from == ir.U64 && iv.Hi == ir.PosInf || from == ir.Idx && !iv.Finite() {
		return false
	}
	if d.IsFloat() {
		limit := int64(1) << min(d.MantissaBits()+1, 53)
		if d == ir.F16 || d == ir.F8E4M3 {
			limit = min(limit, 448)
		}
		return iv.Within(-limit, limit)
	}
	lo, hi := d.IntRange()
	return iv.Lo >= lo && iv.Hi <= hi
}

// floatHolds reports that every value of the narrower format is one of the
// wider: mantissa and exponent range both grow.
func floatHolds(wide, narrow ir.DType) bool {
	return wide.MantissaBits() >= narrow.MantissaBits() && exponentBits(wide) >= exponentBits(narrow)
}

func exponentBits(d ir.DType) int { return d.Bits() - 1 - d.MantissaBits() }
