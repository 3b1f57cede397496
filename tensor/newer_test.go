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
	"tgc/runtime/devices"
	"tgc/tensor"
)

// computed is a tensor with the elements that an independent computation in float64 has.
type computed struct {
	name string
	got  *tensor.Tensor
	want []float64
	// rounding is how far an element may be off, of the larger of 1 and itself.
	rounding float64
}

// everyDevice calls f with each device that computes in another way.
func everyDevice(t *testing.T, f func(t *testing.T, dev runtime.Device)) {
	for _, name := range []string{"interp", "cpu", "cuda:emu"} {
		t.Run(name, func(t *testing.T) {
			dev, _, err := devices.Open(t.Context(), name, devices.Options{Threads: 2})
			if err != nil && name == "cpu" { // which needs libLLVM, and the others nothing
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			f(t, dev)
		})
	}
}

// compareAll realises tensors together and compares them.
func compareAll(t *testing.T, list []computed) {
	t.Helper()
	all := make([]*tensor.Tensor, len(list))
	for i, c := range list {
		all[i] = c.got.Cast(ir.F64)
	}
	if err := tensor.Realize(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		got, err := tensor.Data[float64](all[i])
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: %d elements, %v, want %d", c.name, len(got), err, len(c.want))
			continue
		}
		for k, want := range c.want {
			same := got[k] == want || got[k] != got[k] && want != want
			if !same && !(math.Abs(got[k]-want) <= c.rounding*max(1, math.Abs(want))) {
				t.Errorf("%s: element %d is %v, want %v (all: %v)", c.name, k, got[k], want, got)
				break
			}
		}
	}
}

// sample are n f32 of -2 to 2, as float64.
func sample(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(float32(4*r.Float64() - 2))
	}
	return values
}

func f32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

const unit = 4e-7 // a few roundings of f32

func TestNewerOps(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		g := tensor.NewGraph().On(dev)
		var list []computed
		for _, group := range [][]computed{created(g), elementwise(g), searched(g), multiplied(g), pairLosses(g), pooledAdaptively(g)} {
			list = append(list, group...)
		}
		compareAll(t, list)
	})
}

func created(g *tensor.Graph) []computed {
	linspace := make([]float64, 7)
	for i := range linspace {
		linspace[i] = -1 + 3*float64(i)/6
	}
	grids := tensor.Meshgrid(g.Arange(ir.I32, 0, 2, 1), g.Arange(ir.I32, 5, 2, -1))
	return []computed{
		{"zeros", g.Zeros(ir.F32, 2, 2), []float64{0, 0, 0, 0}, 0},
		{"ones", g.Ones(ir.I64, 3), []float64{1, 1, 1}, 0},
		{"full", g.Full(ir.F32, 2.5), []float64{2.5}, 0},
		{"full empty", g.Full(ir.F32, 2.5, 2, 0), nil, 0},
		{"eye", g.Eye(ir.F32, 2), []float64{1, 0, 0, 1}, 0},
		{"arange", g.Arange(ir.F32, 0.1, 0.45, 0.1), []float64{0.1, 0.2, 0.3, 0.4}, 6e-8},
		{"arange down", g.Arange(ir.I32, 5, -1, -2), []float64{5, 3, 1}, 0},
		{"arange none", g.Arange(ir.I32, 5, 5, 1), nil, 0},
		{"linspace", g.Linspace(ir.F32, -1, 2, 7), linspace, 6e-8},
		{"linspace ends", g.Linspace(ir.F64, 0.1, 0.7, 4).SliceInts(0, 3, 1), []float64{0.7}, 0},
		{"linspace of one", g.Linspace(ir.F32, 3, 9, 1), []float64{3}, 0},
		{"meshgrid rows", grids[0], []float64{0, 0, 0, 1, 1, 1}, 0},
		{"meshgrid columns", grids[1], []float64{5, 4, 3, 5, 4, 3}, 0},
	}
}

