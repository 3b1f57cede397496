package opt

import (
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// weights answers what the passes that issue loads early ask of a GPU program:
// which loads read weights (parameters marked Early), and how many registers of
// a thread they may take.
type weights struct {
	rewriter
	body *program.Block // of the grid loop
}

func weightsOf(p *program.Program) *weights {
	return &weights{rewriter: rewriterOf(p), body: gridBody(p)}
}

// isWeight reports a pointer into a weight.
func (w *weights) isWeight(v *program.Value) bool {
	p := w.memory.Param(v)
	return p != nil && p.Early
}

// isConstantWeight reports a pointer into a weight that no kernel writes: it can be
// loaded before the kernel before this one has ended.
func (w *weights) isConstantWeight(v *program.Value) bool {
	p := w.memory.Param(v)
	return p != nil && p.Early && p.Constant
}

// isConstant reports a pointer into a buffer that no kernel writes meanwhile, be it a
// weight or not.
func (w *weights) isConstant(v *program.Value) bool {
	p := w.memory.Param(v)
	return p != nil && p.Constant
}

// isActivation reports a pointer into a buffer that is no weight, neither one that the plan
// loads early nor the bytes of a packed one, and that this program only reads.
func (w *weights) isActivation(v *program.Value) bool {
	p := w.memory.Param(v)
	return p != nil && p.Kind == program.ParamBuffer && !p.Early && !p.Write && !(p.Constant && p.Value.Type.Elem == ir.U8)
}

// isConstantActivation reports a pointer into a buffer that no kernel writes meanwhile and
// that is no weight of rows.
func (w *weights) isConstantActivation(v *program.Value) bool {
	return w.isActivation(v) && w.isConstant(v)
}

// isConstantRead reports a load of such a buffer.
func (w *weights) isConstantRead(in *program.Instr) bool {
	return in.Op == program.Load && w.isConstantActivation(in.Args[0])
}

// isStreamed reports a load of a constant weight.
func (w *weights) isStreamed(in *program.Instr) bool {
	return in.Op == program.Load && w.isConstantWeight(in.Args[0])
}

// streamed is how many registers the weights take that a block loads.
func (w *weights) streamed(b *program.Block) (registers int) {
	for i := range b.Instrs {
		if in := &b.Instrs[i]; w.isStreamed(in) {
			registers += in.Result.Type.Registers()
		}
	}
	return registers
}

// streams reports that the program loads constant weights.
func (w *weights) streams() (any bool) {
	w.body.Each(func(in *program.Instr) { any = any || w.isStreamed(in) })
	return any
}

// Registers of a thread are its share of a multiprocessor's 64 K where this many threads
// are resident, or as the plan says.
const (
	multiprocessorRegisters = 64 << 10
	residentThreads         = 512
)

// registers are those of a thread.
func (w *weights) registers() int {
	o, threads := &w.program.Options, w.program.Threads()
	if n := o.Of(program.Blocks); n > 0 {
		return multiprocessorRegisters / (n * int(threads))
	}
	if n := o.Of(program.Regs); n > 0 {
		return n
	}
	return multiprocessorRegisters / int(max(threads, residentThreads))
}

// freeRegisters is how many registers of a thread the grid loop's body leaves free
// where most are in use, weights and pointers to them not counted.
func (w *weights) freeRegisters() int {
	return w.registers() + w.program.Options.Of(program.Spare) - dep.Pressure(w.body, w.isArithmetic)
}

// crowded reports that activations leave too few registers for weights loaded ahead.
func (w *weights) crowded(registers int) bool {
	o := &w.program.Options
	if o.Of(program.Reread) > 0 {
		return o.Is(program.Reread, "always")
	}
	return w.freeRegisters() < min(registers, o.Of(program.Ahead))
}

// ofWeight reports a load of a weight, or a pointer to it.
func (w *weights) ofWeight(in *program.Instr) bool {
	return in.Result.Type.Ptr && w.isWeight(in.Result) || in.Op == program.Load && w.isWeight(in.Args[0])
}

// isArithmetic reports what is no load of a weight, nor a pointer to it: those are placed by what is free.
func (w *weights) isArithmetic(in *program.Instr) bool { return !w.ofWeight(in) }
