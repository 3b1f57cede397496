package cuda

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// cast converts between the dtypes that opt.ExpandFor leaves.
func (r *renderer) cast(in *program.Instr) error {
	from, to := in.Args[0], in.Result
	if from.Type.Elem == ir.U8 {
		r.origin[to] = from
	}
	if to.Type.Elem == ir.F16 || to.Type.Elem == ir.BF16 {
		r.roundHalf(in)
		return nil
	}
	sameSize := from.Type.Elem.Size() == to.Type.Elem.Size() && from.Type.Elem.IsInt() && to.Type.Elem.IsInt()
	if h := r.values[from.ID]; sameSize && isPacked(to.Type) && h.words != nil {
		r.setWords(to, h.words)
		return nil
	}
	if r.bytesToFloat(from, to) {
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
			shifted[i] = r.let(uint32Type, "%s ^ 0x80808080u", w.text())
		}
		words = shifted
	}
	lanes := make([]operand, to.Type.Lanes)
	for i := range lanes {
		lanes[i] = r.let(float32Type, "__fsub_rn(__uint_as_float(__byte_perm(%s, 0x4b000000u, 0x%04x)), %.1ff)", words[i/4].text(), 0x7540|i%4, off)
	}
	r.set(to, lanes)
	if sum := r.offsets[to].Sum; sum != nil {
		r.added[sum] = to
	}
	return true
}

func (r *renderer) castLane(v, to *program.Value, i int) (operand, error) {
	from, d := v.Type.Elem, to.Type.Elem
	t, x := r.typeOf(to), r.lane(v, i)
	switch {
	case from == d:
		return r.sameType(x, t), nil
	case d == ir.Bool: // NaN is true
		return r.let(boolean, "%s != 0", x.text()), nil
	case from == ir.Bool:
		one := operand{bits: 1, t: t}
		if d.IsFloat() {
			one.bits = ir.FloatBits(d, 1)
		}
		return r.choose(x, one, operand{t: t}, t), nil
	case from == ir.F16 && d == ir.F32:
		return r.halfToFloat(v, i), nil
	case from == ir.F32 && d == ir.F64:
		return r.let(t, "(double)%s", x.text()), nil
	case from == ir.F64 && d == ir.F32:
		return r.let(t, "__double2float_rn(%s)", x.text()), nil
	case (from == ir.F32 || from == ir.F64) && !d.IsFloat():
		return r.floatToInt(x, d, t), nil
	case from.IsFloat():
		return operand{}, fmt.Errorf("no cast of %s to %s", from, d)
	case d == ir.F32 || d == ir.F64:
		return r.let(t, "%s%s", intToFloat[t], parenthesised(x)), nil
	case !d.IsFloat():
		return r.intToInt(v, x, d, t), nil
	}
	return operand{}, fmt.Errorf("no cast of %s to %s", from, d)
}

// intToFloat are casts, which round to nearest even.
var intToFloat = map[ctype]string{float32Type: "(float)", float64Type: "(double)"}

func parenthesised(o operand) string { return "(" + o.text() + ")" }

// halfToFloat reads half i of the word that holds it.
func (r *renderer) halfToFloat(v *program.Value, i int) operand {
	if !isPacked(v.Type) {
		return r.let(float32Type, "%s(%s)", r.call("half_to_float"), r.lane(v, 0).text())
	}
	w := r.words(v)[i/2].text()
	if i%2 != 0 {
		w += " >> 16"
	}
	return r.let(float32Type, "%s(%s)", r.call("half_to_float"), w)
}

// roundHalf converts f32 to f16 or bf16; pairs in one instruction from sm_80.
func (r *renderer) roundHalf(in *program.Instr) {
	from, to := in.Args[0], in.Result
	name := map[ir.DType]string{ir.F16: "half", ir.BF16: "bf16"}[to.Type.Elem]
	lanes := to.Type.Lanes
	if lanes == 1 {
		r.set(to, []operand{r.let(uint32Type, "%s(%s)", r.call("float_to_"+name), r.lane(from, 0).text())})
		return
	}
	words := make([]operand, wordsOf(to.Type))
	for i := range words {
		lo, hi := r.lane(from, 2*i), operand{t: float32Type}
		if 2*i+1 < lanes {
			hi = r.lane(from, 2*i+1)
		}
		if r.desc.SM >= 80 {
			words[i] = r.let(uint32Type, "%s(%s, %s)", r.call("floats_to_"+name+"2"), lo.text(), hi.text())
			continue
		}
		convert := r.call("float_to_" + name)
		words[i] = r.let(uint32Type, "%s(%s) | %s(%s) << 16", convert, lo.text(), convert, hi.text())
	}
	r.setWords(to, words)
}

