package ptxemu

import (
	"math/bits"
	"strconv"
)

// Instructions that move bits: mov, selection, conversion of addresses.

var moveInstructions = map[string]func(*compiler, *statement){
	"mov":  compileMove,
	"selp": compileSelect,
	"slct": compileSelectBySign,
	"cvta": compileAddress,
	"mapa": compileMapAddress,
	"prmt": compilePermute,
}

// kind is a type of PTX: its letter and bits.
type kind struct {
	letter byte // u, s, f, b, p (pred), h (bf16)
	bits   int
	pair   bool // two halves in 32 bits
}

func (k kind) signed() bool { return k.letter == 's' }
func (k kind) float() bool  { return k.letter == 'f' || k.letter == 'h' }

func (c *compiler) kindOf(s string) kind {
	switch s {
	case "pred":
		return kind{letter: 'p', bits: 1}
	case "f16x2":
		return kind{'f', 32, true}
	case "bf16x2":
		return kind{'h', 32, true}
	case "bf16":
		return kind{letter: 'h', bits: 16}
	case "b128":
		c.fail("type %s is not supported", s)
	}
	if len(s) >= 2 {
		bits, err := strconv.Atoi(s[1:])
		if letter := s[0]; err == nil && (letter == 'u' || letter == 's' || letter == 'b' || letter == 'f') {
			switch bits {
			case 8, 16, 32, 64:
				if letter != 'f' || bits != 8 {
					return kind{letter: letter, bits: bits}
				}
			}
		}
	}
	c.fail("unknown type %q", s)
	return kind{letter: 'b', bits: 32}
}

// kind is the i-th type from the end of an instruction.
func (c *compiler) kind(s *statement, i int) kind { return c.kindOf(s.last(i)) }

// kindInMemory is the type of what an instruction reads or writes in memory, where
// there are no predicates.
func (c *compiler) kindInMemory(s *statement) kind {
	k := c.kind(s, 0)
	if k.letter == 'p' {
		c.fail("predicates are not in memory")
		return kind{letter: 'b', bits: 32}
	}
	return k
}

// extend is a value of a type as 64 bits: signed ones with their sign.
func (k kind) extend(v uint64) uint64 {
	if k.signed() {
		shift := 64 - k.bits
		return uint64(int64(v<<shift) >> shift)
	}
	return v & mask(k.bits)
}

func compileMove(c *compiler, s *statement) {
	c.arity(s, 2, 2)
	k := c.kind(s, 0)
	to, from := s.args[0], s.args[1]
	switch {
	case k.letter == 'p':
		c.movePredicate(to, from)
	case to.list != nil:
		c.unpackMove(k, to, from)
	case from.list != nil:
		c.packMove(k, to, from)
	case !from.number && c.variable(from.name) != nil:
		c.moveSymbol(k, to, from, 0)
	default:
		c.moveRegister(k, to, from)
	}
}

func (c *compiler) moveRegister(k kind, to, from argument) {
	a := c.sourceOf(k, from)
	d, _ := c.destination(to, k.bits)
	m := mask(k.bits)
	c.now.run = func(w *warp, active uint32) error {
		x, y := &w.data[d], &w.data[a]
		if active == all {
			for i := range x {
				x[i] = y[i] & m
			}
			return nil
		}
		for ; active != 0; active &= active - 1 {
			i := bits.TrailingZeros32(active)
			x[i] = y[i] & m
		}
		return nil
	}
}

// sourceOf is a data operand of a type; a float literal is brought to it.
func (c *compiler) sourceOf(k kind, a argument) int {
	if a.number && a.float && len(a.list) == 0 {
		return c.literal(floatLiteral(k, a))
	}
	return c.source(a, k.bits)
}

func (c *compiler) movePredicate(to, from argument) {
	p := c.predicateSource(from)
	d := c.predicateDestination(to.name)
	c.now.run = func(w *warp, active uint32) error {
		w.preds[d] = w.preds[d]&^active | p.read(w)&active
		return nil
	}
}

// moveSymbol is the address of a variable, in a window that begins at base.
func (c *compiler) moveSymbol(k kind, to, from argument, base uint64) {
	v := c.variable(from.name)
	d, _ := c.destination(to, k.bits)
	offset := base + uint64(from.offset)
	c.now.run = func(w *warp, active uint32) error {
		address := w.grid.addressOf(v) + offset
		for ; active != 0; active &= active - 1 {
			w.data[d][bits.TrailingZeros32(active)] = address & mask(k.bits)
		}
		return nil
	}
}

