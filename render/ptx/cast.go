package ptx

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

var notANumber = math.NaN()

// cast converts between the dtypes that opt.ExpandFor leaves.
func (r *renderer) cast(in *program.Instr) error {
	from, to := in.Args[0], in.Result
	if from.Type.Elem == ir.U8 {
		r.origin[to] = from
	}
	if to.Type.Elem == ir.F16 || to.Type.Elem == ir.BF16 {
		if !r.bytesToHalf(from, to) {
			r.roundHalf(in)
		}
		return nil
	}
	sameSize := from.Type.Elem.Size() == to.Type.Elem.Size() && from.Type.Elem.IsInt() && to.Type.Elem.IsInt()
	if h := r.values[from.ID]; sameSize && isPacked(to.Type) && h.words != nil {
		r.setWords(to, h.words)
		r.values[to.ID].bits = h.bits
		return nil
	}
	if r.bytesToFloat(from, to) || r.wordsToBytes(from, to) {
		return nil
	}
	lanes := make([]operand, to.Type.Lanes)
	for i := range lanes {
		o, err := r.castLane(from, to, i)
		if err != nil {
			return err
		}
		lanes[i] = o
	}
	r.set(to, lanes)
	return nil
}

// bytesToFloat converts packed bytes to f32 without the conversion unit, which
// is narrow (converting kernels stop at 80 % of an H200's bandwidth): a byte in
// the low bits of 2^23 makes the float 2^23 + x, and taking 2^23 off is exact.
// Signed bytes are moved up by 128 first. What is added to the float is taken off
// less (gpu.ByteOffsets).
func (r *renderer) bytesToFloat(from, to *program.Value) bool {
	d, words := from.Type.Elem, r.values[from.ID].words
	if words == nil || to.Type.Elem != ir.F32 || d != ir.U8 && d != ir.I8 {
		return false
	}
	off := float64(1<<23) - r.offsets[to].Plus
	if d == ir.I8 {
		off += 128
		shifted := make([]operand, len(words))
		for i, w := range words {
			shifted[i] = r.emit("xor.b32", number{dtype: ir.U32, class: word}, w, operand{bits: 0x80808080})
		}
		words = shifted
	}
	r.bytes[to] = from
	n := number{dtype: ir.F32, class: word}
	lanes := make([]operand, to.Type.Lanes)
	for i := range lanes {
		sum := r.prmt(words[i/4], operand{bits: 0x4b000000}, 0x7540|i%4)
		lanes[i] = r.emit("sub.rn.f32", n, sum, operand{bits: ir.FloatBits(ir.F32, off)})
	}
	r.set(to, lanes)
	if sum := r.offsets[to].Sum; sum != nil {
		r.added[sum] = to
	}
	return true
}

// bytesToHalf makes f16 of floats that bytes were converted to, two at a time, from
// the bytes: a byte in the low bits of 2^10 makes the half 2^10 + x. The floats are
// left to nobody then.
func (r *renderer) bytesToHalf(from, to *program.Value) bool {
	bytes := r.bytes[from]
	if bytes == nil || to.Type.Elem != ir.F16 || to.Type.Lanes%4 != 0 {
		return false
	}
	base, flip := operand{bits: 0x64006400}, uint64(0)
	if bytes.Type.Elem == ir.I8 {
		base.bits, flip = 0x64806480, 0x80808080
	}
	n := number{dtype: ir.U32, class: word}
	base = r.inReg(base, word)
	var out []operand
	for _, w := range r.values[bytes.ID].words {
		if flip != 0 {
			w = r.emit("xor.b32", n, w, operand{bits: flip})
		}
		for _, pair := range []int{0x4140, 0x4342} {
			out = append(out, r.emit("sub.f16x2", n, r.prmt(w, operand{bits: 0x64}, pair), base))
		}
	}
	r.setWords(to, out)
	return true
}

// wordsToBytes packs the low bytes of 32-bit integers by byte permutes, four lanes
// in three. Where a shift by whole bytes made them, the permutes take the bytes
// from what was shifted.
func (r *renderer) wordsToBytes(from, to *program.Value) bool {
	if d := from.Type.Elem; !isPacked(to.Type) || to.Type.Elem.Size() != 1 || d != ir.I32 && d != ir.U32 {
		return false
	}
	at := 0
	if s, ok := r.shifted[from]; ok {
		from, at = s.from, s.bytes
	}
	lane := func(i int) operand { return r.inReg(r.lane(from, min(i, from.Type.Lanes-1)), word) }
	pair := at | (at+4)<<4 // byte at of both words
	words := make([]operand, wordsOf(to.Type))
	for i := range words {
		words[i] = r.prmt(lane(4*i), lane(4*i+1), pair)
		if to.Type.Lanes > 2 {
			words[i] = r.prmt(words[i], r.prmt(lane(4*i+2), lane(4*i+3), pair), 0x5410)
		}
	}
	r.setWords(to, words)
	return true
}

