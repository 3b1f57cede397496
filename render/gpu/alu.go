package gpu

import (
	"fmt"
	"math/bits"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Elementwise instructions.

func (s *Selector) alu(in *program.Instr) error {
	if in.Result.Type.Ptr {
		s.pointerCast(in)
		return nil
	}
	if s.unread[in.Result] {
		return nil
	}
	switch in.Ir {
	case ir.OpBitcast:
		s.bitcast(in)
		return nil
	case ir.OpCast:
		return s.cast(in)
	case ir.OpWhere:
		s.where(in)
		return nil
	}
	if v := s.added[in.Result]; v != nil {
		s.set(in.Result, s.values[v.ID].lanes)
		return nil
	}
	s.noteSum(in)
	s.noteEntry(in)
	s.noteShift(in)
	if s.packedAlu(in) || s.mulWords(in) || s.halfAlu(in) || s.joinBytes(in) {
		return nil
	}
	n := s.numberOf(in)
	compute := s.compute
	if s.branched[in] {
		compute = s.branchedRoot
	}
	lanes := make([]Operand, in.Result.Type.Lanes)
	args := make([]Operand, len(in.Args))
	for i := range lanes {
		for k, a := range in.Args {
			args[k] = s.LaneAs(a, i, n.Type)
		}
		o, err := compute(in.Ir, n, args)
		if err != nil {
			return err
		}
		if in.Result.Type.Elem == ir.I64 { // the bounds say that it fits, though operands do not
			o = s.print.Hold(o, s.TypeOf(in.Result))
		}
		lanes[i] = o
	}
	s.set(in.Result, lanes)
	return nil
}

// numberOf is the form in which an op is computed: 64 bits if any index needs
// them.
func (s *Selector) numberOf(in *program.Instr) Number {
	from := in.Args[len(in.Args)-1]
	d := from.Type.Elem
	n := Number{DType: d, Type: s.TypeOf(from), Positive: !d.IsFloat()}
	values := in.Args
	if in.Result.Type.Elem == d {
		values = append(values[:len(values):len(values)], in.Result)
	}
	for _, v := range values {
		if s.TypeOf(v) == I64 {
			n.Type = I64
		}
	}
	for _, a := range in.Args {
		b, ok := s.bounds[a]
		n.Positive = n.Positive && (!d.IsSigned() || ok && b.Lo >= 0)
	}
	if d.IsInt() && d != ir.U64 {
		b, ok := s.bounds[in.Result]
		lo, hi := d.IntRange()
		n.Narrow = ok && (b.Lo > lo || b.Hi < hi)
		n.Exact = d.Size() < 4 && d.IsSigned() && in.Ir != ir.OpShl || n.Narrow
	}
	return n
}

// compute is one lane of an op.
func (s *Selector) compute(op ir.Op, n Number, x []Operand) (Operand, error) {
	var o Operand
	ok := true
	switch {
	case n.DType == ir.Bool:
		o, ok = s.print.Logic(op, x)
	case n.Type.Float():
		o, ok = s.float(op, n, x)
	case n.DType.IsFloat():
		ok = false
	default:
		o, ok = s.integer(op, n, x)
	}
	if !ok {
		return o, fmt.Errorf("no %s of %s", op, n.DType)
	}
	return o, nil
}

func (s *Selector) float(op ir.Op, n Number, x []Operand) (Operand, bool) {
	switch op {
	case ir.OpCmpLt, ir.OpCmpEq:
		return s.print.Compare(op, n, x[0], x[1]), true
	case ir.OpMin, ir.OpMax:
		return s.print.Extreme(op, n, x[0], x[1]), true
	case ir.OpFDiv:
		if x[0].Literal() && x[0].Bits == ir.FloatBits(n.DType, 1) {
			return s.float(ir.OpRecip, n, x[1:])
		}
	case ir.OpRecip:
		if n.Type == F32 {
			return s.inverse(x[0]), true
		}
	case ir.OpSqrt, ir.OpRsqrt:
		if n.Type == F32 && (op == ir.OpSqrt || !s.Desc.ApproxMath) {
			return s.root(op, x[0]), true
		}
	}
	return s.print.Arithmetic(op, n, x)
}

// integer computes narrow integers in 32 bits on extended lanes; where the
// result may leave their range it is extended again.
func (s *Selector) integer(op ir.Op, n Number, x []Operand) (Operand, bool) {
	switch op {
	case ir.OpCmpLt, ir.OpCmpEq:
		return s.print.Compare(op, n, x[0], x[1]), true
	case ir.OpPopc, ir.OpClz:
		return s.print.CountBits(op, n, x[0]), true
	case ir.OpShr: // of an extended lane
		return s.print.Shift(op, n, x[0], x[1]), true
	case ir.OpShl:
		return s.wrap(n, s.print.Shift(op, n, x[0], x[1])), true
	case ir.OpFloorDiv, ir.OpFloorMod:
		return s.wrap(n, s.division(op, n, x[0], x[1])), true
	}
	o, ok := s.print.Arithmetic(op, n, x)
	switch op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg, ir.OpNot:
		o = s.wrap(n, o)
	}
	return o, ok
}

// wrap extends the low bits of a narrow result that is not known to be extended.
func (s *Selector) wrap(n Number, o Operand) Operand {
	if n.DType.Size() >= 4 || n.Narrow {
		return o
	}
	return s.narrowed(n.DType, o)
}

// division is FLOORDIV or FLOORMOD. By a power of two it is a shift or a mask,
// which round down already; the rest is the printer's.
func (s *Selector) division(op ir.Op, n Number, x, y Operand) Operand {
	d := int64(y.Bits)
	switch {
	case !y.Literal() || d < 0 || d&(d-1) != 0:
		return s.print.Divide(op == ir.OpFloorDiv, n, x, y)
	case d == 0:
		return Operand{Type: n.Type}
	case op == ir.OpFloorMod:
		o, _ := s.print.Arithmetic(ir.OpAnd, n, []Operand{x, {Bits: uint64(d - 1), Type: n.Type}})
		return o
	case d == 1:
		return s.print.Hold(x, n.Type)
	}
	if n.Positive {
		n.DType = ir.U64
	}
	return s.print.Shift(ir.OpShr, n, x, word(uint64(bits.TrailingZeros64(uint64(d)))))
}

// Pick is p ? x : y, one of them if p is a literal or they are the same.
func (s *Selector) Pick(p, x, y Operand, t Type) Operand {
	switch {
	case p.Literal() && p.Bits&1 != 0, x.Same(y):
		return x
	case p.Literal():
		return y
	}
	return s.print.Choose(p, x, y, t)
}

// where picks lanes; with one condition for all, whole words.
func (s *Selector) where(in *program.Instr) {
	if s.left[in.Result] {
		return
	}
	if c, ok := s.choices[in.Result]; ok {
		s.chooseBytes(in, c)
		return
	}
	cond, x, y := in.Args[0], in.Args[1], in.Args[2]
	if p, ok := s.single(cond); ok && IsPacked(in.Result.Type) {
		xs, ys := s.Words(x), s.Words(y)
		out := lists.Make(len(xs), func(i int) Operand { return s.Pick(p, xs[i], ys[i], U32) })
		s.setWords(in.Result, out)
		return
	}
	t := s.TypeOf(in.Result)
	lanes := make([]Operand, in.Result.Type.Lanes)
	for i := range lanes {
		p := s.Lane(cond, i)
		lanes[i] = s.print.Hold(s.Pick(p, s.LaneAs(x, i, t), s.LaneAs(y, i, t), t), t)
	}
	s.set(in.Result, lanes)
}
