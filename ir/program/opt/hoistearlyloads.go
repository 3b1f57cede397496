package opt

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// hoistEarlyLoads issues the loads of a block's weights before it waits for the
// kernel before it, then computes what its rows need: the latency of memory passes
// meanwhile. Weights that do not fit the registers take those of weights that have
// been used (refillregisters.go). What takes a long chain of instructions and nothing of the
// kernel before, angles of a rotary embedding, is computed there too.
func hoistEarlyLoads(p *program.Program) {
	h := hoisterOf(p)
	if h == nil {
		return
	}
	left := min(h.program.Options.Of(program.Ahead), h.freeRegisters())
	left -= h.hoistMath(left)
	for i := range h.body.Instrs {
		in := &h.body.Instrs[i]
		if in.Op != program.Load && in.Op != program.Gather || !h.isWeight(in.Args[0]) || in.Result.Type.Registers() > left {
			continue
		}
		for _, to := range []position{beforeWait, afterWait} {
			if s := h.slices[to]; s.In[i] || h.may(in, to) && s.Reaches(in) {
				left -= in.Result.Type.Registers()
				s.In[i] = true
				s.Take(in)
				break
			}
		}
	}
	if h.program.Options.Is(program.Refill, "on") {
		h.refill(left)
	}
	h.rearrange()
}

// hoistMath moves what has no instruction of its own before the wait, with the conversions of its
// results, into so many registers, and gives how many it took. After the wait a sine in f64 is
// some forty instructions, each waiting for the one before.
func (h *hoister) hoistMath(most int) (registers int) {
	s, early := h.slices[beforeWait], make(map[*program.Value]bool)
	for i := range h.body.Instrs {
		in := &h.body.Instrs[i]
		if in.Op != program.Alu || s.In[i] || !isLong(in) && !(in.Ir == ir.OpCast && early[in.Args[0]]) || !s.Reaches(in) {
			continue
		}
		each := in.Result.Type.Registers()
		if early[in.Args[0]] { // takes its place
			each -= in.Args[0].Type.Registers()
		}
		if registers+each <= most {
			s.In[i] = true
			s.Take(in)
			early[in.Result] = true
			registers += each
		}
	}
	return registers
}

// isLong reports a function that is a long chain of instructions where no approximation serves.
func isLong(in *program.Instr) bool {
	return in.Result.Type.Elem == ir.F64 && (in.Ir == ir.OpSin || in.Ir == ir.OpExp2 || in.Ir == ir.OpLog2)
}

// hoister moves loads to the head of the grid loop's body.
type hoister struct {
	*weights
	wait   int // the instruction that waits for the kernel before
	slices map[position]*dep.Slice
	after  map[int][]int // loads that follow an instruction
}

// position says where an instruction goes: it stays, or moves right after the wait,
// or before it.
type position uint8

const (
	inPlace position = iota
	afterWait
	beforeWait
)

// hoisterOf is nil where the program does not wait for the kernel before. What comes
// before the wait stays there.
func hoisterOf(p *program.Program) *hoister {
	h := &hoister{weights: weightsOf(p), slices: make(map[position]*dep.Slice)}
	h.wait = slices.IndexFunc(h.body.Instrs, func(in program.Instr) bool { return in.Op == program.WaitGrid })
	if h.wait < 0 {
		return nil
	}
	for _, to := range []position{beforeWait, afterWait} {
		h.slices[to] = dep.NewSlice(h.body, func(in *program.Instr) bool { return h.may(in, to) })
		for i := range h.wait {
			h.slices[to].In[i] = true
		}
	}
	return h
}

// may reports what can move to the head: index arithmetic, loads of what is constant
// and, after the wait, of other weights and of indices.
func (h *hoister) may(in *program.Instr, to position) bool {
	if in.Op != program.Load && in.Op != program.Gather {
		return dep.Pure(in)
	}
	return h.isConstant(in.Args[0]) || in.Args[0].Type.Space == program.ConstSpace || to == afterWait && (h.isWeight(in.Args[0]) || h.isActivation(in.Args[0]))
}

// position is where an instruction goes.
func (h *hoister) position(i int) position {
	return lists.First([]position{beforeWait, afterWait}, func(to position) bool { return h.slices[to].In[i] }, inPlace)
}

// rearrange puts the block in order: what moves before the wait, the wait, what moves
// right after it, and the rest as it was but for loads that follow others. The order of
// loads before the wait is kept by what ptxas moves none across: a permission for the
// next kernel to start, which may be given again.
func (h *hoister) rearrange() {
	var out []program.Instr
	placed := make([]bool, len(h.body.Instrs))
	registers := 0
	makers := h.slices[beforeWait].Makers
	started := h.program.Options.Is(program.Trigger, "start")
	var place func(i int)
	place = func(i int) {
		if placed[i] {
			return
		}
		placed[i] = true
		in := h.body.Instrs[i]
		for _, a := range in.Args {
			if j, inside := makers[a]; inside && j >= 0 {
				place(j)
			}
		}
		out = append(out, in)
		if started && h.position(i) == beforeWait && h.isStreamed(&in) {
			if registers += in.Result.Type.Registers(); registers >= h.program.Options.Of(program.Order) {
				out = append(out, program.Instr{Op: program.LaunchNext})
				registers = 0
			}
		}
		for _, j := range h.after[i] {
			place(j)
		}
	}
	for _, position := range []position{beforeWait, afterWait, inPlace} {
		if position == afterWait {
			if h.program.Options.Is(program.Trigger, "loads") {
				out = append(out, program.Instr{Op: program.LaunchNext})
			}
			place(h.wait)
		}
		for i := range h.body.Instrs {
			if h.position(i) == position && i != h.wait {
				place(i)
			}
		}
	}
	h.body.Instrs = out
}
