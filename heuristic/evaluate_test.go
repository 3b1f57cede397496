package heuristic_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/runtime/interp"
	"tgc/target"
)

// contents is a kernel's buffers twice: as the kernel's evaluator wants them and
// as bytes.
type contents struct {
	values []*interp.KernelBuffer
	raw    [][]byte
}

// fill makes random contents: floats around 0, small integers, valid blocks.
func fill(sink *ir.UOp) contents {
	var c contents
	rng := rand.New(rand.NewPCG(3, 4))
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpParam {
			continue
		}
		arg := u.Arg.(ir.ParamArg)
		for len(c.values) <= arg.Slot {
			c.values, c.raw = append(c.values, &interp.KernelBuffer{DType: ir.F32}), append(c.raw, nil)
		}
		n := int64(1)
		for _, e := range u.Src {
			n *= ir.NewBounds().Of(e).Hi
		}
		b := &interp.KernelBuffer{DType: u.DType, Format: arg.Format}
		if f, ok := packed.Lookup(arg.Format); ok {
			b.Bytes = packed.RandomBlocks(f, int(n)/f.BlockElems, rng)
			c.raw[arg.Slot] = b.Bytes
		} else {
			numbers := make([]float64, n)
			b.Data = make([]ir.Scalar, n)
			for i := range numbers {
				if u.DType.IsFloat() {
					numbers[i] = ir.RoundFloat(u.DType, rng.NormFloat64()/2)
					b.Data[i].F = numbers[i]
				} else {
					b.Data[i].I = int64(rng.IntN(4))
					numbers[i] = float64(b.Data[i].I)
				}
			}
			c.raw[arg.Slot] = []byte(ir.EncodeTable(u.DType, numbers))
		}
		c.values[arg.Slot] = b
	}
	return c
}

// checkPlan lowers a kernel with a plan and compares the program with the
// kernel's own evaluation in float64.
func checkPlan(t *testing.T, a *ir.Arena, sink *ir.UOp, plan plan.Plan, desc *target.Desc, vars map[string]int64) {
	t.Helper()
	checkPlanBy(t, a, sink, plan, desc, vars, interp.KernelOptions{Float64: true})
}

// checkPlanBy is checkPlan with an evaluation of another kind.
func checkPlanBy(t *testing.T, a *ir.Arena, sink *ir.UOp, plan plan.Plan, desc *target.Desc, vars map[string]int64, options interp.KernelOptions) {
	t.Helper()
	p, err := kernel.Lower(a, sink, plan, desc)
	if err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
	if err := program.Verify(p); err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
	c := fill(sink)
	args := make([]interp.Arg, len(p.Params))
	for i, param := range p.Params {
		switch param.Kind {
		case program.ParamBuffer:
			args[i].Bytes = c.raw[param.Slot]
		case program.ParamVar:
			args[i].Int64 = vars[param.Name]
		case program.ParamTable:
			args[i].Bytes = []byte(param.Table)
		}
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
	if _, err := interp.EvalKernel(context.Background(), sink, c.values, vars, options); err != nil {
		t.Fatal(err)
	}
	for _, store := range sink.Src {
		slot := store.Src[0].Arg.(ir.ParamArg).Slot
		compare(t, plan, slot, c.values[slot], c.raw[slot])
	}
}

func compare(t *testing.T, plan plan.Plan, slot int, want *interp.KernelBuffer, raw []byte) {
	t.Helper()
	largest := 1.0
	for _, w := range want.Data {
		largest = max(largest, math.Abs(w.F))
	}
	for i, w := range want.Data {
		bits := binary.LittleEndian.Uint32(raw[4*i:])
		if want.DType == ir.I32 {
			if int64(int32(bits)) != w.I {
				t.Fatalf("%s: slot %d element %d is %d, want %d", plan, slot, i, int32(bits), w.I)
			}
			continue
		}
		if g := float64(math.Float32frombits(bits)); !(math.Abs(g-w.F) <= 2e-5*largest) {
			t.Fatalf("%s: slot %d element %d is %v, want %v", plan, slot, i, g, w.F)
		}
	}
}
