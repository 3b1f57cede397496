package ptxemu

import (
	"fmt"
	"math/bits"
)

// Integer arithmetic and logic. Operands come as 64 bits of which the type's
// are meant; results are cut to the register.

var integerInstructions = map[string]func(*compiler, *statement){
	"add":   compileArithmetic,
	"sub":   compileArithmetic,
	"mul":   compileMultiply,
	"mad":   compileMultiply,
	"mul24": compileMultiply24,
	"div":   compileDivide,
	"rem":   compileDivide,
	"neg":   compileNegate,
	"abs":   compileAbsolute,
	"min":   compileExtreme,
	"max":   compileExtreme,
	"and":   compileLogic,
	"or":    compileLogic,
	"xor":   compileLogic,
	"not":   compileNot,
	"cnot":  compileNotZero,
	"lop3":  compileLop3,
	"shl":   compileShift,
	"shr":   compileShift,
	"shf":   compileFunnel,
	"bfe":   compileExtract,
	"bfi":   compileInsert,
	"popc":  compileCount,
	"clz":   compileCount,
	"brev":  compileReverse,
	"bfind": compileFind,
	"setp":  compileCompare,
	"set":   compileSet,
	"dp4a":  compileDot,
	"dp2a":  compileDot,
	"sad":   compileDifference,
}

func compileArithmetic(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if k.float() {
		compileFloatBinary(c, s)
		return
	}
	if s.has("cc") || s.has("sat") {
		c.fail("carries and saturation are not supported")
	}
	k.letter = 'u' // wraps the same; the register holds no sign
	if s.op == "sub" {
		c.binary(s, k, k, func(x, y uint64) uint64 { return x - y })
		return
	}
	c.binary(s, k, k, func(x, y uint64) uint64 { return x + y })
}

// compileMultiply is mul and mad: the lower half, the upper half, or all of
// the product.
func compileMultiply(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if k.float() {
		if s.op == "mad" {
			compileFma(c, s)
			return
		}
		compileFloatBinary(c, s)
		return
	}
	to := k
	var product func(x, y uint64) uint64
	switch {
	case s.has("lo"):
		product = func(x, y uint64) uint64 { return x * y }
	case s.has("wide"):
		to.bits *= 2
		product = func(x, y uint64) uint64 { return k.extend(x) * k.extend(y) }
	case s.has("hi"):
		product = func(x, y uint64) uint64 { return k.upper(x, y) }
	default:
		c.fail("want lo, hi or wide")
	}
	to.letter = 'u'
	if s.op == "mul" {
		c.binary(s, k, to, product)
		return
	}
	c.ternaryOf(s, [3]kind{k, k, to}, to, func(x, y, z uint64) uint64 { return product(x, y) + z })
}

// upper is the upper half of a product.
func (k kind) upper(x, y uint64) uint64 {
	x, y = k.extend(x), k.extend(y)
	if k.bits < 64 {
		return x * y >> k.bits
	}
	hi, _ := bits.Mul64(x, y)
	if k.signed() {
		if int64(x) < 0 {
			hi -= y
		}
		if int64(y) < 0 {
			hi -= x
		}
	}
	return hi
}

func compileMultiply24(c *compiler, s *statement) {
	c.fail("24-bit products are not supported")
}

// compileDivide: dividing by zero and the least integer by -1 have no value
// that PTX promises.
func compileDivide(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if k.float() {
		compileFloatBinary(c, s)
		return
	}
	isDiv := s.op == "div"
	undefined := false
	c.binary(s, k, k, func(x, y uint64) uint64 {
		x, y = k.extend(x), k.extend(y)
		switch {
		case y == 0 || k.signed() && y == ^uint64(0) && x == k.extend(1<<(k.bits-1)):
			undefined = true
			return 0
		case k.signed() && isDiv:
			return uint64(int64(x) / int64(y))
		case k.signed():
			return uint64(int64(x) % int64(y))
		case isDiv:
			return x / y
		}
		return x % y
	})
	run := c.now.run
	c.now.run = func(w *warp, active uint32) error {
		if err := run(w, active); err != nil {
			return err
		}
		if undefined {
			undefined = false
			return fmt.Errorf("a division without a defined result")
		}
		return nil
	}
}

