package ptx

import (
	"fmt"
	"strconv"

	"tgc/ir"
	"tgc/ir/program"
)

// class is a kind of register.
type class uint8

const (
	predicate class = iota
	half            // only between conversions
	word            // 32 bits: also elements of 1 and 2 bytes, one or packed
	wide            // 64 bits
	numClasses
)

var classes = [numClasses]struct{ directive, prefix, suffix string }{
	predicate: {".pred", "%p", "pred"},
	half:      {".b16", "%h", "b16"},
	word:      {".b32", "%r", "b32"},
	wide:      {".b64", "%d", "b64"},
}

// operand is a register or, without one, a literal of these bits.
type operand struct {
	reg  string
	bits uint64
}

func (o operand) literal() bool { return o.reg == "" }

// The forms of an operand by the type of the instruction.

func (o operand) i32() string {
	if o.reg != "" {
		return o.reg
	}
	return integer(int64(int32(o.bits)), 0xffffffff)
}

func (o operand) i64() string {
	if o.reg != "" {
		return o.reg
	}
	return integer(int64(o.bits), ^uint64(0))
}

func integer(v int64, mask uint64) string {
	if v > -1<<16 && v < 1<<16 {
		return strconv.FormatInt(v, 10)
	}
	return "0x" + strconv.FormatUint(uint64(v)&mask, 16)
}

func (o operand) f32() string {
	if o.reg != "" {
		return o.reg
	}
	return fmt.Sprintf("0f%08X", uint32(o.bits))
}

func (o operand) f64() string {
	if o.reg != "" {
		return o.reg
	}
	return fmt.Sprintf("0d%016X", o.bits)
}

// as prints an operand for an instruction of a dtype computed in its class.
func (o operand) as(d ir.DType, c class) string {
	switch {
	case d == ir.F32:
		return o.f32()
	case d == ir.F64:
		return o.f64()
	case c == wide:
		return o.i64()
	}
	return o.i32()
}

// held says where a value lives. A pointer has an address. A vector of narrow
// elements has words, lanes, or both; every other value has lanes.
//
// A lane of 1 or 2 bytes is a 32-bit register with the element extended by the
// sign of its dtype; floats of 1 and 2 bytes are extended with zeros. Words are
// packed little-endian; bytes past the last lane are undefined.
type held struct {
	lanes   []operand
	words   []operand
	bits    uint64 // of packed words: those that a lane can have; 0 says nothing
	address *address
}

// isPacked reports a vector of narrow elements.
func isPacked(t program.Type) bool {
	return !t.Ptr && t.Lanes > 1 && t.Elem != ir.Bool && t.Elem.Size() <= 2
}

// wordsOf is the number of words of a packed vector.
func wordsOf(t program.Type) int { return (t.Lanes*t.Elem.Size() + 3) / 4 }

func (r *renderer) reg(c class) operand {
	n := r.counts[c]
	r.counts[c]++
	return operand{reg: classes[c].prefix + strconv.Itoa(n)}
}

// classOf is the class in which lanes of v are held.
func (r *renderer) classOf(v *program.Value) class {
	switch d := v.Type.Elem; {
	case d == ir.Bool:
		return predicate
	case d == ir.I64 && r.narrow(v):
		return word
	case d.Size() == 8:
		return wide
	}
	return word
}

// narrow reports an I64 value that is held in 32 bits.
func (r *renderer) narrow(v *program.Value) bool {
	b, known := r.bounds[v]
	return known && v.Type.Elem == ir.I64 && b.Fits32()
}

func (r *renderer) set(v *program.Value, lanes []operand) {
	r.values[v.ID] = &held{lanes: lanes}
}

func (r *renderer) setWords(v *program.Value, words []operand) {
	r.values[v.ID] = &held{words: words}
}

// lane is one lane, in the class of its value.
func (r *renderer) lane(v *program.Value, i int) operand {
	h := r.values[v.ID]
	if h.lanes != nil {
		return h.lanes[i]
	}
	key := fmt.Sprintf("lane %d %d", v.ID, i)
	return r.scopes.Once(key, func() operand { return r.unpack(h.words, v.Type.Elem, i) })
}

// unpack takes element i out of packed words.
func (r *renderer) unpack(words []operand, d ir.DType, i int) operand {
	bits := d.Bits()
	per := 32 / bits
	w, at := words[i/per], i%per*bits
	if w.literal() {
		return operand{bits: uint64(extend(d, int64(w.bits>>at)))}
	}
	o := r.reg(word)
	switch {
	case d.IsSigned() && !d.IsFloat():
		r.ins("bfe.s32 %s, %s, %d, %d", o.reg, w.reg, at, bits)
	case at == 0:
		r.ins("and.b32 %s, %s, %d", o.reg, w.reg, 1<<bits-1)
	case at+bits == 32:
		r.ins("shr.u32 %s, %s, %d", o.reg, w.reg, at)
		if at == 16 {
			r.upper[o.reg] = w.reg
		}
	default:
		r.ins("bfe.u32 %s, %s, %d, %d", o.reg, w.reg, at, bits)
	}
	return o
}

