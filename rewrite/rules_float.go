package rewrite

import (
	"math"

	"tgc/ir"
)

var (
	f, g, h    = Any("x", Floats), Any("y", Floats), Any("z", Floats)
	cf, cg     = Const("c", Floats), Const("d", Floats)
	infFloats  = TypesOf(ir.F8E5M2, ir.F16, ir.BF16, ir.F32, ir.F64) // those with infinities
	finf       = Any("x", infFloats)
	whole32    = Any("n", integral)
	minusZero  = Literal(math.Copysign(0, -1))
	minusOne   = Literal(-1)
	plusInf    = Literal(math.Inf(1))
	minusInf   = Literal(math.Inf(-1))
	fromInt    = Op(ir.OpCast, whole32).Of(Floats)
	reciprocal = func(x *Pattern) *Pattern { return Op(ir.OpRecip, x) }
)

// Only identities that hold bit for bit, signed zeros, infinities and NaN
// included. x + 0 is not one of them: it turns -0 into +0.
var floatSet = NewSet("float",
	"Floats: identities that keep every bit.",
	treeCost,
	Rule{Name: "mul-one", Doc: "x * 1 = x.", From: mul(f, one), To: f},
	Rule{Name: "mul-minus-one", Doc: "x * -1 = -x.", From: mul(f, minusOne), To: neg(f)},
	Rule{Name: "div-one", Doc: "x / 1 = x.", From: Op(ir.OpFDiv, f, one), To: f},
	Rule{Name: "one-div", Doc: "1 / x = recip(x).", From: Op(ir.OpFDiv, one, f), To: reciprocal(f)},
	Rule{Name: "div-power", Doc: "x / 2**n = x * 2**-n: both round the same number.", From: Op(ir.OpFDiv, f, cf), When: []Guard{exactReciprocal(cf)}, To: mul(f, reciprocal(cf))},
	Rule{Name: "add-minus-zero", Doc: "x + -0 = x, also for x = -0.", From: add(f, minusZero), To: f},
	Rule{Name: "sub-zero", Doc: "x - 0 = x, also for x = -0.", From: sub(f, zero), To: f},
	Rule{Name: "minus-zero-sub", Doc: "-0 - x = -x.", From: sub(minusZero, f), To: neg(f)},
	Rule{Name: "sub-const", Doc: "x - c = x + (-c): one shape for offsets.", From: sub(f, cf), To: add(f, neg(cf))},
	Rule{Name: "add-neg", Doc: "x + (-y) = x - y.", From: add(f, neg(g)), When: []Guard{notConst(g)}, To: sub(f, g)},
	Rule{Name: "sub-neg", Doc: "x - (-y) = x + y.", From: sub(f, neg(g)), To: add(f, g)},
	Rule{Name: "neg-neg", Doc: "-(-x) = x.", From: neg(neg(f)), To: f},
	Rule{Name: "mul-neg-neg", Doc: "(-x) * (-y) = x * y.", From: mul(neg(f), neg(g)), To: mul(f, g)},
	Rule{Name: "mul-neg-const", Doc: "(-x) * c = x * (-c).", From: mul(neg(f), cf), To: mul(f, neg(cf))},
	Rule{Name: "abs-neg", Doc: "|-x| = |x|.", From: Op(ir.OpAbs, neg(f)), To: Op(ir.OpAbs, f)},
	Rule{Name: "abs-abs", Doc: "||x|| = |x|.", From: Op(ir.OpAbs, Op(ir.OpAbs, f)), To: Op(ir.OpAbs, f)},
	Rule{Name: "min-self", Doc: "min(x, x) = x.", From: least(f, f), To: f},
	Rule{Name: "max-self", Doc: "max(x, x) = x.", From: most(f, f), To: f},
	Rule{Name: "min-inf", Doc: "min(x, inf) = x, NaN kept.", From: least(finf, plusInf), To: finf},
	Rule{Name: "max-minus-inf", Doc: "max(x, -inf) = x, NaN kept.", From: most(finf, minusInf), To: finf},
	Rule{Name: "min-min-const", Doc: "min(min(x, c), d) = min(x, min(c, d)).", From: least(least(f, cf), cg), To: least(f, least(cf, cg))},
	Rule{Name: "max-max-const", Doc: "max(max(x, c), d) = max(x, max(c, d)).", From: most(most(f, cf), cg), To: most(f, most(cf, cg))},
	Rule{Name: "fma-one", Doc: "fma(x, 1, z) = x + z.", From: Op(ir.OpFma, f, one, h), To: add(f, h)},
	Rule{Name: "fma-minus-zero", Doc: "fma(x, y, -0) = x * y.", From: Op(ir.OpFma, f, g, minusZero), To: mul(f, g)},
	Rule{Name: "floor-of-integer", Doc: "floor of a converted integer does nothing.", From: Op(ir.OpFloor, fromInt), To: fromInt},
	Rule{Name: "trunc-of-integer", Doc: "trunc of a converted integer does nothing.", From: Op(ir.OpTrunc, fromInt), To: fromInt},
	Rule{Name: "round-of-integer", Doc: "round of a converted integer does nothing.", From: Op(ir.OpRound, fromInt), To: fromInt},
)

// exactReciprocal holds for constants whose reciprocal is exact in the dtype
// and normal, so that no target flushes it.
func exactReciprocal(c *Pattern) Guard {
	return Guard{c.name + " = 2**n with 2**-n in range", func(m *Match) bool {
		v, _ := m.Node(c).Float()
		d := m.Node(c).DType
		if v == 0 || math.IsInf(v, 0) || v != v {
			return false
		}
		r := 1 / v
		frac, exp := math.Frexp(v)
		small := map[ir.DType]int{ir.F8E4M3: 6, ir.F8E5M2: 14, ir.F16: 14, ir.BF16: 126, ir.F32: 126, ir.F64: 1022}[d]
		return math.Abs(frac) == 0.5 && exp-1 <= small && ir.RoundFloat(d, r) == r && !math.IsInf(r, 0)
	}}
}