func compileNegate(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if k.float() {
		c.unary(s, k, k, k.flipSign(true))
		return
	}
	to := k
	to.letter = 'u'
	c.unary(s, k, to, func(x uint64) uint64 { return -x })
}

// flipSign changes (or clears) the sign of each float.
func (k kind) flipSign(flip bool) func(x uint64) uint64 {
	signs := uint64(1) << (k.bits - 1)
	if k.pair {
		signs = 0x80008000
	}
	if flip {
		return func(x uint64) uint64 { return x ^ signs }
	}
	return func(x uint64) uint64 { return x &^ signs }
}

func compileAbsolute(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if k.float() {
		c.unary(s, k, k, k.flipSign(false))
		return
	}
	to := k
	to.letter = 'u'
	c.unary(s, k, to, func(x uint64) uint64 {
		v := int64(k.extend(x))
		return uint64(max(v, -v))
	})
}

func compileExtreme(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if k.float() {
		compileFloatBinary(c, s)
		return
	}
	to := k
	to.letter = 'u'
	isMin := s.op == "min"
	c.binary(s, k, to, func(x, y uint64) uint64 {
		if k.less(x, y) == isMin {
			return x
		}
		return y
	})
}

func compileLogic(c *compiler, s *statement) {
	var f func(x, y uint64) uint64
	switch s.op {
	case "and":
		f = func(x, y uint64) uint64 { return x & y }
	case "or":
		f = func(x, y uint64) uint64 { return x | y }
	default:
		f = func(x, y uint64) uint64 { return x ^ y }
	}
	if s.last(0) == "pred" {
		c.logicOfPredicates(s, func(x, y uint32) uint32 { return uint32(f(uint64(x), uint64(y))) })
		return
	}
	k := c.kind(s, 0)
	c.binary(s, k, k, f)
}

func (c *compiler) logicOfPredicates(s *statement, f func(x, y uint32) uint32) {
	c.arity(s, 3, 3)
	a := c.predicateSource(s.args[1])
	b := c.predicateSource(s.args[2])
	d := c.predicateDestination(s.args[0].name)
	c.now.run = func(w *warp, active uint32) error {
		w.preds[d] = w.preds[d]&^active | f(a.read(w), b.read(w))&active
		return nil
	}
}

func compileNot(c *compiler, s *statement) {
	if s.last(0) == "pred" {
		c.arity(s, 2, 2)
		s.args[1].negated = !s.args[1].negated
		c.movePredicate(s.args[0], s.args[1])
		return
	}
	k := c.kind(s, 0)
	c.unary(s, k, k, func(x uint64) uint64 { return ^x })
}

func compileNotZero(c *compiler, s *statement) {
	k := c.kind(s, 0)
	c.unary(s, k, k, func(x uint64) uint64 {
		if x&mask(k.bits) == 0 {
			return 1
		}
		return 0
	})
}

// compileLop3 computes any function of three bits by its table.
func compileLop3(c *compiler, s *statement) {
	k := kind{letter: 'b', bits: 32}
	if s.last(0) != "b32" || s.has("BoolOp") {
		c.fail("only lop3.b32 is supported")
	}
	c.quaternary(s, [4]kind{k, k, k, k}, k, func(x, y, z, table uint64) uint64 {
		v := uint64(0)
		for i := range 8 {
			if table>>i&1 == 0 {
				continue
			}
			term := ^uint64(0)
			for bit, operand := range [3]uint64{z, y, x} {
				if i>>bit&1 == 0 {
					operand = ^operand
				}
				term &= operand
			}
			v |= term
		}
		return v
	})
}

