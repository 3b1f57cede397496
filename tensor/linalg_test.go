package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// matrix is a random one of n rows and columns.
func matrix(r *rand.Rand, n int) []float64 {
	a := make([]float64, n*n)
	for i := range a {
		a[i] = float64(float32(r.NormFloat64()))
	}
	return a
}

// positive is A A^T / n + I/2, symmetric and positive definite.
func positive(r *rand.Rand, n int) []float64 {
	a, out := matrix(r, n), make([]float64, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				out[i*n+j] += a[i*n+k] * a[j*n+k] / float64(n)
			}
		}
		out[i*n+i] += 0.5
	}
	for i, v := range out {
		out[i] = float64(float32(v))
	}
	return out
}

// solved solves by elimination with row exchanges, in float64, and has the determinant.
func solved(a, b []float64, n int) (x []float64, det float64) {
	m := len(b) / n
	a, x, det = slices.Clone(a), slices.Clone(b), 1
	for j := range n {
		p := j
		for i := j; i < n; i++ {
			if math.Abs(a[i*n+j]) > math.Abs(a[p*n+j]) {
				p = i
			}
		}
		if p != j {
			det = -det
			for k := range n {
				a[j*n+k], a[p*n+k] = a[p*n+k], a[j*n+k]
			}
			for k := range m {
				x[j*m+k], x[p*m+k] = x[p*m+k], x[j*m+k]
			}
		}
		det *= a[j*n+j]
		for i := j + 1; i < n; i++ {
			f := a[i*n+j] / a[j*n+j]
			for k := range n {
				a[i*n+k] -= f * a[j*n+k]
			}
			for k := range m {
				x[i*m+k] -= f * x[j*m+k]
			}
		}
	}
	for j := n - 1; j >= 0; j-- {
		for k := range m {
			for i := j + 1; i < n; i++ {
				x[j*m+k] -= a[j*n+i] * x[i*m+k]
			}
			x[j*m+k] /= a[j*n+j]
		}
	}
	return x, det
}

func identity(n int) []float64 {
	i := make([]float64, n*n)
	for k := range n {
		i[k*n+k] = 1
	}
	return i
}

// lowerFactor is Cholesky's, row by row.
func lowerFactor(a []float64, n int) []float64 {
	l := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			sum := a[i*n+j]
			for k := range j {
				sum -= l[i*n+k] * l[j*n+k]
			}
			if i == j {
				l[i*n+i] = math.Sqrt(sum)
			} else {
				l[i*n+j] = sum / l[j*n+j]
			}
		}
	}
	return l
}

// Matrices of one block and of several, and stacks of them.
func TestLinearAlgebra(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		sizes := []int{20} // a panel and a part of one
		if dev.Name() == "cpu" {
			sizes = []int{1, 3, 20}
		}
		g := tensor.NewGraph().On(dev)
		r := rand.New(rand.NewPCG(5, 6))
		var list []computed
		for _, n := range sizes {
			a, b, p := append(matrix(r, n), matrix(r, n)...), matrix(r, n)[:n], positive(r, n)
			x := tensor.FromSlice(g, a, 2, n, n)
			var inverse, dets, answers []float64
			for _, own := range [][]float64{a[:n*n], a[n*n:]} {
				i, det := solved(own, identity(n), n)
				answer, _ := solved(own, b, n)
				inverse, dets, answers = append(inverse, i...), append(dets, det), append(answers, answer...)
			}
			list = append(list,
				computed{fmt.Sprint("inverse ", n), x.Inverse(), inverse, 1e-9},
				computed{fmt.Sprint("det ", n), x.Det(), dets, 1e-11},
				computed{fmt.Sprint("solve ", n), x.Solve(tensor.FromSlice(g, b, n, 1)), answers, 1e-9},
				computed{fmt.Sprint("cholesky ", n), tensor.FromSlice(g, p, n, n).Cholesky(), lowerFactor(p, n), 1e-13},
				computed{fmt.Sprint("cholesky in f32 ", n), tensor.FromSlice(g, f32s(p), n, n).Cholesky(), lowerFactor(p, n), 2e-6},
			)
		}
		compareAll(t, list)
	})
}

