package ptx

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Elementwise instructions.

// number is how an operand's dtype is computed: narrow integers in 32 bits,
// indices that fit as well.
type number struct {
	dtype ir.DType
	class class
	// positive says that no lane is negative.
	positive bool
}

func (n number) signed() bool { return n.dtype.IsSigned() }

// bits is the width of the registers.
func (n number) bits() int {
	if n.class == wide {
		return 64
	}
	return 32
}

// suffix is the type of an instruction: s32, u64, f32.
func (n number) suffix() string {
	switch {
	case n.dtype == ir.F32:
		return "f32"
	case n.dtype == ir.F64:
		return "f64"
	case n.signed():
		return fmt.Sprintf("s%d", n.bits())
	}
	return fmt.Sprintf("u%d", n.bits())
}

func (r *renderer) alu(in *program.Instr) error {
	if in.Result.Type.Ptr {
		return r.pointerCast(in)
	}
	switch in.Ir {
	case ir.OpBitcast:
		r.bitcast(in)
		return nil
	case ir.OpCast:
		return r.cast(in)
	case ir.OpWhere:
		r.where(in)
		return nil
	}
	if v := r.added[in.Result]; v != nil {
		r.set(in.Result, r.values[v.ID].lanes)
		return nil
	}
	r.noteSum(in)
	r.noteShift(in)
	if r.packedAlu(in) || r.halfAlu(in) {
		return nil
	}
	from := in.Args[len(in.Args)-1]
	n := r.numberOf(in, from)
	lanes := make([]operand, in.Result.Type.Lanes)
	args := make([]operand, len(in.Args))
	for i := range lanes {
		for k, a := range in.Args {
			args[k] = r.laneAs(a, i, n.class)
		}
		o, err := r.compute(in.Ir, n, args)
		if err != nil {
			return err
		}
		if r.classOf(in.Result) == word && n.class == wide && in.Result.Type.Elem == ir.I64 {
			o = r.low(o) // the bounds say that it fits, though operands do not
		}
		lanes[i] = o
	}
	r.set(in.Result, lanes)
	return nil
}

// laneAs is a lane in the class of a computation.
func (r *renderer) laneAs(v *program.Value, i int, c class) operand {
	if c == wide && r.classOf(v) == word {
		return r.wideLane(v, i)
	}
	return r.lane(v, i)
}

// low is the low half of a 64-bit register.
func (r *renderer) low(o operand) operand {
	if o.literal() {
		return operand{bits: uint64(int64(int32(o.bits)))}
	}
	d := r.reg(word)
	r.ins("cvt.u32.u64 %s, %s", d.reg, o.reg)
	return d
}

// numberOf is the form in which an op is computed: 64 bits if any index needs
// them.
func (r *renderer) numberOf(in *program.Instr, from *program.Value) number {
	n := number{dtype: from.Type.Elem, class: r.classOf(from), positive: !from.Type.Elem.IsFloat()}
	values := in.Args
	if in.Result.Type.Elem == from.Type.Elem {
		values = append(values[:len(values):len(values)], in.Result)
	}
	for _, v := range values {
		if r.classOf(v) == wide {
			n.class = wide
		}
	}
	for _, a := range in.Args {
		b, ok := r.bounds[a]
		n.positive = n.positive && (!from.Type.Elem.IsSigned() || ok && b.Lo >= 0)
	}
	return n
}

// compute is one lane of an op; literals are folded where that is short.
func (r *renderer) compute(op ir.Op, n number, x []operand) (operand, error) {
	switch {
	case n.dtype == ir.Bool:
		return r.computeBool(op, x)
	case n.dtype == ir.F32 || n.dtype == ir.F64:
		return r.computeFloat(op, n, x)
	case n.dtype.IsFloat():
		return operand{}, fmt.Errorf("no %s of %s", op, n.dtype)
	}
	return r.computeInt(op, n, x)
}