// floatToIntNames are conversions that truncate and saturate, by source and
// result.
var floatToIntNames = map[ctype]map[ctype]string{
	float32Type: {int32Type: "__float2int_rz", uint32Type: "__float2uint_rz", int64Type: "__float2ll_rz", uint64Type: "__float2ull_rz"},
	float64Type: {int32Type: "__double2int_rz", uint32Type: "__double2uint_rz", int64Type: "__double2ll_rz", uint64Type: "__double2ull_rz"},
}

// floatToInt: NaN gives 0, which the conversions do from f32 to 32 bits only.
// Narrow integers are limited afterwards. An index is never held narrow here:
// nothing is known of it.
func (r *renderer) floatToInt(x operand, d ir.DType, t ctype) operand {
	machine := t
	if d.Size() < 4 {
		machine = int32Type
	}
	o := r.let(machine, "%s(%s)", floatToIntNames[x.t][machine], x.text())
	if d.Size() < 4 {
		lo, hi := d.IntRange()
		o = r.sameType(r.let(machine, "min(max(%s, %d), %d)", o.text(), lo, hi), t)
	}
	if x.t == float64Type || d.Size() == 8 {
		o = r.let(t, "%s != %s ? %s : %s", x.text(), x.text(), literal(t, 0), o.text())
	}
	return o
}

func (r *renderer) intToInt(v *program.Value, x operand, d ir.DType, t ctype) operand {
	if d.Size() >= 4 {
		return r.sameType(x.wrappedTo(t), t)
	}
	lo, hi := v.Type.Elem.IntRange()
	if b, ok := r.bounds[v]; ok && v.Type.Elem != ir.U64 {
		lo, hi = b.Lo, b.Hi
	}
	if dlo, dhi := d.IntRange(); v.Type.Elem != ir.U64 && lo >= dlo && hi <= dhi {
		return r.sameType(x, t)
	}
	return r.extend(d, x)
}

// wrappedTo is a literal with the bits that its conversion gives; a variable is
// itself.
func (o operand) wrappedTo(t ctype) operand {
	if o.literal() {
		switch {
		case o.t == int32Type:
			o.bits = uint64(int64(int32(o.bits)))
		case o.t == uint32Type:
			o.bits &= 0xffffffff
		}
	}
	return o
}

// bitcast keeps bits; lanes that were extended by another sign are extended
// again.
func (r *renderer) bitcast(in *program.Instr) {
	v, to := in.Args[0], in.Result
	d := to.Type.Elem
	if h := r.values[v.ID]; isPacked(to.Type) && h.words != nil {
		r.setWords(to, h.words)
		return
	}
	t := r.typeOf(to)
	lanes := make([]operand, to.Type.Lanes)
	for i := range lanes {
		o := r.lane(v, i)
		switch {
		case o.literal() && d.Size() <= 2 && d != ir.Bool:
			lanes[i] = r.extend(d, o)
		case o.literal():
			lanes[i] = operand{bits: o.bits, t: t}
		case o.t.float() == t.float() && d.Size() <= 2 && d != ir.Bool && isSignExtended(v.Type.Elem) != isSignExtended(d):
			lanes[i] = r.extend(d, o)
		case o.t.float() == t.float():
			lanes[i] = r.sameType(o, t)
		case o.t == float32Type:
			lanes[i] = r.sameType(r.let(uint32Type, "__float_as_uint(%s)", o.name), t)
		case o.t == float64Type:
			lanes[i] = r.sameType(r.let(int64Type, "__double_as_longlong(%s)", o.name), t)
		case t == float32Type:
			lanes[i] = r.let(t, "__uint_as_float(%s)", o.as(uint32Type))
		default:
			lanes[i] = r.let(t, "__longlong_as_double(%s)", o.as(int64Type))
		}
	}
	r.set(to, lanes)
}
