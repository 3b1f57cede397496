package engine

import (
	"testing"

	"tgc/ir"
	"tgc/packed"
	"tgc/target"
)

// TGC_WITH adds its Opts to the plans of kernels that accept them, and to no others.
func TestOptsAddedToPlans(t *testing.T) {
	t.Setenv("TGC_WITH", "AHEAD 32; PREFETCH p9 64")
	config, err := ReadConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, added := range map[string]string{"ptx:sm_90": "; AHEAD 32", "llvm:x86-64-v3": ""} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		a := ir.NewArena()
		sink := packedProduct(a, "Q8_0", 64, 1024)
		usual, err := LowerKernel(a, sink, desc, Config{})
		if err != nil {
			t.Fatal(err)
		}
		with, err := LowerKernel(a, sink, desc, config)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := with.Plan.String(), usual.Plan.String()+added; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// packedProduct is a product of a packed matrix and a vector.
func packedProduct(a *ir.Arena, format string, rows, columns int64) *ir.UOp {
	f, _ := packed.Lookup(format)
	n, k := a.Range(0, a.Index(rows)), a.Range(1, a.Index(columns))
	x := a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: 0}, a.Index(columns))
	w := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: 1, Format: format}, a.Index(rows), a.Index(columns))
	out := a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: 2}, a.Index(rows))
	sum := a.Reduce(ir.OpAdd, a.Mul(a.Load(x, k), f.Decode(a, w, n, k)), k)
	return a.Make(ir.OpSink, ir.Void, nil, a.Store(out, sum, []*ir.UOp{n}, []*ir.UOp{n}))
}