func (r *renderer) computeBool(op ir.Op, x []operand) (operand, error) {
	for i := range x {
		x[i] = r.inReg(x[i], predicate)
	}
	p := r.reg(predicate)
	switch op {
	case ir.OpNot:
		r.ins("not.pred %s, %s", p.reg, x[0].reg)
	case ir.OpAnd, ir.OpMin, ir.OpMul:
		r.ins("and.pred %s, %s, %s", p.reg, x[0].reg, x[1].reg)
	case ir.OpOr, ir.OpMax, ir.OpAdd:
		r.ins("or.pred %s, %s, %s", p.reg, x[0].reg, x[1].reg)
	case ir.OpXor:
		r.ins("xor.pred %s, %s, %s", p.reg, x[0].reg, x[1].reg)
	case ir.OpCmpEq:
		r.ins("xor.pred %s, %s, %s", p.reg, x[0].reg, x[1].reg)
		r.ins("not.pred %s, %s", p.reg, p.reg)
	case ir.OpCmpLt: // false < true
		r.ins("not.pred %s, %s", p.reg, x[0].reg)
		r.ins("and.pred %s, %s, %s", p.reg, p.reg, x[1].reg)
	default:
		return operand{}, fmt.Errorf("no %s of bool", op)
	}
	return p, nil
}

// three prints an instruction of a result and operands in the class of n.
func (r *renderer) emit(name string, n number, x ...operand) operand {
	d := r.reg(n.class)
	text := name + " " + d.reg
	for _, o := range x {
		text += ", " + o.as(n.dtype, n.class)
	}
	r.ins("%s", text)
	return d
}

// compare prints setp.
func (r *renderer) compare(relation string, n number, x, y operand) operand {
	p := r.reg(predicate)
	r.ins("setp.%s.%s %s, %s, %s", relation, n.suffix(), p.reg, x.as(n.dtype, n.class), y.as(n.dtype, n.class))
	return p
}

// choose prints selp.
func (r *renderer) choose(p, x, y operand, n number) operand {
	if p.literal() {
		if p.bits&1 != 0 {
			return x
		}
		return y
	}
	if x == y {
		return x
	}
	d := r.reg(n.class)
	r.ins("selp.b%d %s, %s, %s, %s", n.bits(), d.reg, x.as(ir.I64, n.class), y.as(ir.I64, n.class), p.reg)
	return d
}

func (r *renderer) choosePredicate(p, x, y operand) operand {
	d := r.reg(predicate)
	t := r.reg(predicate)
	p, x, y = r.inReg(p, predicate), r.inReg(x, predicate), r.inReg(y, predicate)
	r.ins("and.pred %s, %s, %s", d.reg, p.reg, x.reg)
	r.ins("not.pred %s, %s", t.reg, p.reg)
	r.ins("and.pred %s, %s, %s", t.reg, t.reg, y.reg)
	r.ins("or.pred %s, %s, %s", d.reg, d.reg, t.reg)
	return d
}

// where picks lanes; with one condition for all, whole words.
func (r *renderer) where(in *program.Instr) {
	t := in.Result.Type
	if isPacked(t) {
		if cond, ok := r.single(in.Args[0]); ok {
			x, y := r.words(in.Args[1]), r.words(in.Args[2])
			out := make([]operand, len(x))
			for i := range out {
				out[i] = r.choose(cond, x[i], y[i], number{dtype: ir.U32, class: word})
			}
			r.setWords(in.Result, out)
			return
		}
	}
	c := r.classOf(in.Result)
	n := number{dtype: t.Elem, class: c}
	lanes := make([]operand, t.Lanes)
	for i := range lanes {
		cond := r.lane(in.Args[0], i)
		x, y := r.laneFor(in.Args[1], i, in.Result), r.laneFor(in.Args[2], i, in.Result)
		if c == predicate {
			lanes[i] = r.choosePredicate(cond, x, y)
		} else {
			lanes[i] = r.choose(cond, x, y, n)
		}
	}
	r.set(in.Result, lanes)
}

// laneFor is a lane of v in the class in which `as` is held.
func (r *renderer) laneFor(v *program.Value, i int, as *program.Value) operand {
	return r.laneAs(v, i, r.classOf(as))
}

// single is the one operand that all lanes of v are.
func (r *renderer) single(v *program.Value) (operand, bool) {
	h := r.values[v.ID]
	if h.lanes == nil {
		return operand{}, false
	}
	for _, o := range h.lanes[1:] {
		if o != h.lanes[0] {
			return operand{}, false
		}
	}
	return h.lanes[0], true
}
