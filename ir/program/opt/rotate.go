package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Loops over rows, and along one. A block that takes several groups of rows loads the
// first group before its loop, from where it is hoisted before the wait (hoist.go), and
// loads each next group as soon as the one before has been used, or first of all: memory
// is read while the block computes.

// sumRegisters is how many registers a loop along a row, which carries sums, must
// leave over. H200, LLaMA 3.2 3B Q6_K: int8 792 -> 860 tokens a second, i16 735 -> 803,
// where 87 are left; in exact mode 15 are, and 607 -> 600.
const sumRegisters = 40

// rotateLoops rotates the loops in the body of the grid loop that stream weights.
func rotateLoops(p *program.Program) {
	w := weightsOf(p)
	bound := constants(p)
	for i := 0; i < len(w.body.Instrs); i++ {
		loop := &w.body.Instrs[i]
		if loop.Op != program.For || !bound.runs(loop) {
			continue
		}
		free := w.freeRegisters()
		if len(loop.Results) > 0 && free < w.streamed(loop.Body)+sumRegisters {
			continue
		}
		r := &rotation{weights: w, b: program.Resume(p), loop: loop, index: loop.Body.Args[0]}
		first := r.rotate(min(earlyRegisters, free))
		rest := append([]program.Instr{}, w.body.Instrs[i:]...)
		w.body.Instrs = append(append(w.body.Instrs[:i:i], first...), rest...)
		i += len(first)
	}
}

// rotation rotates the loads of one loop.
type rotation struct {
	*weights
	b          *program.Builder
	loop       *program.Instr
	made       map[*program.Value]int // by instruction of the loop's body
	last       map[*program.Value]int // the last instruction of the body that uses a value
	index      *program.Value
	loadsFirst bool // loads are issued first, and registers hold two groups of rows
}

// rotate changes the loop, with left registers for what is loaded ahead, and
// gives what comes before it.
func (r *rotation) rotate(left int) (first []program.Instr) {
	body, free := r.loop.Body, left
	r.made, r.last = make(map[*program.Value]int), make(map[*program.Value]int)
	for i := range body.Instrs {
		if v := body.Instrs[i].Result; v != nil {
			r.made[v] = i
		}
		body.Instrs[i].EachUse(func(v *program.Value) { r.last[v] = i })
	}
	var loads []int
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if !r.isStreamed(in) || !r.addressed(in.Args[0]) {
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
	r.loadsFirst = left >= free-left && r.readsActivations(body)
	return r.replace(loads)
}

// readsActivations reports a loop that reads activations anew (rematerialise.go): with its
// arithmetic on floats it takes longer than its loads, which it issues first then. H200,
// LLaMA 3.2 1B Q6_K exact: 1775 -> 1847 tokens a second; int8 is the same or 1% slower.
func (r *rotation) readsActivations(b *program.Block) bool {
	for i := range b.Instrs {
		if in := &b.Instrs[i]; in.Op == program.Load && !r.isStreamed(in) && in.Result.Type.Registers() >= leastRead {
			return true
		}
	}
	return false
}

// addressed reports an address that only the loop's index and what is made
// outside of the loop decide.
func (r *rotation) addressed(v *program.Value) bool {
	i, inside := r.made[v]
	if !inside {
		return v == r.index || !r.carried(v)
	}
	in := &r.loop.Body.Instrs[i]
	switch in.Op {
	case program.Alu, program.Const, program.PtrAdd:
	default:
		return false
	}
	for _, a := range in.Args {
		if !r.addressed(a) {
			return false
		}
	}
	return true
}

// carried reports a carried value, or a result of control flow, of the loop.
func (r *rotation) carried(v *program.Value) bool {
	for _, a := range r.loop.Body.Args {
		if a == v {
			return true
		}
	}
	for i := range r.loop.Body.Instrs {
		for _, result := range r.loop.Body.Instrs[i].Results {
			if result == v {
				return true
			}
		}
	}
	return false
}

// replace makes each load a carried value: loaded for the first iteration
// before the loop, and for the next one after the last use.
func (r *rotation) replace(loads []int) (first []program.Instr) {
	body, b := r.loop.Body, r.b
	yield := &body.Instrs[len(body.Instrs)-1]
	before, begin := &program.Block{}, &program.Block{}
	var index, more *program.Value
	b.With(begin, func() {
		index = b.Alu(ir.OpAdd, r.index, r.loop.Args[2])
		more = b.Lt(index, r.loop.Args[1])
	})
	following := make(map[int]*program.Block) // what follows an instruction
	here := map[*program.Value]*program.Value{r.index: r.loop.Args[0]}
	next := map[*program.Value]*program.Value{r.index: index}
	gone := make(map[int]bool)
	for _, i := range loads {
		in := body.Instrs[i]
		value := in.Result
		gone[i] = true
		start := b.NewValue(value.Type)
		b.With(before, func() {
			load := in
			load.Args = []*program.Value{r.clone(in.Args[0], here)}
			load.Result = start
			b.Emit(load)
		})
		to := following[r.last[value]]
		if r.loadsFirst {
			to = begin
		} else if to == nil {
			to = &program.Block{}
			following[r.last[value]] = to
		}
		loaded := b.NewValue(value.Type)
		var address *program.Value
		b.With(begin, func() { address = r.clone(in.Args[0], next) })
		b.With(to, func() {
			b.Emit(program.Instr{Op: program.Guarded, Args: []*program.Value{more, address, value}, Align: in.Align, Cache: in.Cache, Result: loaded})
		})
		body.Args = append(body.Args, value)
		r.loop.Args = append(r.loop.Args, start)
		r.loop.Results = append(r.loop.Results, b.NewValue(value.Type))
		yield.Args = append(yield.Args, loaded)
	}
	out := begin.Instrs
	for i := range body.Instrs {
		if !gone[i] {
			out = append(out, body.Instrs[i])
		}
		if to := following[i]; to != nil {
			out = append(out, to.Instrs...)
		}
	}
	body.Instrs = dropUnused(out)
	return before.Instrs
}

// clone repeats the computation of an address with another index.
func (r *rotation) clone(v *program.Value, as map[*program.Value]*program.Value) *program.Value {
	if w, ok := as[v]; ok {
		return w
	}
	i, inside := r.made[v]
	if !inside {
		return v
	}
	in := r.loop.Body.Instrs[i]
	in.Args = append([]*program.Value(nil), in.Args...)
	for k, a := range in.Args {
		in.Args[k] = r.clone(a, as)
	}
	in.Result = r.b.NewValue(v.Type)
	r.b.Emit(in)
	as[v] = in.Result
	r.param[in.Result] = r.param[v]
	return in.Result
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
