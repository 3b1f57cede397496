package rewrite

// Masks and shifts of packed fields. A decode expression is written plainly
// (shift, mask, or); known bits then show which masks do nothing.
var bitSet = NewSet("bits",
	"Bitwise ops of fixed-width integers and Bool: identities, and masks that known bits make superfluous.",
	treeCost,
	Rule{Name: "and-zero", Doc: "x & 0 = 0.", From: and(bx, zero), To: zero},
	Rule{Name: "and-ones", Doc: "x & ~0 = x.", From: and(bx, ones), To: bx},
	Rule{Name: "and-self", Doc: "x & x = x.", From: and(bx, bx), To: bx},
	Rule{Name: "and-not-self", Doc: "x & ~x = 0.", From: and(bx, not(bx)), To: zero},
	Rule{Name: "and-const-const", Doc: "(x & c) & d = x & (c & d).", From: and(and(bx, bc), bd), To: and(bx, and(bc, bd))},
	Rule{Name: "and-keeps-all", Doc: "x & c = x if c has every bit that x can have.", From: and(bx, bc), When: []Guard{keepsAll(bx, bc)}, To: bx},
	Rule{Name: "and-or-disjoint", Doc: "(x | y) & c = x & c if y and c share no bit.", From: and(or(bx, by), bc), When: []Guard{disjoint(by, bc)}, To: and(bx, bc)},
	Rule{Name: "and-xor-disjoint", Doc: "(x ^ y) & c = x & c if y and c share no bit.", From: and(xor(bx, by), bc), When: []Guard{disjoint(by, bc)}, To: and(bx, bc)},
	Rule{Name: "and-absorbs-or", Doc: "x & (x | y) = x.", From: and(bx, or(bx, by)), To: bx},
	Rule{Name: "or-zero", Doc: "x | 0 = x.", From: or(bx, zero), To: bx},
	Rule{Name: "or-ones", Doc: "x | ~0 = ~0.", From: or(bx, ones), To: ones},
	Rule{Name: "or-self", Doc: "x | x = x.", From: or(bx, bx), To: bx},
	Rule{Name: "or-not-self", Doc: "x | ~x = ~0.", From: or(bx, not(bx)), To: ones},
	Rule{Name: "or-const-const", Doc: "(x | c) | d = x | (c | d).", From: or(or(bx, bc), bd), To: or(bx, or(bc, bd))},
	Rule{Name: "or-absorbs-and", Doc: "x | (x & y) = x.", From: or(bx, and(bx, by)), To: bx},
	Rule{Name: "xor-zero", Doc: "x ^ 0 = x.", From: xor(bx, zero), To: bx},
	Rule{Name: "xor-ones", Doc: "x ^ ~0 = ~x.", From: xor(bx, ones), To: not(bx)},
	Rule{Name: "xor-self", Doc: "x ^ x = 0.", From: xor(bx, bx), To: zero},
	Rule{Name: "xor-const-const", Doc: "(x ^ c) ^ d = x ^ (c ^ d).", From: xor(xor(bx, bc), bd), To: xor(bx, xor(bc, bd))},
	Rule{Name: "xor-xor-self", Doc: "(x ^ y) ^ y = x.", From: xor(xor(bx, by), by), To: bx},
	Rule{Name: "not-not", Doc: "~~x = x.", From: not(not(bx)), To: bx},
	Rule{Name: "shift-left-zero", Doc: "i << 0 = i.", From: shl(i, zero), To: i},
	Rule{Name: "shift-right-zero", Doc: "i >> 0 = i.", From: shr(i, zero), To: i},
	Rule{Name: "zero-shift-left", Doc: "0 << i = 0.", From: shl(zero, i), To: zero},
	Rule{Name: "zero-shift-right", Doc: "0 >> i = 0.", From: shr(zero, i), To: zero},
	Rule{Name: "shift-left-twice", Doc: "(i << c) << d = i << (c + d) if c + d < width.", From: shl(shl(i, ci), cj), When: []Guard{shiftsAdd(ci, cj)}, To: shl(i, add(ci, cj))},
	Rule{Name: "shift-right-twice", Doc: "(i >> c) >> d = i >> (c + d) if c + d < width.", From: shr(shr(i, ci), cj), When: []Guard{shiftsAdd(ci, cj)}, To: shr(i, add(ci, cj))},
	Rule{Name: "shift-right-drops-mask", Doc: "(x & d) >> c = x >> c if d has every bit of x from bit c up.", From: shr(and(i, cj), ci), When: []Guard{keepsHigh(i, cj, ci)}, To: shr(i, ci)},
	Rule{Name: "shift-right-drops-or", Doc: "(i | j) >> c = i >> c if j has no bit from bit c up.", From: shr(or(i, j), ci), When: []Guard{belowBit(j, ci)}, To: shr(i, ci)},
	Rule{Name: "shift-right-undoes-left", Doc: "(i << c) >> c = i if the shift loses no bit.", From: shr(shl(i, ci), ci), When: []Guard{roomFor(i, ci)}, To: i},
	Rule{Name: "shift-left-undoes-right", Doc: "(i >> c) << c = i if the low c bits of i are 0.", From: shl(shr(i, ci), ci), When: []Guard{lowZero(i, ci)}, To: i},
)

// keepsAll: every bit that may be 1 in x is 1 in c.
func keepsAll(x, c *Pattern) Guard {
	return Guard{c.name + " covers " + x.name, func(m *Match) bool {
		return ^m.Interval(x).Zeros&^m.Interval(c).Ones == 0
	}}
}

