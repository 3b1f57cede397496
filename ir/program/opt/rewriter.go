package opt

import (
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// rewriter makes new values and copies of instructions in a program.
type rewriter struct {
	program *program.Program
	memory  *dep.Memory
	known   known
}

func rewriterOf(p *program.Program) rewriter {
	return rewriter{program: p, memory: dep.MemoryOf(p), known: constants(p)}
}

func (r rewriter) value(t program.Type) *program.Value {
	v := &program.Value{ID: r.program.Values, Type: t}
	r.program.Values++
	return v
}

// derived is a new value that is computed as another one.
func (r rewriter) derived(v *program.Value) *program.Value {
	w := r.value(v.Type)
	w.Origin = v.Origin
	if v.Type.Ptr {
		r.memory.Derive(w, v)
	}
	return w
}

// copy is an instruction with other operands and a result of its own, which with gets.
func (r rewriter) copy(in program.Instr, with map[*program.Value]*program.Value) program.Instr {
	in.Args = append([]*program.Value(nil), in.Args...)
	for k, a := range in.Args {
		in.Args[k] = replaced(a, with)
	}
	with[in.Result] = r.derived(in.Result)
	in.Result = with[in.Result]
	return in
}

// copyInOrder copies instructions of a slice's block and what the slice has taken, in
// the order of the block. with says what takes the place of values, and gets the copies.
func (r rewriter) copyInOrder(s *dep.Slice, instrs []int, with map[*program.Value]*program.Value) ([]program.Instr, map[*program.Value]*program.Value) {
	wanted := lists.Set(instrs)
	var out []program.Instr
	for i := range s.Block.Instrs {
		if s.In[i] || wanted[i] {
			out = append(out, r.copy(s.Block.Instrs[i], with))
		}
	}
	return out, with
}

// copyNeeded copies an instruction of a slice's block and what it needs of the block,
// unless with has copies already.
func (r rewriter) copyNeeded(s *dep.Slice, i int, with map[*program.Value]*program.Value) (out []program.Instr) {
	in := s.Block.Instrs[i]
	if with[in.Result] != nil {
		return nil
	}
	for _, a := range in.Args {
		if j, inside := s.Makers[a]; inside && j >= 0 {
			out = append(out, r.copyNeeded(s, j, with)...)
		}
	}
	return append(out, r.copy(in, with))
}

// carry lets a loop carry a value from iteration to iteration: first is that of the first
// one, next what an iteration gives the following one.
func (r rewriter) carry(loop *program.Instr, value, first, next *program.Value) {
	body := loop.Body
	yield := &body.Instrs[len(body.Instrs)-1]
	body.Args, loop.Args, yield.Args = append(body.Args, value), append(loop.Args, first), append(yield.Args, next)
	loop.Results = append(loop.Results, r.value(value.Type))
}

// replaced is what takes the place of a value: itself where with has nothing.
func replaced(v *program.Value, with map[*program.Value]*program.Value) *program.Value {
	if w := with[v]; w != nil {
		return w
	}
	return v
}

// renameValues replaces values in a block and all in it.
func renameValues(b *program.Block, with map[*program.Value]*program.Value) {
	b.Each(func(in *program.Instr) {
		for k, a := range in.Args {
			in.Args[k] = replaced(a, with)
		}
	})
}

// renumber lets new values follow those that a program still has, as they do in its text.
func renumber(p *program.Program) {
	p.Values = 0
	note := func(values ...*program.Value) {
		for _, v := range values {
			if v != nil {
				p.Values = max(p.Values, v.ID+1)
			}
		}
	}
	for i := range p.Params {
		note(p.Params[i].Value)
	}
	p.Body.Each(func(in *program.Instr) {
		note(in.Result)
		note(in.Results...)
		for b := range in.Blocks() {
			note(b.Args...)
		}
	})
}

// known holds the scalar integer constants at the head of a program.
type known map[*program.Value]int64

func constants(p *program.Program) known {
	k := make(known)
	for i := range p.Body.Instrs {
		if in := &p.Body.Instrs[i]; in.Op == program.Const && in.Result.Type.Lanes == 1 && !in.Result.Type.Elem.IsFloat() {
			k[in.Result] = in.Int
		}
	}
	return k
}

// runs reports a loop of constant bounds that has an iteration.
func (k known) runs(loop *program.Instr) bool {
	lo, okLo := k[loop.Args[0]]
	hi, okHi := k[loop.Args[1]]
	return okLo && okHi && lo < hi
}

// gridBody is the body of the grid loop, which ends a program.
func gridBody(p *program.Program) *program.Block {
	return p.Body.Instrs[len(p.Body.Instrs)-1].Body
}
