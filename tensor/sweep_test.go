package tensor_test

import (
	goruntime "runtime"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// collected runs the garbage collector, so that the next Realize forgets.
func collected() {
	goruntime.GC()
	goruntime.GC()
}

// What a graph forgets is what nothing can ask for: tensors of before keep their values, and
// derivatives go back through values that only they still need.
func TestForgettingIsNotSeen(t *testing.T) {
	g := tensor.NewGraph().On(interp.New(interp.Options{}))
	x, w := tensor.FromSlice(g, []float32{1, 2, 3}, 3), tensor.FromSlice(g, []float32{2, -1, 0.5}, 3)
	state, loss := x, (*tensor.Tensor)(nil)
	var early *tensor.Tensor
	for i := range 8 {
		state = state.Mul(w)
		if i == 1 {
			early = state
		}
		collected()
		if err := state.Realize(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			loss = state.Sum() // of w^4 x
		}
	}
	collected()
	results := []*tensor.Tensor{state, early, loss, early.Add(x), grad.Gradients(loss, w)[0], grad.Gradients(loss, early)[0]}
	if err := tensor.Realize(t.Context(), results...); err != nil {
		t.Fatal(err)
	}
	collected()
	if err := results[3].MulScalar(2).Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	compareAll(t, []computed{
		{"w^8 x", state, []float64{256, 2, 3.0 / 256}, 1e-6},
		{"w^2 x", early, []float64{4, 2, 0.75}, 1e-6},
		{"the sum of w^4 x", loss, []float64{16 + 2 + 3.0/16}, 1e-6},
		{"w^2 x + x", results[3], []float64{5, 4, 3.75}, 1e-6},
		{"4 w^3 x", results[4], []float64{32, -8, 1.5}, 1e-6},
		{"w^2", results[5], []float64{4, 1, 0.25}, 1e-6},
	})
}

// Results that the graph was told of, searches and derivatives of the user's own outlive a
// forgetting.
func TestForgettingKeepsTheGraph(t *testing.T) {
	g := tensor.NewGraph().On(interp.New(interp.Options{}))
	in := g.Input("in", ir.F32, 3)
	g.Output("doubled", in.MulScalar(2))
	x := tensor.FromSlice(g, []float32{3, 1, 2}, 3)
	cubed := x.Mul(x).Mul(x)
	cubed = cubed.WithGradient([]*tensor.Tensor{x}, func(_, adjoint *tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{adjoint.MulScalar(100)} // told from the right one
	})
	sorted, order := x.Sort(0, false)
	for range 3 {
		garbage := x.AddScalar(1)
		if err := garbage.Realize(t.Context()); err != nil {
			t.Fatal(err)
		}
		collected()
	}
	slope := grad.Gradients(cubed.Sum(), x)[0]
	compareAll(t, []computed{
		{"cubes", cubed, []float64{27, 1, 8}, 0},
		{"their derivative", slope, []float64{100, 100, 100}, 0},
		{"sorted", sorted, []float64{1, 2, 3}, 0},
		{"order", order, []float64{1, 2, 0}, 0},
	})
	f, err := g.Function(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(t.Context(), f, "in", []float32{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := tensor.Get[float32](t.Context(), f, "doubled"); err != nil || got[2] != 6 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, b := range g.Buffers() {
		if b.DType == ir.Void {
			t.Errorf("%+v is no buffer", b)
		}
	}
}

// Constants, which the steps of a loop share, keep no step alive: the nodes of a graph stay few.
func TestStepsAreForgotten(t *testing.T) {
	g := tensor.NewGraph().On(interp.New(interp.Options{}))
	w := tensor.FromSlice(g, make([]float32, 16), 16)
	kept := g.Scalar(ir.F32, 0.5)
	for i := range 200 {
		if i%20 == 0 {
			collected()
		}
		w = w.MulScalar(0.5).AddScalar(1)
		if err := w.Realize(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.Arena().Len(); n > 200 {
		t.Errorf("%d nodes after 200 steps", n)
	}
	goruntime.KeepAlive(kept)
}
