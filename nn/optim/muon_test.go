package optim_test

import (
	"fmt"
	"math"
	"testing"

	"tgc/nn"
	"tgc/nn/optim"
)

// grid is a matrix of the reference, in float64.
type grid [][]float64

func times(a, b grid) grid {
	out := make(grid, len(a))
	for i := range a {
		out[i] = make([]float64, len(b[0]))
		for k, x := range a[i] {
			for j := range out[i] {
				out[i][j] += x * b[k][j]
			}
		}
	}
	return out
}

func transposed(a grid) grid {
	out := make(grid, len(a[0]))
	for i := range out {
		for _, row := range a {
			out[i] = append(out[i], row[i])
		}
	}
	return out
}

// combined is x*a + y*b.
func combined(x float64, a grid, y float64, b grid) grid {
	out := make(grid, len(a))
	for i := range a {
		for j := range a[i] {
			out[i] = append(out[i], x*a[i][j]+y*b[i][j])
		}
	}
	return out
}

// newtonSchulz is the iteration as its paper writes it, on the matrix as it is: with
// x x^T on the left, whatever is longer.
func newtonSchulz(x grid) grid {
	norm := 0.0
	for _, row := range x {
		for _, v := range row {
			norm += v * v
		}
	}
	x = combined(1/math.Sqrt(norm), x, 0, x)
	for range 5 {
		a := times(x, transposed(x))
		b := combined(-4.7750, a, 2.0315, times(a, a))
		x = combined(3.4445, x, 1, times(b, x))
	}
	return x
}

// muon follows the paper's code for a weight [rows, columns].
func muon(rows, columns int, decay float64) reference {
	return func(s *weight, g []float64, t int, rate float64) {
		x := make(grid, rows)
		for i := range s.w {
			s.velocity[i] = 0.95*s.velocity[i] + g[i]
			x[i/columns] = append(x[i/columns], g[i]+0.95*s.velocity[i])
		}
		u := newtonSchulz(x)
		for i := range s.w {
			s.w[i] -= rate * (decay*s.w[i] + math.Sqrt(math.Max(1, float64(rows)/float64(columns)))*u[i/columns][i%columns])
		}
	}
}

// Matrices of either shape and a kernel of a convolution go by Muon, a vector and what is
// excepted by AdamW.
func TestMuonFollowsItsReference(t *testing.T) {
	o := optim.NewMuon(0.1)
	o.Except = func(w nn.Parameter) bool { return w.Name == "w4" }
	shapes := [][]int{{4, 6}, {7, 3}, {4, 2, 3}, {5}, {3, 3}}
	references := []reference{
		muon(4, 6, 0.1), muon(7, 3, 0.1), muon(4, 6, 0.1),
		adam(0.9, 0.999, 1e-8, 0, true), adam(0.9, 0.999, 1e-8, 0.1, true),
	}
	f, p := compile(t, shapes, o, nil)
	want := make([]*weight, len(shapes))
	initial := p.Initial(1)
	for k, shape := range shapes {
		want[k] = start(initial[fmt.Sprint("w", k)], shape)
	}
	for step := 1; step <= 10; step++ {
		for k := range shapes {
			references[k](want[k], feed(t, f, k, step, len(want[k].w), 1), step, 0.01)
		}
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for k := range shapes {
		// The polynomials magnify a rounding up to 3.4 times in each of five steps.
		compare(t, f, k, want[k].w, 1e-5)
	}
}

// Groups: another rate, another optimiser, and one that stands still.
func TestGroups(t *testing.T) {
	has := func(name string) func(nn.Parameter) bool {
		return func(w nn.Parameter) bool { return w.Name == name }
	}
	o := optim.Groups{
		{Has: has("w0"), Optimizer: optim.SGD{}, Rate: 0.1},
		{Has: has("w1")},
		{Has: optim.Below("w2"), Optimizer: optim.NewLion(0)},
	}
	shapes := [][]int{{3}, {3}, {3}, {3}}
	references := []reference{sgd(0, false, 0), nil, lion(0), nil}
	f, p := compile(t, shapes, o, nil)
	initial := p.Initial(1)
	var gradients [4][][]float64
	for step := 1; step <= 2; step++ {
		for _, k := range []int{0, 2} { // nothing needs the gradients of the others
			gradients[k] = append(gradients[k], feed(t, f, k, step, 3, 1))
		}
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for k, shape := range shapes {
		want := start(initial[fmt.Sprint("w", k)], shape)
		for i, gradient := range gradients[k] {
			references[k](want, gradient, i+1, []float64{0: 0.001, 2: 0.01}[k])
		}
		compare(t, f, k, want.w, 1e-6)
	}
	if in := optim.Below("a", "b.c"); !in(nn.Parameter{Name: "a.w"}) || !in(nn.Parameter{Name: "b.c"}) || in(nn.Parameter{Name: "ab.w"}) || in(nn.Parameter{Name: "b.d"}) {
		t.Error("Below goes by whole scopes")
	}
}
