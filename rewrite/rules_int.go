package rewrite

import "tgc/ir"

// Variables and short names shared by the rule tables of this package.
var (
	whole     = Bools | Ints         // bit operations are defined on these
	integral  = Bools | Ints | Index // comparisons of these know no NaN
	i, j, k   = Any("i", Ints), Any("j", Ints), Any("k", Ints)
	ci, cj    = Const("c", Ints), Const("d", Ints)
	bx, by    = Any("x", whole), Any("y", whole)
	bc, bd    = Const("c", whole), Const("d", whole)
	anyX      = Any("x", AnyTypes)
	anyY      = Any("y", AnyTypes)
	anyZ      = Any("z", AnyTypes)
	p, q      = Any("p", Bools), Any("q", Bools)
	wx, wy    = Any("x", integral), Any("y", integral)
	zero, one = Literal(0), Literal(1)
	ones      = Literal(-1)
)

func add(x, y *Pattern) *Pattern   { return Op(ir.OpAdd, x, y) }
func sub(x, y *Pattern) *Pattern   { return Op(ir.OpSub, x, y) }
func mul(x, y *Pattern) *Pattern   { return Op(ir.OpMul, x, y) }
func neg(x *Pattern) *Pattern      { return Op(ir.OpNeg, x) }
func and(x, y *Pattern) *Pattern   { return Op(ir.OpAnd, x, y) }
func or(x, y *Pattern) *Pattern    { return Op(ir.OpOr, x, y) }
func xor(x, y *Pattern) *Pattern   { return Op(ir.OpXor, x, y) }
func not(x *Pattern) *Pattern      { return Op(ir.OpNot, x) }
func shl(x, y *Pattern) *Pattern   { return Op(ir.OpShl, x, y) }
func shr(x, y *Pattern) *Pattern   { return Op(ir.OpShr, x, y) }
func least(x, y *Pattern) *Pattern { return Op(ir.OpMin, x, y) }
func most(x, y *Pattern) *Pattern  { return Op(ir.OpMax, x, y) }
func lt(x, y *Pattern) *Pattern    { return Op(ir.OpCmpLt, x, y) }
func eq(x, y *Pattern) *Pattern    { return Op(ir.OpCmpEq, x, y) }
func div(x, y *Pattern) *Pattern   { return Op(ir.OpFloorDiv, x, y) }
func mod(x, y *Pattern) *Pattern   { return Op(ir.OpFloorMod, x, y) }
func cast(x *Pattern) *Pattern     { return Op(ir.OpCast, x) }
func where(c, x, y *Pattern) *Pattern {
	return Op(ir.OpWhere, c, x, y)
}

// Sources of commutative nodes stand in one order, so that equal values are
// one node and the other rules need one shape.
var orderSet = NewSet("order",
	"Commutative ops have their constant second; integers and Bool are ordered by structure.",
	treeCost,
	Rule{
		Name: "commute",
		Doc:  "f(x, y) = f(y, x) for commutative f, constants second; on floats only constants move.",
		On:   ir.Commutative,
		Go:   orderRule,
	},
)

func orderRule(c *Context, u *ir.UOp) *ir.UOp {
	if !swapped(u) {
		return nil
	}
	return c.Arena.Make(u.Op, u.DType, u.Arg, u.Src[1], u.Src[0])
}

