package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/runtime"
	"tgc/target"
	"tgc/tensor"
)

// product is A B for A [m k] and B [k n].
func product(a, b []float64, m, k, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				out[i*n+j] += a[i*k+l] * b[l*n+j]
			}
		}
	}
	return out
}

func transposed(a []float64, m, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			out[j*m+i] = a[i*n+j]
		}
	}
	return out
}

// triangular is R of a QR decomposition without negative numbers on its diagonal, which is the
// transposed Cholesky factor of A^T A.
func triangular(a []float64, m, n int) []float64 {
	return transposed(lowerFactor(product(transposed(a, m, n), a, n, m, n), n), n, n)
}

// symmetric is V diag(values) V^T for an orthogonal V that reflects at a random vector.
func symmetric(r *rand.Rand, values []float64) []float64 {
	n := len(values)
	v, length := make([]float64, n), 0.0
	for i := range v {
		v[i] = r.NormFloat64()
		length += v[i] * v[i]
	}
	h := identity(n)
	for i := range n {
		for j := range n {
			h[i*n+j] -= 2 * v[i] * v[j] / length
		}
	}
	scaled := slices.Clone(h)
	for i := range scaled {
		scaled[i] *= values[i%n]
	}
	return product(scaled, h, n, n, n)
}

func TestDecompositions(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		shapes := [][2]int{{5, 3}}
		if dev.Name() == "cpu" {
			shapes = [][2]int{{1, 1}, {3, 5}, {20, 17}, {37, 40}, {90, 50}}
		}
		g := tensor.NewGraph().On(dev)
		r := rand.New(rand.NewPCG(15, 16))
		var list []computed
		for _, shape := range shapes {
			m, n := shape[0], shape[1]
			k := min(m, n)
			a := append(matrix(r, max(m, n))[:m*n], matrix(r, max(m, n))[:m*n]...)
			x := tensor.FromSlice(g, a, 2, m, n)
			name := func(what string) string { return fmt.Sprint(what, " ", m, " x ", n) }
			q, upper := x.QR()
			u, s, v := x.SVD()
			ones := append(identity(k), identity(k)...)
			list = append(list,
				computed{name("QR"), q.MatMul(upper), a, 1e-12},
				computed{name("Q^T Q"), q.Transpose(-1, -2).MatMul(q), ones, 1e-12},
				computed{name("below R"), upper.Tril(-1), make([]float64, 2*k*n), 0},
				computed{name("U s V^T"), u.Mul(s.Unsqueeze(-2)).MatMul(v.Transpose(-1, -2)), a, 1e-12},
				computed{name("U^T U"), u.Transpose(-1, -2).MatMul(u), ones, 1e-12},
				computed{name("V^T V"), v.Transpose(-1, -2).MatMul(v), ones, 1e-12},
				computed{name("not ascending"), s.SliceInts(-1, 0, k-1).Lt(s.SliceInts(-1, 1, k-1)).Any(), []float64{0}, 0},
			)
			if m >= n {
				list = append(list, computed{name("R"), upper, append(triangular(a[:m*n], m, n), triangular(a[m*n:], m, n)...), 1e-10})
			}
		}
		for _, values := range [][]float64{{3}, {-1, 2}, {-2, -2, 0.5}, {-4, -1, 0, 1e-3, 2, 2, 7}} {
			n := len(values)
			a := symmetric(r, values)
			low := slices.Clone(a)
			for i := range n {
				for j := i + 1; j < n; j++ {
					low[i*n+j] = 99 // is not read
				}
			}
			got, vectors := tensor.FromSlice(g, low, n, n).Eigh()
			scaled := vectors.Mul(got.Unsqueeze(-2))
			single, _ := tensor.FromSlice(g, f32s(low), n, n).Eigh()
			list = append(list,
				computed{fmt.Sprint("eigenvalues ", values), got, values, 1e-13},
				computed{fmt.Sprint("V l V^T ", values), scaled.MatMul(vectors.Transpose(-1, -2)), a, 1e-12},
				computed{fmt.Sprint("in f32 ", values), single, values, 3e-6},
			)
			if dev.Name() != "cpu" {
				break
			}
		}
		compareAll(t, list)
	})
}