func elementwise(g *tensor.Graph) []computed {
	inf, nan := math.Inf(1), math.NaN()
	x := tensor.FromSlice(g, f32s([]float64{0, 100, -inf, inf, -inf, nan, 1}), 7)
	y := tensor.FromSlice(g, f32s([]float64{0, 1, -inf, inf, 2, 1, 1 + 1e-6}), 7)
	nine := 9.0
	return []computed{
		{"logaddexp", x.LogAddExp(y), []float64{math.Ln2, 100, -inf, inf, 2, nan, 1 + 5e-7 + math.Ln2}, unit},
		{"nan_to_num", x.NanToNum(), []float64{0, 100, -math.MaxFloat32, math.MaxFloat32, -math.MaxFloat32, 0, 1}, 0},
		{"nan_to_num of f16", x.Cast(ir.F16).NanToNum(tensor.NanToNumOptions{NaN: &nine}), []float64{0, 100, -65504, 65504, -65504, 9, 1}, 0},
		{"isclose", x.IsClose(y), []float64{1, 0, 1, 1, 0, 0, 1}, 0},
		{"isclose with NaN", x.IsClose(x, tensor.CloseOptions{EqualNaN: true}), []float64{1, 1, 1, 1, 1, 1, 1}, 0},
		{"allclose", x.AllClose(x), []float64{0}, 0},
		{"erfinv", tensor.FromSlice(g, []float32{-1, 1, 0, 1.5, float32(nan)}, 5).Erfinv(), []float64{-inf, inf, 0, nan, nan}, 0},
		{"lgamma", tensor.FromSlice(g, []float32{0, -1, -7, 1, 2, float32(inf), float32(-inf)}, 7).Lgamma(), []float64{inf, inf, inf, 0, 0, inf, inf}, 1e-14},
		{"digamma", tensor.FromSlice(g, []float32{0, -1, 1, float32(inf)}, 4).Digamma(), []float64{-inf, nan, -0.5772156649015329, inf}, unit},
	}
}

func searched(g *tensor.Graph) []computed {
	inf, nan := math.Inf(1), math.NaN()
	sorted := tensor.FromSlice(g, f32s([]float64{-1, 0, 0, 2, nan}), 5)
	values := tensor.FromSlice(g, f32s([]float64{-2, -1, 0, 1, 2, 3, nan}), 7)
	rows := tensor.FromSlice(g, []int32{1, 3, 5, 2, 4, 6}, 2, 3)
	m := tensor.FromSlice(g, f32s([]float64{0, 3, 0, -1, nan, 0}), 2, 3)
	at, count := m.Nonzero(4)
	picked, some := m.MaskedSelect(m.Gt(g.Scalar(ir.F32, -2)), 3)
	u := tensor.FromSlice(g, f32s([]float64{2, nan, -0., 2, 0, nan, -3}), 7).Unique(5)
	q := tensor.FromSlice(g, f32s([]float64{4, 1, 3, 2, 9, inf, inf, 0}), 2, 4)
	return []computed{
		{"search left", sorted.SearchSorted(values, false), []float64{0, 0, 1, 3, 3, 4, 4}, 0},
		{"search right", sorted.SearchSorted(values, true), []float64{0, 1, 3, 3, 4, 4, 5}, 0},
		{"search rows", rows.SearchSorted(tensor.FromSlice(g, []int32{3, 9, 3, 0}, 2, 2), false), []float64{1, 3, 1, 0}, 0},
		{"search in nothing", g.Zeros(ir.F32, 0).SearchSorted(values.SliceInts(0, 0, 1), false), []float64{0}, 0},
		{"bincount", tensor.FromSlice(g, []int32{3, 1, 3, -1, 9, 0}, 2, 3).Bincount(5), []float64{1, 1, 0, 2, 0}, 0},
		{"nonzero", at, []float64{0, 1, 1, 0, 1, 1, -1, -1}, 0},
		{"nonzero count", count, []float64{3}, 0},
		{"masked select", picked, []float64{0, 3, 0}, 0},
		{"masked select count", some, []float64{5}, 0},
		{"unique", u.Values, []float64{-3, 0, 2, nan, 0}, 0},
		{"unique inverse", u.Inverse, []float64{2, 3, 1, 2, 1, 3, 0}, 0},
		{"unique counts", u.Counts, []float64{1, 2, 2, 2, 0}, 0},
		{"unique count", u.Count, []float64{4}, 0},
		{"median", q.Median(1), []float64{2.5, inf}, 0},
		{"median of NaN", m.Median(1), []float64{0, nan}, 0},
		{"quantile", q.Quantile(0.1, 0), []float64{4.5, inf, inf, 0.2}, unit},
		{"quantile ends", q.Quantile(1, 1), []float64{4, inf}, 0},
	}
}