// Arithmetic of fixed-width integers wraps, so sums may be regrouped freely
// (mod 2**w), but nothing may be divided without bounds.
var intSet = NewSet("int",
	"Fixed-width integers: neutral elements, constants brought together, subtraction of a constant as addition.",
	treeCost,
	Rule{Name: "add-zero", Doc: "i + 0 = i.", From: add(i, zero), To: i},
	Rule{Name: "sub-zero", Doc: "i - 0 = i.", From: sub(i, zero), To: i},
	Rule{Name: "sub-self", Doc: "i - i = 0.", From: sub(i, i), To: zero},
	Rule{Name: "sub-const", Doc: "i - c = i + (-c): one shape for offsets.", From: sub(i, ci), To: add(i, neg(ci))},
	Rule{Name: "sub-from-zero", Doc: "0 - i = -i.", From: sub(zero, i), To: neg(i)},
	Rule{Name: "add-const-const", Doc: "(i + c) + d = i + (c + d).", From: add(add(i, ci), cj), To: add(i, add(ci, cj))},
	Rule{Name: "add-neg", Doc: "i + (-j) = i - j.", From: add(i, neg(j)), When: []Guard{notConst(j)}, To: sub(i, j)},
	Rule{Name: "sub-neg", Doc: "i - (-j) = i + j.", From: sub(i, neg(j)), To: add(i, j)},
	Rule{Name: "add-sub", Doc: "(i - j) + j = i.", From: add(sub(i, j), j), To: i},
	Rule{Name: "sub-add", Doc: "(i + j) - j = i.", From: sub(add(i, j), j), To: i},
	Rule{Name: "sub-const-const", Doc: "(i + c) - (j + d) = (i - j) + (c - d).", From: sub(add(i, ci), add(j, cj)), To: add(sub(i, j), sub(ci, cj))},
	Rule{Name: "neg-neg", Doc: "-(-i) = i.", From: neg(neg(i)), To: i},
	Rule{Name: "neg-sub", Doc: "-(i - j) = j - i.", From: neg(sub(i, j)), To: sub(j, i)},
	Rule{Name: "mul-zero", Doc: "i * 0 = 0.", From: mul(i, zero), To: zero},
	Rule{Name: "mul-one", Doc: "i * 1 = i.", From: mul(i, one), To: i},
	Rule{Name: "mul-minus-one", Doc: "i * -1 = -i.", From: mul(i, ones), To: neg(i)},
	Rule{Name: "mul-const-const", Doc: "(i * c) * d = i * (c * d).", From: mul(mul(i, ci), cj), To: mul(i, mul(ci, cj))},
	Rule{Name: "add-common-factor", Doc: "i*c + i*d = i*(c + d).", From: add(mul(i, ci), mul(i, cj)), To: mul(i, add(ci, cj))},
	Rule{Name: "div-one", Doc: "i / 1 = i.", From: div(i, one), To: i},
	Rule{Name: "mod-one", Doc: "i % 1 = 0.", From: mod(i, one), To: zero},
	Rule{Name: "mod-within", Doc: "i % j = i if 0 <= i < j.", From: mod(i, j), When: []Guard{within(i, j)}, To: i},
	Rule{Name: "div-power", Doc: "i / 2**n = i >> n: floor division is an arithmetic shift.", From: div(i, ci), When: []Guard{powerOfTwo(ci)}, To: shr(i, Op(ir.OpPopc, add(ci, ones)))},
	Rule{Name: "mod-power", Doc: "i % 2**n = i & (2**n - 1).", From: mod(i, ci), When: []Guard{powerOfTwo(ci)}, To: and(i, add(ci, ones))},
	Rule{Name: "min-self", Doc: "min(x, x) = x.", From: least(wx, wx), To: wx},
	Rule{Name: "max-self", Doc: "max(x, x) = x.", From: most(wx, wx), To: wx},
	Rule{Name: "min-left", Doc: "min(i, j) = i if i <= j.", From: least(i, j), When: []Guard{atMost(i, j)}, To: i},
	Rule{Name: "max-left", Doc: "max(i, j) = i if j <= i.", From: most(i, j), When: []Guard{atMost(j, i)}, To: i},
	Rule{Name: "min-min-const", Doc: "min(min(i, c), d) = min(i, min(c, d)).", From: least(least(i, ci), cj), To: least(i, least(ci, cj))},
	Rule{Name: "max-max-const", Doc: "max(max(i, c), d) = max(i, max(c, d)).", From: most(most(i, ci), cj), To: most(i, most(ci, cj))},
	Rule{Name: "less-self", Doc: "x < x is false.", From: lt(wx, wx), To: zero},
	Rule{Name: "equal-self", Doc: "x == x is true (no NaN among integers).", From: eq(wx, wx), To: one},
	Rule{Name: "equal-add-const", Doc: "i + c == d is i == d - c: wrapping addition is a bijection.", From: eq(add(i, ci), cj), To: eq(i, sub(cj, ci))},
	Rule{Name: "equal-same-term", Doc: "i + k == j + k is i == j.", From: eq(add(i, k), add(j, k)), To: eq(i, j)},
	Rule{Name: "abs-neg", Doc: "|-i| = |i|: the least integer is its own negative. Signed only.", From: Op(ir.OpAbs, neg(i)).Of(signedInts), To: Op(ir.OpAbs, i)},
	Rule{Name: "abs-positive", Doc: "|i| = i if i >= 0.", From: Op(ir.OpAbs, i), When: []Guard{notNegative(i)}, To: i},
)

var signedInts = TypesOf(ir.I8, ir.I16, ir.I32, ir.I64)

// within holds where bounds show 0 <= x < y.
func within(x, y *Pattern) Guard {
	return Guard{"0 <= " + x.name + " < " + y.name, func(m *Match) bool {
		xi, yi := m.Interval(x), m.Interval(y)
		return xi.Lo >= 0 && xi.Hi < yi.Lo && xi.Hi != ir.PosInf
	}}
}

// atMost holds where bounds show x <= y.
func atMost(x, y *Pattern) Guard {
	return Guard{x.name + " <= " + y.name, func(m *Match) bool {
		xi, yi := m.Interval(x), m.Interval(y)
		return xi.Hi <= yi.Lo && xi.Hi != ir.PosInf && yi.Lo != ir.NegInf
	}}
}

// notConst keeps a rule from what folding is about to change.
func notConst(x *Pattern) Guard {
	return Guard{x.name + " is no constant", func(m *Match) bool { return m.Node(x).Op != ir.OpConst }}
}

// notNegative holds where bounds show x >= 0.
func notNegative(x *Pattern) Guard {
	return Guard{x.name + " >= 0", func(m *Match) bool { return m.Interval(x).Lo >= 0 }}
}

// powerOfTwo holds for constants 1, 2, 4, ...
func powerOfTwo(c *Pattern) Guard {
	return Guard{c.name + " = 2**n", func(m *Match) bool {
		v, _ := m.Node(c).Int()
		return v > 0 && v&(v-1) == 0
	}}
}