// compileShift: counts are 32 bits, unsigned, and limited to the width.
func compileShift(c *compiler, s *statement) {
	k := c.kind(s, 0)
	count := kind{letter: 'u', bits: 32}
	to := k
	to.letter = 'u'
	switch {
	case s.op == "shl":
		c.binaryOf(s, k, count, to, func(x, y uint64) uint64 { return x << min(y, 64) })
	case k.signed():
		c.binaryOf(s, k, count, to, func(x, y uint64) uint64 { return uint64(int64(k.extend(x)) >> min(y, 63)) })
	default:
		c.binaryOf(s, k, count, to, func(x, y uint64) uint64 { return k.extend(x) >> min(y, 64) })
	}
}

// compileFunnel shifts b:a and takes one half.
func compileFunnel(c *compiler, s *statement) {
	k := kind{letter: 'b', bits: 32}
	left, wrap := s.has("l"), s.has("wrap")
	c.ternary(s, k, k, func(x, y, z uint64) uint64 {
		n := min(z, 32)
		if wrap {
			n = z & 31
		}
		both := y<<32 | x&mask(32)
		if left {
			return both << n >> 32
		}
		return both >> n
	})
}

// compileExtract is bfe: length bits from a position, extended.
func compileExtract(c *compiler, s *statement) {
	k := c.kind(s, 0)
	word := kind{letter: 'u', bits: 32}
	to := k
	to.letter = 'u'
	c.ternaryOf(s, [3]kind{k, word, word}, to, func(x, at, n uint64) uint64 {
		at, n = at&0xff, n&0xff
		if n == 0 {
			return 0
		}
		v := k.extend(x)
		if !k.signed() {
			if at >= 64 {
				return 0
			}
			return v >> at & mask(int(n))
		}
		end := min(at+n, uint64(k.bits))
		if at >= end { // past the top: the sign
			return uint64(int64(v) >> 63)
		}
		shift := 64 - end
		return uint64(int64(v<<shift) >> (shift + at))
	})
}

// compileInsert is bfi: the low length bits of a over those of b.
func compileInsert(c *compiler, s *statement) {
	k := c.kind(s, 0)
	word := kind{letter: 'u', bits: 32}
	c.quaternary(s, [4]kind{k, k, word, word}, k, func(x, y, at, n uint64) uint64 {
		at, n = at&0xff, n&0xff
		if at >= 64 {
			return y
		}
		field := mask(int(n)) << at
		return y&^field | x<<at&field
	})
}

func compileCount(c *compiler, s *statement) {
	k := c.kind(s, 0)
	to := kind{letter: 'u', bits: 32}
	if s.op == "popc" {
		c.unary(s, k, to, func(x uint64) uint64 { return uint64(bits.OnesCount64(x & mask(k.bits))) })
		return
	}
	c.unary(s, k, to, func(x uint64) uint64 {
		return uint64(bits.LeadingZeros64(x&mask(k.bits)) - (64 - k.bits))
	})
}

func compileReverse(c *compiler, s *statement) {
	k := c.kind(s, 0)
	c.unary(s, k, k, func(x uint64) uint64 { return bits.Reverse64(x) >> (64 - k.bits) })
}

// compileFind is bfind: the position of the highest bit that is no sign.
func compileFind(c *compiler, s *statement) {
	k := c.kind(s, 0)
	amount := s.has("shiftamt")
	c.unary(s, k, kind{letter: 'u', bits: 32}, func(x uint64) uint64 {
		v := k.extend(x)
		if k.signed() && int64(v) < 0 {
			v = ^v
		}
		if v == 0 {
			return mask(32)
		}
		n := uint64(63 - bits.LeadingZeros64(v))
		if amount {
			n = uint64(k.bits) - 1 - n
		}
		return n
	})
}