func multiplied(g *tensor.Graph) []computed {
	a, b := sample(1, 24), sample(2, 24)
	x, y := tensor.FromSlice(g, f32s(a), 2, 3, 4), tensor.FromSlice(g, f32s(b), 4, 3, 2)
	dots := make([]float64, 4) // [2 2] over (3, 4) with (1, 0)
	for i := range 2 {
		for j := range 2 {
			for k := range 3 {
				for l := range 4 {
					dots[2*i+j] += a[12*i+4*k+l] * b[6*l+2*k+j]
				}
			}
		}
	}
	kron := make([]float64, 0, 24) // [2 2] with [2 3]
	for i := range 4 {
		for j := range 6 {
			kron = append(kron, a[2*(i/2)+j/3]*b[3*(i%2)+j%3])
		}
	}
	cross := []float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0], a[4]*b[2] - a[5]*b[1], a[5]*b[0] - a[3]*b[2], a[3]*b[1] - a[4]*b[0]}
	distances := func(p float64) []float64 { // rows of 4: 3 and 2 of them
		var out []float64
		for i := range 3 {
			for j := range 2 {
				sum, most := 0.0, 0.0
				for k := range 4 {
					d := math.Abs(a[4*i+k] - b[4*j+k])
					sum, most = sum+math.Pow(d, p), max(most, d)
				}
				if math.IsInf(p, 1) {
					out = append(out, most)
				} else {
					out = append(out, math.Pow(sum, 1/p))
				}
			}
		}
		return out
	}
	left, right := tensor.FromSlice(g, f32s(a[:12]), 3, 4), tensor.FromSlice(g, f32s(b[:8]), 2, 4)
	list := []computed{
		{"tensordot", x.Tensordot(y, []int{1, -1}, []int{1, 0}), dots, 4 * unit},
		{"kron", tensor.FromSlice(g, f32s(a[:4]), 2, 2).Kron(tensor.FromSlice(g, f32s(b[:6]), 2, 3)), kron, unit},
		{"cross", tensor.FromSlice(g, f32s(a[:6]), 2, 3).Cross(tensor.FromSlice(g, f32s(b[:3]), 3), -1), cross, unit},
	}
	for _, p := range []float64{1, 2, 3, math.Inf(1)} {
		list = append(list, computed{fmt.Sprint("cdist ", p), left.CDist(right, p), distances(p), 4 * unit})
	}
	return list
}

func pairLosses(g *tensor.Graph) []computed {
	a, b, c := sample(3, 8), sample(4, 8), sample(5, 8)
	dot := func(x, y []float64) (sum float64) {
		for i := range x {
			sum += x[i] * y[i]
		}
		return sum
	}
	apart := func(x, y []float64) float64 {
		d := make([]float64, len(x))
		for i := range x {
			d[i] = x[i] - y[i]
		}
		return math.Sqrt(dot(d, d))
	}
	var cos, loss, triplet []float64
	for i := range 2 {
		x, y, z := a[4*i:4*i+4], b[4*i:4*i+4], c[4*i:4*i+4]
		cosine := dot(x, y) / math.Sqrt(dot(x, x)*dot(y, y))
		cos = append(cos, cosine)
		loss = append(loss, []float64{1 - cosine, max(0, cosine-0.1)}[i])
		triplet = append(triplet, max(0, apart(x, y)-apart(x, z)+1.5))
	}
	p := []float64{0.25, 0, 0.5, 0.25}
	kl := 0.0
	for i, v := range p {
		if v > 0 {
			kl += v * (math.Log(v) - a[i])
		}
	}
	x, y, z := tensor.FromSlice(g, f32s(a), 2, 4), tensor.FromSlice(g, f32s(b), 2, 4), tensor.FromSlice(g, f32s(c), 2, 4)
	target := tensor.FromSlice(g, []int32{1, -1}, 2)
	return []computed{
		{"cosine", x.CosineSimilarity(y, -1, 1e-8), cos, unit},
		{"cosine loss", x.CosineLoss(y, target, 0.1, tensor.ReduceNone), loss, unit},
		{"triplet", x.TripletLoss(y, z, 1.5, tensor.ReduceNone), triplet, 2 * unit},
		{"kl", x.SliceInts(0, 0, 1).KLLoss(tensor.FromSlice(g, f32s(p), 1, 4), tensor.ReduceSum), []float64{kl}, unit},
	}
}

