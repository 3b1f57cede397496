package opt

import (
	"slices"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// Loops over rows, and along one. A block that takes several groups of rows loads the
// first group before its loop, from where it is hoisted before the wait (hoistearlyloads.go), and
// loads each next group as soon as the one before has been used, or first of all: memory
// is read while the block computes.

// leastTurn are registers that an iteration loads what is no weight into, for it to be
// rotated: assemblers unroll loops that load less, so that more is on its way at a time.
const leastTurn = 32

// rotateLoops rotates the loops in the body of the grid loop that stream weights or, of a
// program that streams none, those that read what no kernel writes: the old rows of a
// cache.
func rotateLoops(p *program.Program) {
	w, o := weightsOf(p), &p.Options
	if o.Is(program.Rotate, "off") {
		return
	}
	streams := w.streams()
	for i := 0; i < len(w.body.Instrs); i++ {
		loop := &w.body.Instrs[i]
		if loop.Op != program.For || streams && !w.known.runs(loop) {
			continue
		}
		r := &rotation{weights: w, loop: loop, slice: dep.NewLoopSlice(loop, dep.Pure), last: dep.LastUses(loop.Body)}
		var first []program.Instr
		if streams {
			free := w.freeRegisters()
			if len(loop.Results) > 0 && free < w.streamed(loop.Body)+o.Of(program.Keep) {
				continue
			}
			first = r.rotate(min(o.Of(program.Ahead), free), r.isStreamed)
		} else {
			first = r.rotate(o.Of(program.Advance), r.isConstantRead)
		}
		rest := append([]program.Instr{}, w.body.Instrs[i:]...)
		w.body.Instrs = append(append(w.body.Instrs[:i:i], first...), rest...)
		i += len(first)
	}
}

// rotation rotates the loads of one loop.
type rotation struct {
	*weights
	loop       *program.Instr
	slice      *dep.Slice             // what addresses need of the loop's body, its index apart
	last       map[*program.Value]int // the last instruction of the body that uses a value
	loadsFirst bool                   // loads are issued first, and registers hold two groups of rows
}

// rotate changes the loop, with left registers for what is loaded ahead, and
// gives what comes before it.
func (r *rotation) rotate(left int, takes func(in *program.Instr) bool) (first []program.Instr) {
	body, free := r.loop.Body, left
	var loads []int
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if !takes(in) || !r.slice.Reaches(in) {
			continue
		}
		last, used := r.last[in.Result]
		if n := in.Result.Type.Registers(); n <= left && used && last < len(body.Instrs)-1 {
			left -= n
			loads = append(loads, i)
		}
	}
	if len(loads) == 0 {
		return nil
	}
	weights := r.isStreamed(&body.Instrs[loads[0]])
	if !weights && free-left < leastTurn {
		return nil
	}
	r.loadsFirst = weights && left >= free-left && r.readsActivations(body)
	if o := &r.program.Options; weights && o.Of(program.Rotate) > 0 {
		r.loadsFirst = o.Is(program.Rotate, "early")
	}
	return r.replace(loads)
}

// readsActivations reports a loop that reads activations anew (rematerialisereads.go): with its
// arithmetic on floats it takes longer than its loads, which it issues first then. H200,
// LLaMA 3.2 1B Q6_K exact: 1775 -> 1847 tokens a second; int8 is the same or 1% slower.
func (r *rotation) readsActivations(b *program.Block) bool {
	return slices.ContainsFunc(b.Instrs, func(in program.Instr) bool {
		return in.Op == program.Load && !r.isStreamed(&in) && in.Result.Type.Registers() >= leastRead
	})
}

// replace makes each load a carried value: loaded for the first iteration
// before the loop, and for the next one after the last use.
func (r *rotation) replace(loads []int) (before []program.Instr) {
	body := r.loop.Body
	index, more := r.value(body.Args[0].Type), r.value(program.Scalar(ir.Bool))
	begin := []program.Instr{
		{Op: program.Alu, Ir: ir.OpAdd, Result: index, Args: []*program.Value{body.Args[0], r.loop.Args[2]}},
		{Op: program.Alu, Ir: ir.OpCmpLt, Result: more, Args: []*program.Value{index, r.loop.Args[1]}},
	}
	following := make(map[int][]program.Instr) // what follows an instruction
	here := map[*program.Value]*program.Value{body.Args[0]: r.loop.Args[0]}
	next := map[*program.Value]*program.Value{body.Args[0]: index}
	gone := make(map[int]bool)
	some := r.begins(&before)
	for _, i := range loads {
		in := body.Instrs[i]
		value := in.Result
		gone[i] = true
		first := in
		first.Result = r.value(value.Type)
		before = append(before, r.copyAddress(in.Args[0], here)...)
		first.Args = []*program.Value{replaced(in.Args[0], here)}
		if some != nil {
			none := program.Instr{Op: program.Const, Result: r.value(value.Type)}
			before = append(before, none)
			first = program.Instr{Op: program.Guarded, Args: []*program.Value{some, first.Args[0], none.Result}, Align: in.Align, Cache: in.Cache, Result: first.Result}
		}
		before = append(before, first)
		loaded := r.value(value.Type)
		begin = append(begin, r.copyAddress(in.Args[0], next)...)
		load := program.Instr{Op: program.Guarded, Args: []*program.Value{more, replaced(in.Args[0], next), value}, Align: in.Align, Cache: in.Cache, Result: loaded}
		if last := r.last[value]; r.loadsFirst {
			begin = append(begin, load)
		} else {
			following[last] = append(following[last], load)
		}
		r.carry(r.loop, value, first.Result, loaded)
	}
	out := begin
	for i := range body.Instrs {
		if !gone[i] {
			out = append(out, body.Instrs[i])
		}
		out = append(out, following[i]...)
	}
	body.Instrs = dropUnused(out)
	return before
}

// begins adds the condition that the loop has an iteration; nil where it is known to.
func (r *rotation) begins(before *[]program.Instr) *program.Value {
	if r.known.runs(r.loop) {
		return nil
	}
	some := r.value(program.Scalar(ir.Bool))
	*before = append(*before, program.Instr{Op: program.Alu, Ir: ir.OpCmpLt, Result: some, Args: r.loop.Args[:2:2]})
	return some
}

// copyAddress repeats the computation of an address with another index.
func (r *rotation) copyAddress(v *program.Value, with map[*program.Value]*program.Value) []program.Instr {
	if i, inside := r.slice.Makers[v]; inside {
		return r.copyNeeded(r.slice, i, with)
	}
	return nil
}

// dropUnused leaves out index arithmetic that nothing uses any more.
func dropUnused(instrs []program.Instr) []program.Instr {
	used := make(map[*program.Value]bool)
	keep := make([]bool, len(instrs))
	count := 0
	for i := len(instrs) - 1; i >= 0; i-- {
		in := &instrs[i]
		if (in.Op == program.Alu || in.Op == program.PtrAdd) && !used[in.Result] {
			continue
		}
		keep[i] = true
		count++
		in.EachUse(func(v *program.Value) { used[v] = true })
	}
	out := make([]program.Instr, 0, count)
	for i := range instrs {
		if keep[i] {
			out = append(out, instrs[i])
		}
	}
	return out
}