// What has no inverse has NaN for one, and 0 for a determinant.
func TestSingularMatrices(t *testing.T) {
	g := tensor.NewGraph()
	a := tensor.FromSlice(g, []float64{1, 2, 2, 4, 0, 1, 1, 0, 2, 0, 0, -2}, 3, 2, 2)
	nan := math.NaN()
	compareAll(t, []computed{
		{"inverse", a.Inverse(), []float64{nan, nan, nan, nan, 0, 1, 1, 0, 0.5, 0, 0, -0.5}, 0},
		{"det", a.Det(), []float64{0, -1, -4}, 0},
		{"cholesky", a.Cholesky().SliceInts(0, 2, 1).SliceInts(2, 1, 1).SliceInts(1, 1, 1), []float64{nan}, 0},
		{"of nothing", g.Zeros(ir.F32, 2, 0, 0).Det(), []float64{1, 1}, 0},
	})
	for want, build := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"Inverse: f32[2 3], want floats [.. n n]": (*tensor.Tensor).Inverse,
		"Solve: f32[2 2] of f32[2 3 3]": func(x *tensor.Tensor) *tensor.Tensor {
			return x.SliceInts(1, 0, 2).Solve(x.Graph().Zeros(ir.F32, 2, 3, 3))
		},
	} {
		g := tensor.NewGraph()
		build(g.Input("x", ir.F32, 2, 3))
		wantError(t, want, g.Err(), want)
	}
}

// A matrix times a power of two has the same bits in its inverse.
func TestInverseOfLargeNumbers(t *testing.T) {
	g := tensor.NewGraph()
	const n, scale = 20, 1 << 24
	x := tensor.FromSlice(g, f32s(matrix(rand.New(rand.NewPCG(9, 10)), n)), n, n)
	difference := x.MulScalar(scale).Inverse().MulScalar(scale).Sub(x.Inverse())
	compareAll(t, []computed{{"inverse", difference, make([]float64, n*n), 0}})
}

// Derivatives, and those of derivatives, are differences of values.
func TestLinearAlgebraGradients(t *testing.T) {
	const n, h = 3, 1e-5
	r := rand.New(rand.NewPCG(7, 8))
	a, b := positive(r, n), matrix(r, n)
	for name, build := range map[string]func(x, y *tensor.Tensor) *tensor.Tensor{
		"inverse":  func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Inverse() },
		"det":      func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Det() },
		"solve":    func(x, y *tensor.Tensor) *tensor.Tensor { return x.Solve(y) },
		"solve of": func(x, y *tensor.Tensor) *tensor.Tensor { return y.Add(y.Graph().Eye(ir.F64, n)).Solve(x).Square() },
		"cholesky": func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Cholesky() },
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			y := tensor.FromSlice(g, b, n, n)
			weighted := func(x *tensor.Tensor) *tensor.Tensor {
				k := x.Reshape(-1).Extent(0)
				return x.Reshape(k).Mul(g.Linspace(ir.F64, 1, 2, k)).Sum()
			}
			first := func(x *tensor.Tensor) *tensor.Tensor { return weighted(build(x, y)) }
			second := func(x *tensor.Tensor) *tensor.Tensor { return weighted(grad.Gradients(first(x), x)[0]) }
			x := tensor.FromSlice(g, a, n, n)
			all := []*tensor.Tensor{grad.Gradients(first(x), x)[0], grad.Gradients(second(x), x)[0]}
			for i := range a {
				for _, step := range []float64{h, -h} {
					moved := slices.Clone(a)
					moved[i] += step
					at := tensor.FromSlice(g, moved, n, n)
					all = append(all, first(at), second(at))
				}
			}
			if err := tensor.Realize(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
			for order, of := range all[:2] {
				got := realised[float64](t, of)
				for i := range a {
					up, down := all[2+4*i+order], all[4+4*i+order]
					want := (realised[float64](t, up)[0] - realised[float64](t, down)[0]) / (2 * h)
					if !(math.Abs(got[i]-want) <= 1e-6*max(1, math.Abs(want))) {
						t.Errorf("derivative %d by element %d: %v, want %v", order+1, i, got[i], want)
					}
				}
			}
		})
	}
}

// A function's own derivative takes the place of that of its operations.
func TestCustomGradient(t *testing.T) {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{-2, 0.5, 3}, 3)
	// Rounds, and passes derivatives on as if it did not.
	straight := x.Round().WithGradient([]*tensor.Tensor{x}, func(_, adjoint *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{adjoint} })
	dx := grad.Gradients(straight.Square().Sum(), x)[0]
	if got := realised[float32](t, dx); !slices.Equal(got, []float32{-4, 0, 6}) {
		t.Errorf("%v", got)
	}
	bad := x.WithGradient([]*tensor.Tensor{x}, func(_, adjoint *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{adjoint.Sum()} })
	grad.Gradients(bad.Sum(), x)
	wantError(t, "shape", g.Err(), "a custom gradient is f32[] by f32[3]")
}
