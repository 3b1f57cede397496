package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/kernel/plan"
)

// A row held in registers is read one place further, or one before, under a condition
// that is known when the kernel runs: one copy reads past the end, where it takes
// nothing, and there is no element to compute.
func TestRegistersReadPastTheirEnd(t *testing.T) {
	const n = 4
	for name, read := range map[string]func(b *builder, i, shift *ir.UOp) (inside, index *ir.UOp){
		"further": func(b *builder, i, shift *ir.UOp) (inside, index *ir.UOp) {
			return b.Lt(b.Add(i, shift), b.n(n)), b.Add(i, b.n(1))
		},
		"before": func(b *builder, i, shift *ir.UOp) (inside, index *ir.UOp) {
			return b.Lt(b.Sub(shift, b.n(1)), i), b.Sub(i, b.n(1))
		},
	} {
		b := newBuilder()
		shift := b.Var(ir.VarArg{Name: "T", Lo: 1, Hi: n, Multiple: 1})
		x, out := b.param(0, ir.F32, n), b.param(1, ir.F32, n)
		i, z := b.rng(n), b.rng(n)
		row := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.Mul(b.Load(x, z), b.f(2)), z)
		inside, index := read(b, i, shift)
		sink := b.sink(b.Store(out, b.Where(inside, b.Load(row, index), b.f(-1)), list(i), list(i)))
		for _, text := range []string{"", "UPCAST s0; UNROLL z0"} {
			t.Run(name+"/"+text, func(t *testing.T) {
				p := lowerText(t, b, sink, text, hopper(t))
				for _, v := range []int64{1, 2, n} {
					compare(t, b.Arena, sink, p, plan.Plan{}, map[string]int64{"T": v})
				}
			})
		}
	}
}