// byteShift is a shift of 32-bit integers to the right by whole bytes.
type byteShift struct {
	from  *program.Value
	bytes int
}

// noteShift remembers such shifts for wordsToBytes.
func (r *renderer) noteShift(in *program.Instr) {
	if d := in.Result.Type.Elem; in.Ir != ir.OpShr || d != ir.I32 && d != ir.U32 {
		return
	}
	if c, ok := r.single(in.Args[1]); ok && c.literal() && c.bits < 32 && c.bits%8 == 0 {
		r.shifted[in.Result] = byteShift{in.Args[0], int(c.bits / 8)}
	}
}

// byteOf takes a byte out of a word and extends it, in one permutation.
func (r *renderer) byteOf(d ir.DType, word operand, at int) operand {
	high := 4 // the first byte of 0
	if d.IsSigned() {
		high = 8 | at // its sign
	}
	return r.prmt(word, operand{}, high<<12|high<<8|high<<4|at)
}

func (r *renderer) castLane(v, to *program.Value, i int) (operand, error) {
	from, d := v.Type.Elem, to.Type.Elem
	toClass := r.classOf(to)
	switch {
	case from == d:
		return r.laneAs(v, i, toClass), nil
	case d == ir.Bool:
		return r.isNotZero(v, i), nil
	case from == ir.Bool:
		return r.boolTo(r.lane(v, i), number{dtype: d, class: toClass}), nil
	case from == ir.F16 && d == ir.F32:
		return r.halfToFloat(v, i), nil
	case from == ir.F32 && d == ir.F64:
		return r.convert("cvt.f64.f32", wide, r.lane(v, i).f32()), nil
	case from == ir.F64 && d == ir.F32:
		return r.convert("cvt.rn.f32.f64", word, r.lane(v, i).f64()), nil
	case from == ir.F32 || from == ir.F64:
		if d.IsFloat() {
			break
		}
		return r.floatToInt(v, to, i), nil
	case from.IsFloat():
		break
	case d == ir.F32 || d == ir.F64:
		return r.intToFloat(v, to, i), nil
	case !d.IsFloat():
		return r.intToInt(v, to, i), nil
	}
	return operand{}, fmt.Errorf("no cast of %s to %s", from, d)
}

func (r *renderer) convert(name string, c class, x string) operand {
	d := r.reg(c)
	r.ins("%s %s, %s", name, d.reg, x)
	return d
}

func (r *renderer) isNotZero(v *program.Value, i int) operand {
	n := number{dtype: v.Type.Elem, class: r.classOf(v)}
	o := r.lane(v, i)
	relation := "ne"
	if n.dtype.IsFloat() {
		relation = "neu" // NaN is true
	}
	return r.compare(relation, n, r.inReg(o, n.class), operand{})
}

func (r *renderer) boolTo(p operand, n number) operand {
	one := operand{bits: 1}
	if n.dtype.IsFloat() {
		one.bits = ir.FloatBits(n.dtype, 1)
	}
	return r.choose(p, one, operand{}, n)
}

// halfToFloat splits the word that holds the half.
func (r *renderer) halfToFloat(v *program.Value, i int) operand {
	h := r.reg(half)
	other := r.reg(half)
	o, first := r.lane, 0
	if isPacked(v.Type) {
		w := r.inReg(r.words(v)[i/2], word)
		first = i % 2
		if first == 0 {
			r.ins("mov.b32 {%s, %s}, %s", h.reg, other.reg, w.reg)
		} else {
			r.ins("mov.b32 {%s, %s}, %s", other.reg, h.reg, w.reg)
		}
	} else {
		r.ins("mov.b32 {%s, %s}, %s", h.reg, other.reg, r.inReg(o(v, 0), word).reg)
	}
	return r.convert("cvt.f32.f16", word, h.reg)
}

