package ptx

import (
	"fmt"
	"strconv"

	"tgc/ir"
	"tgc/render/gpu"
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

var classes = [numClasses]struct{ directive, prefix string }{
	predicate: {".pred", "%p"},
	half:      {".b16", "%h"},
	word:      {".b32", "%r"},
	wide:      {".b64", "%d"},
}

func classOf(t gpu.Type) class {
	switch t.Bits() {
	case 1:
		return predicate
	case 16:
		return half
	case 64:
		return wide
	}
	return word
}

// operand is a register or, without one, a literal of these bits.
type operand = gpu.Operand

func literal(bits uint64) operand { return operand{Bits: bits} }

// The forms of an operand by the type of the instruction.

func b32(o operand) string {
	if !o.Literal() {
		return o.Name
	}
	return integer(int64(int32(o.Bits)), 0xffffffff)
}

func b64(o operand) string {
	if !o.Literal() {
		return o.Name
	}
	return integer(int64(o.Bits), ^uint64(0))
}

func integer(v int64, mask uint64) string {
	if v > -1<<16 && v < 1<<16 {
		return strconv.FormatInt(v, 10)
	}
	return "0x" + strconv.FormatUint(uint64(v)&mask, 16)
}

// text prints an operand for an instruction of a type.
func text(o operand, t gpu.Type) string {
	switch {
	case !o.Literal():
		return o.Name
	case t == gpu.F32:
		return fmt.Sprintf("0f%08X", uint32(o.Bits))
	case t == gpu.F64:
		return fmt.Sprintf("0d%016X", o.Bits)
	}
	return bits(o, t)
}

// bits prints an operand for an instruction without a sign or a fraction.
func bits(o operand, t gpu.Type) string {
	if classOf(t) == wide {
		return b64(o)
	}
	return b32(o)
}

func (r *printer) reg(t gpu.Type) operand {
	c := classOf(t)
	n := r.counts[c]
	r.counts[c]++
	return operand{Name: classes[c].prefix + strconv.Itoa(n), Type: t}
}

// emit prints an instruction that computes in the type of n.
func (r *printer) emit(name string, n gpu.Number, x ...operand) operand {
	d := r.reg(n.Type)
	list := name + " " + d.Name
	for _, o := range x {
		list += ", " + text(o, n.Type)
	}
	r.ins("%s", list)
	return d
}

// Declare takes a new register.
func (r *printer) Declare(t gpu.Type) operand { return r.reg(t) }

// Array takes n registers.
func (r *printer) Array(t gpu.Type, n int64) []operand {
	regs := make([]operand, n)
	for i := range regs {
		regs[i] = r.reg(t)
	}
	return regs
}

// Use extends an index that is held in 32 bits.
func (r *printer) Use(o operand, t gpu.Type) operand {
	if o.Literal() || classOf(t) != wide || classOf(o.Type) != word {
		return o
	}
	return r.Once("wide "+o.Name, func() operand { return r.widen(o) })
}

func (r *printer) widen(o operand) operand {
	if o.Type == gpu.I32 {
		return r.convert("cvt.s64.s32", gpu.I64, o.Name)
	}
	return r.convert("cvt.u64.u32", gpu.U64, o.Name)
}

// Hold extends or cuts an index.
func (r *printer) Hold(o operand, t gpu.Type) operand {
	if classOf(t) == word && classOf(o.Type) == wide {
		return r.low(o)
	}
	return r.Use(o, t)
}

// low is the low half of a 64-bit register.
func (r *printer) low(o operand) operand {
	if o.Literal() {
		return literal(uint64(int64(int32(o.Bits))))
	}
	return r.convert("cvt.u32.u64", gpu.U32, o.Name)
}

// Variable moves a literal to a register.
func (r *printer) Variable(o operand, t gpu.Type) operand {
	if !o.Literal() {
		return o
	}
	d := r.reg(t)
	r.Move(d, o)
	return d
}

// Copy takes a register of its own.
func (r *printer) Copy(o operand) operand {
	d := r.reg(o.Type)
	r.Move(d, o)
	return d
}

// Move copies.
func (r *printer) Move(to, from operand) {
	switch c := classOf(to.Type); {
	case to.Same(from):
	case c == predicate && from.Literal():
		r.ins("mov.pred %s, %d", to.Name, from.Bits&1)
	case c == predicate:
		r.ins("mov.pred %s, %s", to.Name, from.Name)
	default:
		r.ins("mov.b%d %s, %s", to.Type.Bits(), to.Name, bits(from, to.Type))
	}
}

// wordOps are operators of words.
var wordOps = map[ir.Op]string{
	ir.OpAnd: "and.b32", ir.OpOr: "or.b32", ir.OpXor: "xor.b32", ir.OpNot: "not.b32",
	ir.OpAdd: "add.u32", ir.OpSub: "sub.u32", ir.OpMul: "mul.lo.u32", ir.OpShl: "shl.b32", ir.OpShr: "shr.u32",
}

// Word is one instruction.
func (r *printer) Word(op ir.Op, x ...operand) operand { return r.emit(wordOps[op], gpu.Word, x...) }

// Named is o: instructions have results.
func (r *printer) Named(o operand) operand { return o }

// Permute is one prmt.
func (r *printer) Permute(x, y operand, selector int) operand {
	return r.convert("prmt.b32", gpu.U32, fmt.Sprintf("%s, %s, 0x%04x", b32(x), b32(y), selector))
}

// PermuteBy is one prmt.
func (r *printer) PermuteBy(x, y, selector operand) operand {
	return r.emit("prmt.b32", gpu.Word, x, y, selector)
}

// Unpack is a bit field, or a shift or mask at the ends of the word.
func (r *printer) Unpack(w operand, d ir.DType, at int) operand {
	width := d.Bits()
	switch {
	case gpu.IsSignExtended(d):
		return r.convert("bfe.s32", gpu.I32, fmt.Sprintf("%s, %d, %d", w.Name, at, width))
	case at == 0:
		return r.convert("and.b32", gpu.U32, fmt.Sprintf("%s, %d", w.Name, 1<<width-1))
	case at+width == 32:
		o := r.convert("shr.u32", gpu.U32, fmt.Sprintf("%s, %d", w.Name, at))
		if at == 16 {
			r.upper[o.Name] = w.Name
		}
		return o
	}
	return r.convert("bfe.u32", gpu.U32, fmt.Sprintf("%s, %d, %d", w.Name, at, width))
}

// Extend is a conversion or a mask.
func (r *printer) Extend(d ir.DType, o operand) operand {
	o = r.Hold(o, gpu.U32)
	if gpu.IsSignExtended(d) {
		return r.convert(fmt.Sprintf("cvt.s32.s%d", d.Bits()), gpu.I32, o.Name)
	}
	return r.convert("and.b32", gpu.U32, fmt.Sprintf("%s, %d", o.Name, 1<<d.Bits()-1))
}

// Half is one instruction.
func (r *printer) Half(op ir.Op, x []operand) operand {
	for i := range x {
		x[i] = r.Variable(x[i], gpu.U32)
	}
	return r.emit(floatOps[op]+".f16x2", gpu.Word, x...)
}

// Dot4 is one dp4a; the types of its factors are those of the bytes.
func (r *printer) Dot4(signed [2]bool, x, y, acc operand) operand {
	names := map[bool]string{false: "u32", true: "s32"}
	return r.emit("dp4a."+names[signed[0]]+"."+names[signed[1]], gpu.Word, x, y, acc)
}

// InsertBytes is one prmt.
func (r *printer) InsertBytes(into, o operand, at, width int) operand {
	if at == 0 {
		return o
	}
	selector := 0x3210
	for b := range width {
		shift := 4 * (at + b)
		selector = selector&^(0xf<<shift) | (4+b)<<shift
	}
	return r.Permute(into, o, selector)
}