func pooledAdaptively(g *tensor.Graph) []computed {
	a := sample(6, 35)
	var mean, most []float64
	for i := range 3 { // of 5 rows, 4 of 7 columns
		for j := range 4 {
			sum, count, largest := 0.0, 0.0, math.Inf(-1)
			for r := i * 5 / 3; r < ((i+1)*5+2)/3; r++ {
				for c := j * 7 / 4; c < ((j+1)*7+3)/4; c++ {
					sum, count, largest = sum+a[7*r+c], count+1, max(largest, a[7*r+c])
				}
			}
			mean, most = append(mean, sum/count), append(most, largest)
		}
	}
	x := tensor.FromSlice(g, f32s(a), 1, 5, 7)
	return []computed{{"adaptive mean", x.AdaptiveAvgPool(3, 4), mean, unit}, {"adaptive max", x.AdaptiveMaxPool(3, 4), most, 0}}
}

// Derivatives of the newer ops are differences of their values, in f64.
func TestNewerGradients(t *testing.T) {
	values := []float64{0.31, -0.72, 0.55, 0.12, -0.41, 0.83}
	other := []float64{0.9, 0.2, -0.3, 0.44, 0.61, -0.17}
	for name, build := range map[string]func(x, y *tensor.Tensor) *tensor.Tensor{
		"logaddexp":   func(x, y *tensor.Tensor) *tensor.Tensor { return x.LogAddExp(y) },
		"erfinv":      func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Erfinv() },
		"lgamma":      func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Lgamma() },
		"digamma":     func(x, _ *tensor.Tensor) *tensor.Tensor { return x.AddScalar(1).Digamma() },
		"nan_to_num":  func(x, _ *tensor.Tensor) *tensor.Tensor { return x.NanToNum() },
		"tensordot":   func(x, y *tensor.Tensor) *tensor.Tensor { return x.Tensordot(y, []int{0}, []int{0}) },
		"kron":        func(x, y *tensor.Tensor) *tensor.Tensor { return x.Kron(y) },
		"cross":       func(x, y *tensor.Tensor) *tensor.Tensor { return x.Cross(y, 1) },
		"cdist":       func(x, y *tensor.Tensor) *tensor.Tensor { return x.CDist(y, 2) },
		"cdist 3":     func(x, y *tensor.Tensor) *tensor.Tensor { return x.CDist(y, 3) },
		"quantile":    func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Quantile(0.3, 1) },
		"cosine loss": func(x, y *tensor.Tensor) *tensor.Tensor { return x.CosineLoss(y, x.Graph().Full(ir.I32, 1, 2), 0) },
		"triplet":     func(x, y *tensor.Tensor) *tensor.Tensor { return x.TripletLoss(y, y.Neg(), 3) },
		"kl":          func(x, y *tensor.Tensor) *tensor.Tensor { return x.KLLoss(y.Abs()) },
		"mean pool":   func(x, _ *tensor.Tensor) *tensor.Tensor { return x.AdaptiveAvgPool(2) },
		"max pool":    func(x, _ *tensor.Tensor) *tensor.Tensor { return x.AdaptiveMaxPool(2) },
		"masked select": func(x, y *tensor.Tensor) *tensor.Tensor {
			v, _ := x.MaskedSelect(y.Gt(y.Graph().Scalar(ir.F64, 0)), 3)
			return v
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			y := tensor.FromSlice(g, other, 2, 3)
			f := func(x *tensor.Tensor) *tensor.Tensor { // weighted, so that elements differ
				out := build(x, y)
				n := out.Reshape(-1).Extent(0)
				return out.Reshape(n).Mul(g.Linspace(ir.F64, 1, 2, n)).Sum()
			}
			x := tensor.FromSlice(g, values, 2, 3)
			all := []*tensor.Tensor{grad.Gradients(f(x), x)[0]}
			const h = 1e-6
			for i := range values {
				for _, step := range []float64{h, -h} {
					moved := slices.Clone(values)
					moved[i] += step
					all = append(all, f(tensor.FromSlice(g, moved, 2, 3)))
				}
			}
			if err := tensor.Realize(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
			dx := realised[float64](t, all[0])
			for i := range values {
				want := (realised[float64](t, all[1+2*i])[0] - realised[float64](t, all[2+2*i])[0]) / (2 * h)
				if !(math.Abs(dx[i]-want) <= 1e-7*max(1, math.Abs(want))) {
					t.Errorf("by element %d: %v, want %v", i, dx[i], want)
				}
			}
		})
	}
	// At a distance of 0 the derivative is 0.
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{1, 2}, 1, 2)
	if d := realised[float32](t, grad.Gradients(x.CDist(tensor.FromSlice(g, []float32{1, 2}, 1, 2), 2).Sum(), x)[0]); !slices.Equal(d, []float32{0, 0}) {
		t.Errorf("the derivative of a distance of 0 is %v", d)
	}
}
