package interp_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/packed"
	"tgc/runtime/interp"
)

func floats(v ...float64) *interp.KernelBuffer {
	b := &interp.KernelBuffer{DType: ir.F32, Data: make([]ir.Scalar, len(v))}
	for i, x := range v {
		b.Data[i].F = x
	}
	return b
}

func plainParam(a *ir.Arena, slot int, extents ...int64) *ir.UOp {
	src := make([]*ir.UOp, len(extents))
	for i, n := range extents {
		src[i] = a.Index(n)
	}
	return a.Make(ir.OpParam, ir.F32, ir.ParamArg{Slot: slot}, src...)
}

// A tuple's component may depend on a range that the others do not: each point
// of that range has its own accumulator, the rest is folded once.
func TestKernelTuple(t *testing.T) {
	a := ir.NewArena()
	out, x, v := plainParam(a, 0, 2), plainParam(a, 1, 3), plainParam(a, 2, 3, 2)
	d, k := a.Range(0, a.Index(2)), a.Range(1, a.Index(3))
	arg := func(i int) *ir.UOp { return a.Make(ir.OpArg, ir.F32, ir.IntArg(i)) }
	zero := a.Const(ir.F32, 0)
	tuple := a.TupleReduce([]*ir.UOp{a.Load(x, k), a.Load(v, k, d)}, k, []*ir.UOp{zero, zero},
		[]*ir.UOp{a.Add(arg(0), arg(2)), a.Add(arg(1), a.Mul(arg(2), arg(3)))})
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, a.Add(a.Proj(tuple, 0), a.Proj(tuple, 1)), []*ir.UOp{d}, []*ir.UOp{d}))
	args := []*interp.KernelBuffer{floats(0, 0), floats(1, 2, 3), floats(1, 10, 2, 20, 3, 30)}
	if _, err := interp.EvalKernel(context.Background(), sink, args, nil, interp.KernelOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := [2]float64{args[0].Data[0].F, args[0].Data[1].F}; got != [2]float64{6 + 14, 6 + 140} {
		t.Errorf("got %v, want [20 146]", got)
	}
}

// A stage is computed once for all rows, and counted so.
func TestKernelStageReadsOnce(t *testing.T) {
	const rows, k = 5, 64
	a := ir.NewArena()
	f, _ := packed.Lookup("Q8_0")
	out := plainParam(a, 0, rows)
	w := a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: 1, Format: f.Name}, a.Index(1), a.Index(k))
	n, j, z := a.Range(0, a.Index(rows)), a.Range(1, a.Index(k)), a.Range(2, a.Index(k))
	stage := a.Make(ir.OpStage, ir.F32, ir.StageArg{}, f.Decode(a, w, a.Index(0), z), z)
	sum := a.Reduce(ir.OpAdd, a.Load(stage, j), j)
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, a.Mul(sum, a.Cast(n, ir.F32)), []*ir.UOp{n}, []*ir.UOp{n}))
	weights := &interp.KernelBuffer{DType: ir.U8, Format: f.Name, Bytes: packed.RandomBlocks(f, k/f.BlockElems, rand.New(rand.NewPCG(1, 1)))}
	stats, err := interp.EvalKernel(context.Background(), sink, []*interp.KernelBuffer{floats(make([]float64, rows)...), weights}, nil, interp.KernelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := stats.FieldReads["1.qs"]; n != k {
		t.Errorf("%d reads of qs, want %d", n, k)
	}
}

// A LOAD out of bounds is an error, unless a WHERE does not choose it; a STORE
// out of bounds writes nothing.
func TestKernelBounds(t *testing.T) {
	a := ir.NewArena()
	out, x := plainParam(a, 0, 3), plainParam(a, 1, 2)
	r := a.Range(0, a.Index(4))
	eval := func(value *ir.UOp) ([]ir.Scalar, error) {
		args := []*interp.KernelBuffer{floats(9, 9, 9), floats(1, 2)}
		sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, value, []*ir.UOp{r}, []*ir.UOp{r}))
		_, err := interp.EvalKernel(context.Background(), sink, args, nil, interp.KernelOptions{})
		return args[0].Data, err
	}
	if _, err := eval(a.Load(x, r)); err == nil || !strings.Contains(err.Error(), "out of bounds") {
		t.Errorf("got error %v, want one that says out of bounds", err)
	}
	got, err := eval(a.Where(a.Lt(r, a.Index(2)), a.Load(x, r), a.Const(ir.F32, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 2, 0} {
		if got[i].F != want {
			t.Errorf("element %d: got %v, want %v", i, got[i].F, want)
		}
	}
}