// disjoint: no bit can be 1 in both.
func disjoint(x, y *Pattern) Guard {
	return Guard{x.name + " & " + y.name + " = 0", func(m *Match) bool {
		return ^m.Interval(x).Zeros&^m.Interval(y).Zeros == 0
	}}
}

// shiftOf is a constant shift amount that lies inside the width.
func shiftOf(m *Match, c *Pattern) (uint, bool) {
	v, _ := m.Node(c).Int()
	return uint(v), v >= 0 && v < int64(m.Node(c).DType.Bits())
}

func shiftsAdd(c, d *Pattern) Guard {
	return Guard{"0 <= " + c.name + ", " + d.name + " and " + c.name + " + " + d.name + " < width", func(m *Match) bool {
		x, ok1 := shiftOf(m, c)
		y, ok2 := shiftOf(m, d)
		return ok1 && ok2 && x+y < uint(m.Node(c).DType.Bits())
	}}
}

// keepsHigh: from bit n up, every bit that may be 1 in x is 1 in mask.
func keepsHigh(x, mask, n *Pattern) Guard {
	return Guard{mask.name + " covers " + x.name + " from bit " + n.name, func(m *Match) bool {
		s, ok := shiftOf(m, n)
		return ok && (^m.Interval(x).Zeros&^m.Interval(mask).Ones)>>s == 0
	}}
}

func belowBit(x, n *Pattern) Guard {
	return Guard{x.name + " < 2**" + n.name, func(m *Match) bool {
		s, ok := shiftOf(m, n)
		return ok && ^m.Interval(x).Zeros>>s == 0
	}}
}

// roomFor: shifting x left by n and back gives x.
func roomFor(x, n *Pattern) Guard {
	return Guard{x.name + " << " + n.name + " keeps every bit", func(m *Match) bool {
		s, ok := shiftOf(m, n)
		if !ok {
			return false
		}
		d := m.Node(x).DType
		free := s
		if d.IsSigned() {
			free++ // the bits shifted out must equal the sign, here 0
		}
		high := ^m.Interval(x).Zeros
		if d.Bits() < 64 {
			high &= 1<<d.Bits() - 1
		}
		return high>>(uint(d.Bits())-min(free, uint(d.Bits()))) == 0
	}}
}

func lowZero(x, n *Pattern) Guard {
	return Guard{"the low " + n.name + " bits of " + x.name + " are 0", func(m *Match) bool {
		s, ok := shiftOf(m, n)
		return ok && ^m.Interval(x).Zeros&(1<<s-1) == 0
	}}
}

// Truth values and choices. WHERE evaluates only its chosen arm, so no rule
// here evaluates an arm where it was not evaluated before.
var whereSet = NewSet("where",
	"WHERE and Bool: decided conditions, equal arms, the same condition twice; arithmetic on Bool is logic.",
	treeCost,
	Rule{Name: "where-true", Doc: "true ? x : y = x.", From: where(one, anyX, anyY), To: anyX},
	Rule{Name: "where-false", Doc: "false ? x : y = y.", From: where(zero, anyX, anyY), To: anyY},
	Rule{Name: "where-same", Doc: "p ? x : x = x.", From: where(p, anyX, anyX), To: anyX},
	Rule{Name: "where-not", Doc: "!p ? x : y = p ? y : x.", From: where(not(p), anyX, anyY), To: where(p, anyY, anyX)},
	Rule{Name: "where-nested-true", Doc: "p ? (p ? x : y) : z = p ? x : z.", From: where(p, where(p, anyX, anyY), anyZ), To: where(p, anyX, anyZ)},
	Rule{Name: "where-nested-false", Doc: "p ? x : (p ? y : z) = p ? x : z.", From: where(p, anyX, where(p, anyY, anyZ)), To: where(p, anyX, anyZ)},
	Rule{Name: "where-part-true", Doc: "p & q ? (p ? x : y) : z = p & q ? x : z.", From: where(and(p, q), where(p, anyX, anyY), anyZ), To: where(and(p, q), anyX, anyZ)},
	Rule{Name: "where-part-false", Doc: "p | q ? x : (p ? y : z) = p | q ? x : z.", From: where(or(p, q), anyX, where(p, anyY, anyZ)), To: where(or(p, q), anyX, anyZ)},
	Rule{Name: "where-is-condition", Doc: "p ? true : false = p.", From: where(p, one, zero).Of(Bools), To: p},
	Rule{Name: "where-is-not", Doc: "p ? false : true = !p.", From: where(p, zero, one).Of(Bools), To: not(p)},
	Rule{Name: "where-is-min", Doc: "x < y ? x : y = min(x, y) (integers: no NaN).", From: where(lt(wx, wy), wx, wy), To: least(wx, wy)},
	Rule{Name: "where-is-max", Doc: "x < y ? y : x = max(x, y) (integers: no NaN).", From: where(lt(wx, wy), wy, wx), To: most(wx, wy)},
	Rule{Name: "bool-add", Doc: "p + q = p | q.", From: add(p, q), To: or(p, q)},
	Rule{Name: "bool-mul", Doc: "p * q = p & q.", From: mul(p, q), To: and(p, q)},
	Rule{Name: "bool-min", Doc: "min(p, q) = p & q.", From: least(p, q), To: and(p, q)},
	Rule{Name: "bool-max", Doc: "max(p, q) = p | q.", From: most(p, q), To: or(p, q)},
	Rule{Name: "bool-equal-true", Doc: "p == true is p.", From: eq(p, one), To: p},
	Rule{Name: "bool-equal-false", Doc: "p == false is !p.", From: eq(p, zero), To: not(p)},
)