// addressOf is a variable's address in its own space.
func (g *Grid) addressOf(v *variable) uint64 {
	if address, ok := g.globals[v]; ok {
		return address
	}
	return uint64(v.offset)
}

func (c *compiler) unpackMove(k kind, to, from argument) {
	n := len(to.list)
	if n < 2 || k.bits%n != 0 {
		c.fail("%d parts of %d bits", n, k.bits)
		return
	}
	part := k.bits / n
	a := c.sourceOf(k, from)
	slots := make([]int, n)
	for i, e := range to.list {
		slots[i], _ = c.destination(e, part)
	}
	c.now.run = func(w *warp, active uint32) error {
		source := w.data[a] // a part may be the source itself
		for i, slot := range slots {
			d := &w.data[slot]
			for m := active; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				d[lane] = source[lane] >> (i * part) & mask(part)
			}
		}
		return nil
	}
}

func (c *compiler) packMove(k kind, to, from argument) {
	n := len(from.list)
	if n < 2 || k.bits%n != 0 {
		c.fail("%d parts of %d bits", n, k.bits)
		return
	}
	part := k.bits / n
	slots := make([]int, n)
	for i, e := range from.list {
		slots[i] = c.source(e, part)
	}
	d, _ := c.destination(to, k.bits)
	c.now.run = func(w *warp, active uint32) error {
		for ; active != 0; active &= active - 1 {
			lane := bits.TrailingZeros32(active)
			v := uint64(0)
			for i, slot := range slots {
				v |= w.data[slot][lane] & mask(part) << (i * part)
			}
			w.data[d][lane] = v
		}
		return nil
	}
}

func compileSelect(c *compiler, s *statement) {
	c.arity(s, 4, 4)
	k := c.kind(s, 0)
	a := c.sourceOf(k, s.args[1])
	b := c.sourceOf(k, s.args[2])
	p := c.predicateSource(s.args[3])
	d, _ := c.destination(s.args[0], k.bits)
	m := mask(k.bits)
	c.now.run = func(w *warp, active uint32) error {
		x, y, z, choice := &w.data[d], &w.data[a], &w.data[b], p.read(w)
		for ; active != 0; active &= active - 1 {
			i := bits.TrailingZeros32(active)
			v := z[i]
			if choice>>i&1 != 0 {
				v = y[i]
			}
			x[i] = v & m
		}
		return nil
	}
}

// compileSelectBySign is slct: a if c is not negative, else b.
func compileSelectBySign(c *compiler, s *statement) {
	if s.last(0) != "s32" {
		c.fail("only a choice by s32 is supported")
	}
	k := c.kind(s, 1)
	c.ternary(s, k, kind{letter: 's', bits: 32}, func(x, y, z uint64) uint64 {
		if int32(z) >= 0 {
			return x
		}
		return y
	})
}

// compileAddress is cvta. Global addresses are generic ones; those of shared
// and local memory have windows of their own.
func compileAddress(c *compiler, s *statement) {
	c.arity(s, 2, 2)
	base := uint64(0)
	switch {
	case s.has("shared"):
		base = sharedWindow
	case s.has("local"):
		base = localWindow
	}
	if s.has("to") {
		base = -base
	}
	k := c.kind(s, 0)
	if c.variable(s.args[1].name) != nil {
		c.moveSymbol(k, s.args[0], s.args[1], base)
		return
	}
	c.unary(s, k, k, func(x uint64) uint64 { return x + base })
}

// compilePermute is prmt in its default mode: each nibble of the selector picks
// a byte of b:a, or with its upper bit repeats that byte's sign.
func compilePermute(c *compiler, s *statement) {
	if s.last(0) != "b32" || len(s.mods) != 1 {
		c.fail("only the default mode is supported")
	}
	k := kind{letter: 'b', bits: 32}
	c.ternary(s, k, k, permute)
}

func permute(x, y, z uint64) uint64 {
	bytes := x&low32 | y<<32
	if z&0x8888 == 0 { // no byte is filled with a sign
		return bytes>>(8*(z&7))&0xff | bytes>>(8*(z>>4&7))&0xff<<8 | bytes>>(8*(z>>8&7))&0xff<<16 | bytes>>(8*(z>>12&7))&0xff<<24
	}
	v := uint64(0)
	for i := range 4 {
		n := z >> (4 * i) & 0xf
		b := bytes >> (8 * (n & 7)) & 0xff
		if n&8 != 0 {
			b = 0xff * (b >> 7)
		}
		v |= b << (8 * i)
	}
	return v
}