// extend is the value of an element's low bits, as a lane holds it.
func extend(d ir.DType, v int64) int64 {
	shift := 64 - d.Bits()
	if d.IsSigned() && !d.IsFloat() {
		return v << shift >> shift
	}
	return int64(uint64(v) << shift >> shift)
}

// wordsOf are the packed words of a narrow vector.
func (r *renderer) words(v *program.Value) []operand {
	h := r.values[v.ID]
	if h.words != nil {
		return h.words
	}
	words := make([]operand, wordsOf(v.Type))
	for i := range words {
		words[i] = r.scopes.Once(fmt.Sprintf("word %d %d", v.ID, i), func() operand { return r.pack(h.lanes, v.Type.Elem, i) })
	}
	return words
}

// pack makes word i of lanes; missing lanes are 0.
func (r *renderer) pack(lanes []operand, d ir.DType, i int) operand {
	per := 4 / d.Size()
	part := make([]operand, per)
	literals := true
	bits := uint64(0)
	for k := range part {
		if at := i*per + k; at < len(lanes) {
			part[k] = lanes[at]
		}
		literals = literals && part[k].literal()
		bits |= part[k].bits & (1<<d.Bits() - 1) << (k * d.Bits())
	}
	if literals {
		return operand{bits: bits}
	}
	switch {
	case per == 2 && part[0] == part[1]:
		return r.prmt(part[0], operand{}, 0x1010)
	case per == 2:
		return r.prmt(part[0], part[1], 0x5410)
	case part[0] == part[1] && part[0] == part[2] && part[0] == part[3]:
		return r.prmt(part[0], operand{}, 0x0000)
	}
	if part[1] == (operand{}) && part[2] == (operand{}) && part[3] == (operand{}) {
		return r.prmt(part[0], operand{}, 0x4440)
	}
	return r.prmt(r.prmt(part[0], part[1], 0x0040), r.prmt(part[2], part[3], 0x0040), 0x5410)
}

// prmt picks four bytes out of eight, one per nibble of the selector.
func (r *renderer) prmt(a, b operand, selector int) operand {
	o := r.reg(word)
	r.ins("prmt.b32 %s, %s, %s, 0x%04x", o.reg, a.i32(), b.i32(), selector)
	return o
}

// wideLane is a lane of an integer value in 64 bits.
func (r *renderer) wideLane(v *program.Value, i int) operand {
	o := r.lane(v, i)
	if o.literal() || r.classOf(v) == wide {
		return o
	}
	signed := v.Type.Elem.IsSigned()
	return r.scopes.Once("wide "+o.reg, func() operand { return r.widen(o, signed) })
}

func (r *renderer) widen(o operand, signed bool) operand {
	d := r.reg(wide)
	if signed {
		r.ins("cvt.s64.s32 %s, %s", d.reg, o.reg)
	} else {
		r.ins("cvt.u64.u32 %s, %s", d.reg, o.reg)
	}
	return d
}

// inReg is a literal moved to a register, where an instruction takes no
// literal.
func (r *renderer) inReg(o operand, c class) operand {
	if !o.literal() {
		return o
	}
	d := r.reg(c)
	r.move(d, o, c)
	return d
}

// move copies.
func (r *renderer) move(to, from operand, c class) {
	switch {
	case to == from:
	case c == predicate && from.literal():
		r.ins("mov.pred %s, %d", to.reg, from.bits&1)
	case c == predicate:
		r.ins("mov.pred %s, %s", to.reg, from.reg)
	case c == wide:
		r.ins("mov.b64 %s, %s", to.reg, from.i64())
	default:
		r.ins("mov.b32 %s, %s", to.reg, from.i32())
	}
}

// storage are the registers of a value as its whole: words of a packed vector,
// else lanes, with their class.
func (r *renderer) storage(v *program.Value) ([]operand, class) {
	if isPacked(v.Type) {
		return r.words(v), word
	}
	c := r.classOf(v)
	out := make([]operand, v.Type.Lanes)
	for i := range out {
		out[i] = r.lane(v, i)
	}
	return out, c
}

// fresh gives v registers of its own, to be written by moves.
func (r *renderer) fresh(v *program.Value) []operand {
	n, c := v.Type.Lanes, r.classOf(v)
	if isPacked(v.Type) {
		n = wordsOf(v.Type)
	}
	out := make([]operand, n)
	for i := range out {
		out[i] = r.reg(c)
	}
	if isPacked(v.Type) {
		r.setWords(v, out)
	} else {
		r.set(v, out)
	}
	return out
}

// like is the storage of v in the class that `as` has: an index may be held
// narrow in one and wide in the other.
func (r *renderer) like(v, as *program.Value) []operand {
	if r.classOf(as) == wide && r.classOf(v) == word && v.Type.Elem == ir.I64 {
		out := make([]operand, v.Type.Lanes)
		for i := range out {
			out[i] = r.wideLane(v, i)
		}
		return out
	}
	out, _ := r.storage(v)
	return out
}
