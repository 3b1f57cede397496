package ptxemu

import (
	"math"
	"math/bits"
)

// Instructions that compute each lane alone, from slots to a slot.

// floatLiteral brings a literal to a type: 0f.. has 32 bits, others are doubles.
func floatLiteral(k kind, a argument) uint64 {
	switch {
	case a.single && k.float() && k.bits == 64:
		return math.Float64bits(float64(math.Float32frombits(uint32(a.bits))))
	case !a.single && k.float() && k.bits == 32 && !k.pair:
		return uint64(math.Float32bits(float32(math.Float64frombits(a.bits))))
	}
	return a.bits
}

// unary compiles d = f(a) with operands of type k and a result of type to.
func (c *compiler) unary(s *statement, k, to kind, f func(x uint64) uint64) {
	a := c.sources(s, []kind{k})[0]
	d, width := c.destination(s.args[0], to.bits)
	m := to.resultMask(width)
	var loop func(r, x *vector)
	if width == 32 {
		loop = loops1[s.name()]
	}
	c.now.run = func(w *warp, active uint32) error {
		apply1(loop, f, m, active, &w.data[d], &w.data[a])
		return nil
	}
}

// sources are the slots of the operands after the result.
func (c *compiler) sources(s *statement, from []kind) []int {
	c.arity(s, 1+len(from), 1+len(from))
	slots := make([]int, len(from))
	for i, k := range from {
		slots[i] = c.sourceOf(k, s.args[1+i])
	}
	return slots
}

// resultMask: a result wider than its type keeps the sign that f gave it.
func (k kind) resultMask(width int) uint64 {
	if k.signed() {
		return mask(width)
	}
	return mask(k.bits)
}

func (c *compiler) binary(s *statement, k, to kind, f func(x, y uint64) uint64) {
	c.binaryOf(s, k, k, to, f)
}

// binaryOf has operands of two types.
func (c *compiler) binaryOf(s *statement, first, second, to kind, f func(x, y uint64) uint64) {
	slots := c.sources(s, []kind{first, second})
	d, width := c.destination(s.args[0], to.bits)
	m := to.resultMask(width)
	var loop func(r, x, y *vector)
	if width == to.bits {
		loop = loops2[s.name()]
	}
	c.now.run = func(w *warp, active uint32) error {
		apply2(loop, f, m, active, &w.data[d], &w.data[slots[0]], &w.data[slots[1]])
		return nil
	}
}

// ternary has two operands of type k and a third of its own.
func (c *compiler) ternary(s *statement, k, third kind, f func(x, y, z uint64) uint64) {
	c.ternaryOf(s, [3]kind{k, k, third}, k, f)
}

func (c *compiler) ternaryOf(s *statement, from [3]kind, to kind, f func(x, y, z uint64) uint64) {
	slots := c.sources(s, from[:])
	d, width := c.destination(s.args[0], to.bits)
	m := to.resultMask(width)
	var loop func(r, x, y, z *vector)
	if width == to.bits {
		loop = loops3[s.name()]
	}
	c.now.run = func(w *warp, active uint32) error {
		apply3(loop, f, m, active, &w.data[d], &w.data[slots[0]], &w.data[slots[1]], &w.data[slots[2]])
		return nil
	}
}

// quaternary has four operands of type k (bfi, lop3 with its table).
func (c *compiler) quaternary(s *statement, from [4]kind, to kind, f func(x, y, z, u uint64) uint64) {
	slots := c.sources(s, from[:])
	d, _ := c.destination(s.args[0], to.bits)
	m := mask(to.bits)
	c.now.run = func(w *warp, active uint32) error {
		r := &w.data[d]
		for ; active != 0; active &= active - 1 {
			i := bits.TrailingZeros32(active)
			r[i] = f(w.data[slots[0]][i], w.data[slots[1]][i], w.data[slots[2]][i], w.data[slots[3]][i]) & m
		}
		return nil
	}
}
