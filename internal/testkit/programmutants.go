package testkit

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// ProgramMutant is a typical mistake of lowering, as a change in place of one
// instruction of a program.
type ProgramMutant struct {
	Name string
	Doc  string
	// at changes instruction i of a block; false where the mistake cannot be
	// made.
	at func(p *program.Program, b *program.Block, i int) bool
}

// ProgramMutants lists the mistakes. Those who judge programs must see each.
var ProgramMutants = []ProgramMutant{
	{"dropped store", "a store that is not executed", dropInstr(program.Store)},
	{"subtracted", "an add with the wrong sign", swapAlu(ir.OpAdd, ir.OpSub)},
	{"wrong fold", "lanes folded with the wrong op", foldLanesWrong},
	{"one turn less", "a loop that ends one step early", shortLoop},
	{"lost accumulator", "a carried value that is never updated", lostAccumulator},
	{"dropped addend", "fma(a, b, c) as a*b", droppedAddend},
	{"wrong lanes", "a shuffle that takes every lane's neighbour", wrongLanes},
	{"wrong arm", "a select with its arms exchanged", swappedArms},
}

// Mutations parses the program anew for every place, at most limit of them,
// makes the mistake there and calls f.
func (m *ProgramMutant) Mutations(p *program.Program, limit int, f func(mutated *program.Program, where string)) (places int, err error) {
	text := program.Print(p)
	total := 0
	if err := m.visit(text, func(*program.Program, *program.Block, int) bool { total++; return false }); err != nil {
		return 0, err
	}
	for n := range total {
		if total > limit && n > 0 && n*limit/total == (n-1)*limit/total {
			continue // an even choice of limit places
		}
		seen := 0
		err := m.visit(text, func(q *program.Program, b *program.Block, i int) bool {
			if seen++; seen <= n {
				return false
			}
			where := fmt.Sprintf("%s at %s in %s", m.Name, program.PrintInstr(&b.Instrs[i]), p.Name)
			m.at(q, b, i)
			places++
			f(q, where)
			return true
		})
		if err != nil {
			return places, err
		}
	}
	return places, nil
}

// visit walks a fresh copy of a program and calls f where the mistake can be
// made, until it returns true. Whether it can is tried on a second copy.
func (m *ProgramMutant) visit(text string, f func(p *program.Program, b *program.Block, i int) bool) error {
	p, err := program.Parse(text)
	if err != nil {
		return err
	}
	trial, err := program.Parse(text)
	if err != nil {
		return err
	}
	var walk func(b, t *program.Block) bool
	walk = func(b, t *program.Block) bool {
		for i := range b.Instrs {
			in := &b.Instrs[i]
			for _, inner := range [][2]*program.Block{{in.Body, t.Instrs[i].Body}, {in.Else, t.Instrs[i].Else}} {
				if inner[0] != nil && walk(inner[0], inner[1]) {
					return true
				}
			}
			saved := t.Instrs[i]
			ok := m.at(trial, t, i)
			t.Instrs[i] = saved
			if ok && f(p, b, i) {
				return true
			}
		}
		return false
	}
	walk(p.Body, trial.Body)
	return nil
}

// dropInstr turns an instruction without a result into a prefetch of nothing:
// a store becomes a hint at its address.
func dropInstr(op program.Op) func(*program.Program, *program.Block, int) bool {
	return func(_ *program.Program, b *program.Block, i int) bool {
		in := &b.Instrs[i]
		if in.Op != op || in.Args[0].Type.Space != program.GlobalSpace {
			return false
		}
		*in = program.Instr{Op: program.Prefetch, Args: in.Args[:1]}
		return true
	}
}

// isFloat reports an instruction with a float result.
func floatResult(in *program.Instr) bool {
	return in.Result != nil && in.Result.Type.Elem == ir.F32 && !in.Result.Type.Ptr
}

