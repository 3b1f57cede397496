package gpu

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// A sum of a sum is the value at its root plus both constants; a sum of two values, or
// of two constants, is itself.
func TestSumsOfSums(t *testing.T) {
	b := program.NewBuilder("sums")
	x := b.Buffer(0, ir.I64, "x", 16, 64)
	b.SetGrid(1)
	var first, second, third, both *program.Value
	b.GridLoop(func(unit *program.Value) {
		first = b.Alu(ir.OpAdd, unit, b.Index(3))
		second = b.Alu(ir.OpAdd, b.Index(40), first)
		third = b.Alu(ir.OpAdd, second, b.Index(-500))
		both = b.Alu(ir.OpAdd, first, second)
		b.Store(x, b.Alu(ir.OpAdd, third, both), 8)
	})
	p := b.Finish()
	unit, sums, constants := first, make(Sums), make(map[*program.Value]*program.Instr)
	for i := range p.Body.Instrs {
		in := &p.Body.Instrs[i]
		if in.Op == program.Const {
			constants[in.Result] = in
		}
		if in.Op != program.GridLoop {
			continue
		}
		unit = in.Body.Args[0]
		for k := range in.Body.Instrs {
			if sum := &in.Body.Instrs[k]; sum.Op == program.Alu {
				sums.Note(sum, constants, func(_, _ *program.Value) bool { return true })
			}
		}
	}
	for v, want := range map[*program.Value]Sum{unit: {unit, 0}, first: {unit, 3}, second: {unit, 43}, third: {unit, -457}, both: {both, 0}} {
		if got := sums.Of(v); got != want {
			t.Errorf("%%%d is %%%d%+d, want %%%d%+d", v.ID, got.Of.ID, got.Constant, want.Of.ID, want.Constant)
		}
	}
}