// relation is a comparison by name; unordered ones of floats hold for NaN.
func (c *compiler) relation(name string, k kind) func(x, y uint64) bool {
	if k.float() {
		return c.floatRelation(name, k)
	}
	less := k.less
	equal := func(x, y uint64) bool { return k.extend(x) == k.extend(y) }
	switch name {
	case "eq":
		return equal
	case "ne":
		return func(x, y uint64) bool { return !equal(x, y) }
	case "lt", "lo":
		return less
	case "le", "ls":
		return func(x, y uint64) bool { return !less(y, x) }
	case "gt", "hi":
		return func(x, y uint64) bool { return less(y, x) }
	case "ge", "hs":
		return func(x, y uint64) bool { return !less(x, y) }
	}
	c.fail("unknown relation %q", name)
	return nil
}

// less compares integers.
func (k kind) less(x, y uint64) bool {
	if k.signed() {
		return int64(k.extend(x)) < int64(k.extend(y))
	}
	return k.extend(x) < k.extend(y)
}

// compileCompare is setp, with an optional combination with a predicate and an
// optional second result, the opposite.
func compileCompare(c *compiler, s *statement) {
	c.arity(s, 3, 4)
	k := c.kind(s, 0)
	holds := c.relation(s.mod(0), k)
	a := c.sourceOf(k, s.args[1])
	b := c.sourceOf(k, s.args[2])
	combine := func(x, _ uint32) uint32 { return x }
	var with predicateSource
	if len(s.args) == 4 {
		with = c.predicateSource(s.args[3])
		switch {
		case s.has("and"):
			combine = func(x, y uint32) uint32 { return x & y }
		case s.has("or"):
			combine = func(x, y uint32) uint32 { return x | y }
		case s.has("xor"):
			combine = func(x, y uint32) uint32 { return x ^ y }
		}
	} else {
		with.number = true
	}
	d := c.predicateDestination(s.args[0].name)
	opposite := -1
	if s.args[0].pair != "" {
		opposite = c.predicateDestination(s.args[0].pair)
	}
	c.now.run = func(w *warp, active uint32) error {
		x, y := &w.data[a], &w.data[b]
		yes := uint32(0)
		for m := active; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); holds(x[i], y[i]) {
				yes |= 1 << i
			}
		}
		other := with.read(w)
		w.preds[d] = w.preds[d]&^active | combine(yes, other)&active
		if opposite >= 0 {
			w.preds[opposite] = w.preds[opposite]&^active | combine(^yes, other)&active
		}
		return nil
	}
}

// compileSet is set: all ones, or 1.0, where the relation holds.
func compileSet(c *compiler, s *statement) {
	k := c.kind(s, 0)
	to := c.kind(s, 1)
	holds := c.relation(s.mod(0), k)
	yes := mask(32)
	if to.float() {
		yes = 0x3f800000
	}
	c.binary(s, k, kind{letter: 'u', bits: 32}, func(x, y uint64) uint64 {
		if holds(x, y) {
			return yes
		}
		return 0
	})
}

// compileDot is dp4a (four bytes by four) and dp2a (two halves by two bytes).
func compileDot(c *compiler, s *statement) {
	first := c.kind(s, 1)
	second := c.kind(s, 0)
	part := func(k kind, bits int) kind { k.bits = bits; return k }
	n, width, from := 4, 8, 0
	if s.op == "dp2a" {
		n, width = 2, 16
		if s.has("hi") {
			from = 2
		}
	}
	x1, y1 := part(first, width), part(second, 8)
	word := kind{letter: 'u', bits: 32}
	c.ternary(s, word, word, func(x, y, z uint64) uint64 {
		for i := range n {
			z += x1.extend(x>>(i*width)) * y1.extend(y>>((from+i)*8))
		}
		return z
	})
}

func compileDifference(c *compiler, s *statement) {
	k := c.kind(s, 0)
	to := k
	to.letter = 'u'
	c.ternaryOf(s, [3]kind{k, k, to}, to, func(x, y, z uint64) uint64 {
		d := int64(k.extend(x)) - int64(k.extend(y))
		return uint64(max(d, -d)) + z
	})
}
