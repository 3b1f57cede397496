package render_test

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/cuda"
	"tgc/render/gpu"
	"tgc/render/ptx"
	"tgc/target"
)

// twoArms has 16 KB of shared memory in each arm of a branch: on the block's number, which
// all its threads have, or on a thread's.
func twoArms(uniform bool) *program.Program {
	b := program.NewBuilder("two_arms")
	y := b.Buffer(0, ir.F32, "y", 4, 4*64)
	b.Access(y, false, true)
	b.SetGrid(2)
	b.SetBlock(32)
	b.GridLoop(func(unit *program.Value) {
		number := unit
		if !uniform {
			number = b.Cast(b.ThreadIndex(0), ir.I64)
		}
		arm := func() []*program.Value {
			room := b.Alloca(ir.F32, program.SharedSpace, 4096, 16)
			at := b.Cast(b.ThreadIndex(0), ir.I64)
			b.Store(b.PtrAdd(room, at), b.Float(program.Scalar(ir.F32), 1), 4)
			b.Store(b.PtrAdd(y, at), b.Load(b.PtrAdd(room, at), 1, 4), 4)
			return nil
		}
		b.If(b.Lt(number, b.Index(1)), arm, arm)
	})
	return b.Finish()
}

// Arms of a branch that the whole block takes use one place in shared memory, in both
// languages: kernels that are merged into one launch have each as much as alone.
func TestArmsShareMemory(t *testing.T) {
	desc, err := target.Parse("cuda:sm_87")
	if err != nil {
		t.Fatal(err)
	}
	for uniform, want := range map[bool]int{true: 16 << 10, false: 32 << 10} {
		p := twoArms(uniform)
		for name, render := range map[string]func(*program.Program, *target.Desc, gpu.Options) (*gpu.Kernel, error){"ptx": ptx.Render, "cuda": cuda.Render} {
			k, err := render(p, desc, gpu.OptionsFor(p))
			if err != nil {
				t.Fatal(err)
			}
			if k.Shared != want || int64(k.Shared) != program.SharedBytes(p) {
				t.Errorf("%s, uniform %t: %d bytes of shared memory, want %d", name, uniform, k.Shared, want)
			}
		}
	}
}