// A singular value that is small by nature is right to as many digits as the large one.
func TestSmallSingularValues(t *testing.T) {
	g := tensor.NewGraph()
	_, s, _ := tensor.FromSlice(g, []float32{1, 1, 1e-6, -1e-6}, 2, 2).SVD()
	_, none, v := g.Zeros(ir.F32, 3, 2).SVD()
	compareAll(t, []computed{
		{"s", s.Div(tensor.FromSlice(g, []float32{math.Sqrt2, math.Sqrt2 * 1e-6}, 2)), []float64{1, 1}, 4e-7},
		{"of zeros", none, []float64{0, 0}, 0},
		{"V of zeros", v, identity(2), 0},
	})
	for want, build := range map[string]func(x *tensor.Tensor){
		"QR: f32[600], want floats [.. m n]":        func(x *tensor.Tensor) { x.QR() },
		"SVD: f32[300 301]; want at most 256 rows":  func(x *tensor.Tensor) { x.Graph().Zeros(ir.F32, 300, 301).SVD() },
		"Eigh: f32[300 300]; want at most 256 rows": func(x *tensor.Tensor) { x.Graph().Zeros(ir.F32, 300, 300).Eigh() },
	} {
		g := tensor.NewGraph()
		build(g.Input("x", ir.F32, 600))
		wantError(t, want, g.Err(), want)
	}
}

// Derivatives of what does not depend on signs are differences of values.
func TestDecompositionGradients(t *testing.T) {
	const m, n, h = 4, 3, 1e-5
	r := rand.New(rand.NewPCG(17, 18))
	flip := func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(-1, -2) }
	for name, build := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"q":            func(x *tensor.Tensor) *tensor.Tensor { q, _ := x.QR(); return q },
		"r":            func(x *tensor.Tensor) *tensor.Tensor { _, r := x.QR(); return r },
		"qr of wide":   func(x *tensor.Tensor) *tensor.Tensor { q, r := flip(x).QR(); return q.Square().MatMul(r) },
		"s":            func(x *tensor.Tensor) *tensor.Tensor { _, s, _ := x.SVD(); return s },
		"u and v":      func(x *tensor.Tensor) *tensor.Tensor { u, _, v := x.SVD(); return u.MatMul(flip(v)).Add(u.Square()) },
		"v of wide":    func(x *tensor.Tensor) *tensor.Tensor { _, _, v := flip(x).SVD(); return v.Square() },
		"eigenvalues":  func(x *tensor.Tensor) *tensor.Tensor { l, _ := flip(x).MatMul(x).Eigh(); return l },
		"eigenvectors": func(x *tensor.Tensor) *tensor.Tensor { _, v := x.SliceInts(-2, 0, n).Eigh(); return v.Square() },
	} {
		t.Run(name, func(t *testing.T) {
			a := matrix(r, m)[:m*n]
			var moved []float64 // each element up and down
			for i := range a {
				for _, step := range []float64{h, -h} {
					moved = append(moved, a...)
					moved[len(moved)-len(a)+i] += step
				}
			}
			g := tensor.NewGraph()
			losses := func(x *tensor.Tensor) *tensor.Tensor {
				y := build(x)
				y = y.Reshape(x.Extent(0), -1)
				return y.Mul(g.Linspace(ir.F64, 1, 2, y.Extent(1))).Sum(1)
			}
			x := tensor.FromSlice(g, a, 1, m, n)
			got, values := grad.Gradients(losses(x).Sum(), x)[0], losses(tensor.FromSlice(g, moved, 2*len(a), m, n))
			if err := tensor.Realize(t.Context(), got, values); err != nil {
				t.Fatal(err)
			}
			v := realised[float64](t, values)
			for i, got := range realised[float64](t, got) {
				want := (v[2*i] - v[2*i+1]) / (2 * h)
				if !(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want))) {
					t.Errorf("by element %d: %v, want %v", i, got, want)
				}
			}
		})
	}
}

// The steps of a loop are the same kernels, however many there are: so are those of what is
// made of loops.
func TestLoopsCompileOnce(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		build func(x *tensor.Tensor) *tensor.Tensor
		most  int // kernels for any number of rows
	}{
		"doubling": {func(x *tensor.Tensor) *tensor.Tensor {
			return tensor.Loop(x.Extent(0), func(s []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{s[0].Add(s[0])} }, x)[0]
		}, 2},
		"qr":       {func(x *tensor.Tensor) *tensor.Tensor { q, _ := x.QR(); return q }, 34},
		"eigh":     {func(x *tensor.Tensor) *tensor.Tensor { l, _ := x.Eigh(); return l }, 8},
		"inverse":  {(*tensor.Tensor).Inverse, 24},
		"cholesky": {(*tensor.Tensor).Cholesky, 22},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", row.build(g.Input("x", ir.F32, 48, 48)))
			compiled, err := g.Compile(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(compiled.Kernels); n > row.most {
				t.Errorf("%d kernels for %d launches, want at most %d", n, len(compiled.Launches), row.most)
			}
			t.Logf("%d kernels", len(compiled.Kernels))
		})
	}
}
