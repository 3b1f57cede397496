package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// ExpandMath returns a program with the same meaning that uses only basic
// instructions, so that the interpreter and a CPU agree bit for bit:
//
//   - EXP2, LOG2, SIN, RSQRT, RECIP, RNG, MULHI become arithmetic without
//     branches (transcendental.go, wideints.go);
//   - arithmetic on f16, bf16 and f8 happens in f32 and is rounded after each
//     op (narrowfloats.go); bf16 and f8 are integers with a meaning, only
//     CASTs between f16 and f32 are left for the hardware;
//   - ABS of integers becomes WHERE; ADD and MAX, MUL and MIN of Bool OR and AND.
//
// What is left on f16, bf16 and f8: memory, lane movement, WHERE, BITCAST.
// The argument is not changed; the result shares its values. A program without
// anything to expand comes back as it is.
func ExpandMath(p *program.Program) *program.Program { return ExpandFor(p, Lacks{}) }

// Lacks are instructions that a machine does not have.
type Lacks struct {
	FMA  bool // f32: the sum is then made in f64, rounded to odd; the same bits
	Half bool // conversions between f16 and f32: integer arithmetic, the same bits
	Has  Has
}

// Has are instructions that a machine has beyond the basic ones, and that stay.
type Has struct {
	HalfArith bool // ADD, SUB, MUL, FMA, NEG, ABS of f16, rounded once: the same bits
	RoundBF16 bool // CAST of f32 to bf16
	MulHi     bool // MULHI of 32 and 64 bits
	Approx    bool // EXP2, LOG2, SIN, RSQRT of f32, not to the last bits: other results
}

// half reports an op that a machine with HalfArith does on f16.
func (h Has) half(op ir.Op, t ir.DType) bool {
	switch op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpFma, ir.OpNeg, ir.OpAbs:
		return h.HalfArith && t == ir.F16
	}
	return false
}

// ExpandFor is ExpandMath for a machine that also lacks some instructions.
func ExpandFor(p *program.Program, lacks Lacks) *program.Program {
	if !lacks.inBlock(p.Body) {
		return p
	}
	out := *p
	out.Body = &program.Block{}
	e := &expander{
		Builder:  program.Resume(&out),
		lacks:    lacks,
		replaced: make(map[*program.Value]*program.Value),
	}
	e.blockInto(p.Body, out.Body)
	return e.Finish()
}

type expander struct {
	*program.Builder
	lacks    Lacks
	replaced map[*program.Value]*program.Value // results of expanded instructions
}

func (e *expander) blockInto(from, to *program.Block) {
	to.Args = from.Args
	to.Instrs = make([]program.Instr, 0, len(from.Instrs))
	e.With(to, func() {
		for i := range from.Instrs {
			e.instr(from.Instrs[i])
		}
	})
}

// instr emits one instruction, expanded or with its arguments replaced.
func (e *expander) instr(in program.Instr) {
	in.Args = e.args(in.Args)
	if in.Op == program.Alu || in.Op == program.FoldLanes {
		before := e.MakeFor(in.Result.Origin)
		v := e.expand(&in)
		e.MakeAgainFor(before)
		if v != nil {
			e.replaced[in.Result] = v
			return
		}
	}
	if in.Body != nil {
		body := &program.Block{}
		e.blockInto(in.Body, body)
		in.Body = body
	}
	if in.Else != nil {
		other := &program.Block{}
		e.blockInto(in.Else, other)
		in.Else = other
	}
	e.Emit(in)
}

func (e *expander) args(args []*program.Value) []*program.Value {
	for i, a := range args {
		if e.replaced[a] == nil {
			continue
		}
		out := make([]*program.Value, len(args))
		copy(out, args[:i])
		for j := i; j < len(args); j++ {
			out[j] = args[j]
			if r := e.replaced[args[j]]; r != nil {
				out[j] = r
			}
		}
		return out
	}
	return args
}

// inBlock reports an instruction to expand.
func (l Lacks) inBlock(b *program.Block) bool {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		for inner := range in.Blocks() {
			if l.inBlock(inner) {
				return true
			}
		}
		if (in.Op == program.Alu || in.Op == program.FoldLanes) && l.expands(in) {
			return true
		}
	}
	return false
}