// swapAlu leaves out operands that are constant or were selected: they may be 0
// for good.
func swapAlu(from, to ir.Op) func(*program.Program, *program.Block, int) bool {
	return func(p *program.Program, b *program.Block, i int) bool {
		in := &b.Instrs[i]
		if in.Op != program.Alu || in.Ir != from || !floatResult(in) {
			return false
		}
		if d := definition(p.Body, in.Args[1]); d != nil && (d.Op == program.Const || d.Op == program.Alu && d.Ir == ir.OpWhere) {
			return false
		}
		in.Ir = to
		return true
	}
}

func foldLanesWrong(_ *program.Program, b *program.Block, i int) bool {
	in := &b.Instrs[i]
	if in.Op != program.FoldLanes || !floatResult(in) {
		return false
	}
	if in.Ir == ir.OpAdd {
		in.Ir = ir.OpMax
	} else {
		in.Ir = ir.OpMin
	}
	return true
}

// shortLoop subtracts the step from the end by looping from lo+step.
func shortLoop(p *program.Program, b *program.Block, i int) bool {
	in := &b.Instrs[i]
	if in.Op != program.For || i == 0 {
		return false
	}
	// The loop's index argument stays; its first turn is skipped by starting
	// at the step, which equals lo + step wherever lo is 0.
	lo := definition(p.Body, in.Args[0])
	if lo == nil || lo.Op != program.Const || lo.Int != 0 || len(in.Results) == 0 || in.Results[0].Type.Elem != ir.F32 {
		return false
	}
	args := append([]*program.Value(nil), in.Args...)
	args[0] = in.Args[2]
	in.Args = args
	return true
}

// definition finds the instruction whose result is a value, in a block or
// below; nil for arguments.
func definition(b *program.Block, v *program.Value) *program.Instr {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Result == v {
			return in
		}
		for _, inner := range []*program.Block{in.Body, in.Else} {
			if inner == nil {
				continue
			}
			if found := definition(inner, v); found != nil {
				return found
			}
		}
	}
	return nil
}

// lostAccumulator makes a FOR give the initial value of its first carried one.
func lostAccumulator(_ *program.Program, b *program.Block, i int) bool {
	in := &b.Instrs[i]
	if in.Op != program.For || len(in.Results) == 0 {
		return false
	}
	last := len(in.Body.Instrs) - 1
	yield := in.Body.Instrs[last]
	if yield.Op != program.Yield {
		return false
	}
	body := *in.Body
	body.Instrs = append([]program.Instr(nil), in.Body.Instrs...)
	args := append([]*program.Value(nil), yield.Args...)
	args[0] = in.Body.Args[1]
	yield.Args = args
	body.Instrs[last] = yield
	in.Body = &body
	return true
}

// droppedAddend leaves out polynomials: their last coefficients are noise.
func droppedAddend(p *program.Program, b *program.Block, i int) bool {
	in := &b.Instrs[i]
	if in.Op != program.Alu || in.Ir != ir.OpFma || !floatResult(in) {
		return false
	}
	if d := definition(p.Body, in.Args[2]); d != nil && d.Op == program.Const {
		return false
	}
	in.Ir, in.Args = ir.OpMul, in.Args[:2]
	return true
}

func wrongLanes(_ *program.Program, b *program.Block, i int) bool {
	in := &b.Instrs[i]
	if in.Op != program.Shuffle {
		return false
	}
	lanes := in.Args[0].Type.Lanes
	mask := make([]int, len(in.Mask))
	for k, m := range in.Mask {
		mask[k] = m
		if m >= 0 {
			mask[k] = m/lanes*lanes + (m+1)%lanes
		}
	}
	in.Mask = mask
	return true
}

func swappedArms(_ *program.Program, b *program.Block, i int) bool {
	in := &b.Instrs[i]
	if in.Op != program.Alu || in.Ir != ir.OpWhere || !floatResult(in) || in.Args[1] == in.Args[2] {
		return false
	}
	in.Args = []*program.Value{in.Args[0], in.Args[2], in.Args[1]}
	return true
}