// roundHalf converts f32 to f16 or bf16; pairs in one instruction from sm_80.
func (r *renderer) roundHalf(in *program.Instr) {
	from, to := in.Args[0], in.Result
	name := to.Type.Elem.String()
	lanes := to.Type.Lanes
	if lanes == 1 {
		h := r.convert("cvt.rn."+name+".f32", half, r.lane(from, 0).f32())
		r.set(to, []operand{r.convert("cvt.u32.u16", word, h.reg)})
		return
	}
	words := make([]operand, wordsOf(to.Type))
	for i := range words {
		lo, hi := r.lane(from, 2*i), operand{}
		if 2*i+1 < lanes {
			hi = r.lane(from, 2*i+1)
		}
		if r.desc.SM >= 80 {
			words[i] = r.convert("cvt.rn."+name+"x2.f32", word, r.inReg(hi, word).reg+", "+r.inReg(lo, word).reg)
			continue
		}
		a := r.convert("cvt.rn."+name+".f32", half, lo.f32())
		b := r.convert("cvt.rn."+name+".f32", half, hi.f32())
		words[i] = r.convert("mov.b32", word, "{"+a.reg+", "+b.reg+"}")
	}
	r.setWords(to, words)
}

// floatToInt truncates and saturates, which cvt does; NaN gives 0, which it
// does for 32 bits only. Narrow integers are limited afterwards.
func (r *renderer) floatToInt(v, to *program.Value, i int) operand {
	d := to.Type.Elem
	source := number{dtype: v.Type.Elem, class: r.classOf(v)}
	x := r.inReg(r.lane(v, i), source.class)
	n := number{dtype: d, class: word}
	if d.Size() == 8 {
		n.class = wide
	}
	suffix := n.suffix()
	if d.Size() < 4 {
		suffix = "s32"
	}
	o := r.convert("cvt.rzi."+suffix+"."+source.suffix(), n.class, x.reg)
	if d.Size() < 4 {
		lo, hi := d.IntRange()
		s := number{dtype: ir.I32, class: word}
		o = r.emit("max.s32", s, o, operand{bits: uint64(lo)})
		o = r.emit("min.s32", s, o, operand{bits: uint64(hi)})
	}
	if source.dtype == ir.F64 || d.Size() == 8 {
		p := r.compare("nan", source, x, x)
		o = r.choose(p, operand{}, o, n)
	}
	return o
}

func (r *renderer) intToFloat(v, to *program.Value, i int) operand {
	from := number{dtype: v.Type.Elem, class: r.classOf(v)}
	c := word
	rounding := "cvt.rn."
	if to.Type.Elem == ir.F64 {
		c = wide
	}
	x := r.inReg(r.lane(v, i), from.class)
	return r.convert(rounding+to.Type.Elem.String()+"."+from.suffix(), c, x.reg)
}

func (r *renderer) intToInt(v, to *program.Value, i int) operand {
	d := to.Type.Elem
	c := r.classOf(to)
	if c == wide {
		return r.wideLane(v, i)
	}
	o := r.lane(v, i)
	if r.classOf(v) == wide {
		o = r.low(o)
	}
	if d.Size() >= 4 {
		return o
	}
	lo, hi := v.Type.Elem.IntRange()
	if b, ok := r.bounds[v]; ok && v.Type.Elem != ir.U64 {
		lo, hi = b.Lo, b.Hi
	}
	if dlo, dhi := d.IntRange(); v.Type.Elem != ir.U64 && lo >= dlo && hi <= dhi {
		return o
	}
	if s, ok := r.shifted[v]; ok && d.Size() == 1 {
		return r.byteOf(d, r.lane(s.from, i), s.bytes)
	}
	return r.narrowTo(d, o)
}

// bitcast keeps registers; lanes that were extended by another sign are
// extended again.
func (r *renderer) bitcast(in *program.Instr) {
	v, to := in.Args[0], in.Result
	from, d := v.Type.Elem, to.Type.Elem
	h := r.values[v.ID]
	if isPacked(to.Type) && h.words != nil {
		r.setWords(to, h.words)
		r.values[to.ID].bits = h.bits
		return
	}
	lanes := make([]operand, to.Type.Lanes)
	for i := range lanes {
		o := r.laneFor(v, i, to)
		if r.classOf(to) == word && r.classOf(v) == wide {
			o = r.low(o)
		}
		if d.Size() <= 2 && d != ir.Bool && isSignExtended(from) != isSignExtended(d) {
			o = r.narrowTo(d, o)
		}
		lanes[i] = o
	}
	r.set(to, lanes)
}

func isSignExtended(d ir.DType) bool { return d.IsSigned() && !d.IsFloat() }