// expands reports an instruction that expand replaces.
func (l Lacks) expands(in *program.Instr) bool {
	if in.Args[0].Type.Ptr {
		return false
	}
	t, from := in.Result.Type.Elem, in.Args[len(in.Args)-1].Type.Elem
	if in.Op == program.FoldLanes {
		return isNarrow(t) || t == ir.Bool
	}
	if l.Has.half(in.Ir, t) {
		return false
	}
	switch in.Ir {
	case ir.OpWhere, ir.OpBitcast:
		return false
	case ir.OpCast:
		return t != from && !l.nativeCast(t, from)
	case ir.OpExp2, ir.OpLog2, ir.OpSin, ir.OpRsqrt:
		return !l.Has.Approx || t != ir.F32
	case ir.OpMulHi:
		return !l.Has.MulHi || t.Bits() < 32
	case ir.OpRecip, ir.OpRng:
		return true
	case ir.OpAbs:
		return !t.IsFloat() || isNarrow(t)
	case ir.OpAdd, ir.OpMul, ir.OpMax, ir.OpMin:
		return t == ir.Bool || isNarrow(t)
	case ir.OpFma:
		return isNarrow(t) || l.FMA && t == ir.F32
	}
	return isNarrow(from)
}

// isNarrow reports a float dtype without arithmetic of its own.
func isNarrow(d ir.DType) bool { return d.IsFloat() && d.Size() < 4 }

// nativeCast reports a CAST that every backend does in one step: between
// integers, Bool, f32 and f64, and between f16 and f32.
func (l Lacks) nativeCast(to, from ir.DType) bool {
	if to == ir.F16 || from == ir.F16 {
		return !l.Half && (to == ir.F32 || from == ir.F32)
	}
	if to == ir.BF16 && from == ir.F32 {
		return l.Has.RoundBF16
	}
	return !isNarrow(to) && !isNarrow(from)
}

// expand emits the replacement of an instruction and returns its result; nil
// when the instruction stays.
func (e *expander) expand(in *program.Instr) *program.Value {
	if !e.lacks.expands(in) {
		return nil
	}
	if in.Op == program.FoldLanes {
		return e.fold(in.Ir, in.Args[0])
	}
	t := in.Result.Type
	if in.Ir == ir.OpCast {
		return e.cast(in.Args[0], t.Elem)
	}
	if isNarrow(in.Args[len(in.Args)-1].Type.Elem) {
		return e.narrow(in)
	}
	x := in.Args[0]
	switch in.Ir {
	case ir.OpExp2:
		return e.exp2(x)
	case ir.OpLog2:
		return e.log2(x)
	case ir.OpSin:
		return e.sin(x)
	case ir.OpRsqrt:
		return e.Alu(ir.OpFDiv, e.Float(t, 1), e.Alu(ir.OpSqrt, x))
	case ir.OpRecip:
		return e.Alu(ir.OpFDiv, e.Float(t, 1), x)
	case ir.OpRng:
		return e.threefry(x, in.Args[1])
	case ir.OpMulHi:
		return e.mulHi(x, in.Args[1])
	case ir.OpAbs:
		return e.absInt(x)
	case ir.OpFma:
		return e.Fma(x, in.Args[1], in.Args[2])
	case ir.OpAdd, ir.OpMax:
		return e.Alu(ir.OpOr, x, in.Args[1])
	case ir.OpMul, ir.OpMin:
		return e.Alu(ir.OpAnd, x, in.Args[1])
	}
	panic("program: expand: " + in.Ir.String())
}

// fold writes FoldLanes as single steps in FoldOrder.
func (e *expander) fold(op ir.Op, v *program.Value) *program.Value {
	step := func(x, y *program.Value) *program.Value {
		in := program.Instr{Op: program.Alu, Ir: op, Args: []*program.Value{x, y}, Result: &program.Value{Type: x.Type}}
		if r := e.expand(&in); r != nil {
			return r
		}
		return e.Alu(op, x, y)
	}
	n := v.Type.Lanes
	if n&(n-1) != 0 {
		acc := e.Extract(v, 0)
		for i := 1; i < n; i++ {
			acc = step(acc, e.Extract(v, i))
		}
		return acc
	}
	for n > 1 {
		n /= 2
		v = step(e.Slice(v, 0, n), e.Slice(v, n, n))
	}
	return v
}

// aluF and aluI have a constant of the type of the value beside it.
func (e *expander) aluF(op ir.Op, x *program.Value, c float64) *program.Value {
	return e.Alu(op, x, e.Float(x.Type, c))
}

func (e *expander) aluI(op ir.Op, x *program.Value, c int64) *program.Value {
	return e.Alu(op, x, e.Int(x.Type, c))
}

// polynomial is c[0] + c[1]*x + .. by Horner's rule with fma.
func (e *expander) polynomial(x *program.Value, c []float64) *program.Value {
	v := e.Float(x.Type, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		v = e.Fma(v, x, e.Float(x.Type, c[i]))
	}
	return v
}
