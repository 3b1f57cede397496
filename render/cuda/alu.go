package cuda

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Elementwise instructions.

// number is how an op is computed: narrow integers in 32 bits, indices that fit
// as well.
type number struct {
	dtype ir.DType
	t     ctype
	// positive says that no lane of the operands is negative.
	positive bool
	// exact says that the result does not wrap.
	exact bool
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
	if r.packedAlu(in) || r.halfAlu(in) {
		return nil
	}
	n := r.numberOf(in)
	to := r.typeOf(in.Result)
	lanes := make([]operand, in.Result.Type.Lanes)
	args := make([]operand, len(in.Args))
	for i := range lanes {
		for k, a := range in.Args {
			args[k] = r.lane(a, i)
		}
		o, err := r.compute(in.Ir, n, args)
		if err != nil {
			return err
		}
		if o.t != to && in.Result.Type.Elem == ir.I64 { // the bounds say that it fits, though operands do not
			if o.literal() {
				o.t = to
			} else {
				o = r.let(to, "%s", o.as(to))
			}
		}
		lanes[i] = o
	}
	r.set(in.Result, lanes)
	return nil
}

// numberOf is the form in which an op is computed: 64 bits if any index needs
// them.
func (r *renderer) numberOf(in *program.Instr) number {
	from := in.Args[len(in.Args)-1]
	d := from.Type.Elem
	n := number{dtype: d, t: r.typeOf(from), positive: !d.IsFloat()}
	values := in.Args
	if in.Result.Type.Elem == d {
		values = append(values[:len(values):len(values)], in.Result)
	}
	for _, v := range values {
		if r.typeOf(v) == int64Type {
			n.t = int64Type
		}
	}
	for _, a := range in.Args {
		b, ok := r.bounds[a]
		n.positive = n.positive && (!d.IsSigned() || ok && b.Lo >= 0)
	}
	if d.IsInt() && d != ir.U64 {
		b, ok := r.bounds[in.Result]
		lo, hi := d.IntRange()
		n.exact = d.Size() < 4 && d.IsSigned() && in.Ir != ir.OpShl || ok && (b.Lo > lo || b.Hi < hi)
	}
	return n
}

// compute is one lane of an op.
func (r *renderer) compute(op ir.Op, n number, x []operand) (operand, error) {
	switch {
	case n.dtype == ir.Bool:
		return r.computeBool(op, x)
	case n.t.float():
		return r.computeFloat(op, n, x)
	case n.dtype.IsFloat():
		return operand{}, fmt.Errorf("no %s of %s", op, n.dtype)
	}
	return r.computeInt(op, n, x)
}

// boolOps are formats of one or two operands; false < true.
var boolOps = map[ir.Op]string{
	ir.OpNot: "!%[1]s", ir.OpAnd: "%[1]s && %[2]s", ir.OpMin: "%[1]s && %[2]s", ir.OpMul: "%[1]s && %[2]s",
	ir.OpOr: "%[1]s || %[2]s", ir.OpMax: "%[1]s || %[2]s", ir.OpAdd: "%[1]s || %[2]s", ir.OpXor: "%[1]s != %[2]s",
	ir.OpCmpEq: "%[1]s == %[2]s", ir.OpCmpLt: "!%[1]s && %[2]s",
}

func (r *renderer) computeBool(op ir.Op, x []operand) (operand, error) {
	format, ok := boolOps[op]
	if !ok {
		return operand{}, fmt.Errorf("no %s of bool", op)
	}
	args := make([]any, len(x))
	for i := range x {
		args[i] = x[i].as(boolean)
	}
	return r.let(boolean, format, args...), nil
}

// choose is p ? x : y.
func (r *renderer) choose(p, x, y operand, t ctype) operand {
	switch {
	case p.literal() && p.bits&1 != 0, x == y:
		return x
	case p.literal():
		return y
	}
	return r.let(t, "%s ? %s : %s", p.text(), x.as(t), y.as(t))
}

// where picks lanes; with one condition for all, whole words.
func (r *renderer) where(in *program.Instr) {
	t := in.Result.Type
	if cond, ok := r.single(in.Args[0]); ok && isPacked(t) {
		x, y := r.words(in.Args[1]), r.words(in.Args[2])
		out := make([]operand, len(x))
		for i := range out {
			out[i] = r.choose(cond, x[i], y[i], uint32Type)
		}
		r.setWords(in.Result, out)
		return
	}
	ct := r.typeOf(in.Result)
	lanes := make([]operand, t.Lanes)
	for i := range lanes {
		x, y := r.lane(in.Args[1], i), r.lane(in.Args[2], i)
		lanes[i] = r.sameType(r.choose(r.lane(in.Args[0], i), x, y, ct), ct)
	}
	r.set(in.Result, lanes)
}

// sameType is an operand in the type in which its value is held.
func (r *renderer) sameType(o operand, t ctype) operand {
	switch {
	case o.t == t:
	case o.literal():
		o.t = t
	default:
		return r.let(t, "%s", o.as(t))
	}
	return o
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
