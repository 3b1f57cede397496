package grad_test

import (
	"fmt"
	"math"
	"testing"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// deep is a chain of layers of a width, with a checkpoint behind every few.
func deep(layers, width, every int) func(g *tensor.Graph) (*tensor.Tensor, list) {
	return func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, by := g.Input("x", ir.F32, 64, width), list{}
		for i := range layers {
			w := g.Input(fmt.Sprint("w", i), ir.F32, width, width)
			x = x.Linear(w).Tanh().Add(x)
			by = append(by, w)
			if every > 0 && (i+1)%every == 0 {
				x = grad.Checkpoint(x)
			}
		}
		return x.Mul(x).Sum(), by
	}
}

// Checkpoints lower what lies between the kernels, by computing more.
func TestCheckpointMemory(t *testing.T) {
	plain, kept := backward(t, deep(12, 256, 0)), backward(t, deep(12, 256, 3))
	if 3*kept.ArenaBytes > 2*plain.ArenaBytes {
		t.Errorf("%d bytes with checkpoints, %d without\n%s\n%s", kept.ArenaBytes, plain.ArenaBytes, summary(plain), summary(kept))
	}
	if kernels(kept) <= kernels(plain) {
		t.Errorf("%d kernels with checkpoints, %d without", kernels(kept), kernels(plain))
	}
	t.Logf("%d bytes and %d kernels, without checkpoints %d and %d\n%s\n%s", kept.ArenaBytes, kernels(kept), plain.ArenaBytes, kernels(plain), summary(plain), summary(kept))
}

// The second computation gives what the first gave, also of weights that the
// same graph replaces. (Not to the bit: other kernels, in which sums may be taken
// in another order.)
func TestCheckpointValues(t *testing.T) {
	want := trained(t, 0)
	for _, every := range []int{1, 2, 3} {
		for i, d := range trained(t, every) {
			for k := range d {
				if math.Abs(float64(d[k]-want[i][k])) > 1e-6*max(1, math.Abs(float64(want[i][k]))) {
					t.Fatalf("a checkpoint every %d layers: result %d element %d is %v, want %v", every, i, k, d[k], want[i][k])
				}
			}
		}
	}
}

// trained gives the gradients of a small chain and its weights after a step.
func trained(t *testing.T, every int) [][]float32 {
	t.Helper()
	g := tensor.NewGraph()
	loss, by := deep(4, 6, every)(g)
	var names []string
	for i, d := range grad.Of(list{loss}, nil, by) {
		names = append(names, fmt.Sprint("d", i), fmt.Sprint("w", i))
		g.Output(names[2*i], d)
		g.Store(by[i], by[i].Sub(d.MulScalar(0.5)))
	}
	f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, b := range g.Buffers() {
		if b.Output {
			continue
		}
		values := make([]float32, count(sizes(b.Shape)))
		for k := range values {
			values[k] = float32((k*7+i*3)%11-5) / 16
		}
		if err := tensor.Set(t.Context(), f, b.Name, values); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	results := make([][]float32, len(names))
	for i, name := range names {
		if results[i], err = tensor.Get[float32](t.Context(), f, name); err != nil {
			t.Fatal(err)
		}
	}
	return results
}

// Paths around a checkpoint, several checkpoints of one value, and second
// derivatives.
func TestCheckpointShapes(t *testing.T) {
	f := function{shapes: [][]int{{3}, {3}}, build: func(x list) *tensor.Tensor {
		h := x[0].Sin().Mul(x[1])
		c := grad.Checkpoint(h.Mul(h))
		d := grad.Checkpoint(h.Add(c).Sin())
		return d.Mul(c).Add(h.Exp2()).Mul(grad.Checkpoint(x[0]))
	}}
	second(t, f)
}
