package opt

import (
	"tgc/internal/lists"
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
		atMost:   make(map[*program.Value]float64),
	}
	e.blockInto(p.Body, out.Body)
	return e.Finish()
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
	e.bound(&in)
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
	case ir.OpExp2, ir.OpLog2, ir.OpSin:
		return !l.Has.Approx || t != ir.F32
	case ir.OpRsqrt:
		return !l.Has.Rsqrt && !l.Has.Approx || t != ir.F32
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

// narrow computes an op on f16, bf16 or f8 in f32 and rounds its result; f32
// has more than twice their digits plus two, so that is rounding once. FMA
// needs more: see fmaWide.
func (e *expander) narrow(in *program.Instr) *program.Value {
	elem := in.Result.Type.Elem
	if in.Ir == ir.OpFma {
		return e.fmaWide(in.Args, elem)
	}
	args := lists.Map(in.Args, func(a *program.Value) *program.Value { return e.cast(a, ir.F32) })
	wide := program.Instr{Op: program.Alu, Ir: in.Ir, Args: args, Result: &program.Value{Type: program.AluType(in.Ir, args)}}
	v := e.expand(&wide)
	if v == nil {
		v = e.Alu(in.Ir, args...)
	}
	if elem == ir.Bool { // a comparison
		return v
	}
	return e.cast(v, elem)
}
