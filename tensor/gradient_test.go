package tensor_test

import (
	"math"
	"slices"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/tensor"
)

// Far from 0 and at the joints of their formulas functions keep their
// derivatives: where an exponential overflows in a part of the formula that does
// not matter there, no NaN comes back.
func TestDerivativesFarOut(t *testing.T) {
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	plain := func(method func(*tensor.Tensor) *tensor.Tensor) func(*tensor.Tensor) *tensor.Tensor { return method }
	step := func(x float64) float64 {
		if x > 0 {
			return 1
		}
		return 0
	}
	for _, c := range []struct {
		name  string
		build func(x *tensor.Tensor) *tensor.Tensor
		want  func(x float64) float64
	}{
		{"sigmoid", plain((*tensor.Tensor).Sigmoid), func(x float64) float64 { return logistic(x) * logistic(-x) }},
		{"silu", plain((*tensor.Tensor).Silu), func(x float64) float64 { return logistic(x) * (1 + x*logistic(-x)) }},
		{"gelu", plain((*tensor.Tensor).Gelu), func(x float64) float64 {
			return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		}},
		{"gelu tanh", plain((*tensor.Tensor).GeluTanh), nil},
		{"quick gelu", plain((*tensor.Tensor).QuickGelu), nil},
		{"mish", plain((*tensor.Tensor).Mish), nil},
		{"tanh", plain((*tensor.Tensor).Tanh), func(x float64) float64 { return 1 / (math.Cosh(x) * math.Cosh(x)) }},
		{"erf", plain((*tensor.Tensor).Erf), func(x float64) float64 { return 2 / math.Sqrt(math.Pi) * math.Exp(-x*x) }},
		{"atan", plain((*tensor.Tensor).Atan), func(x float64) float64 { return 1 / (1 + x*x) }},
		{"asinh", plain((*tensor.Tensor).Asinh), func(x float64) float64 { return 1 / math.Sqrt(1+x*x) }},
		{"relu", plain((*tensor.Tensor).Relu), step},
		{"softplus", func(x *tensor.Tensor) *tensor.Tensor { return x.Softplus(1) }, logistic},
		{"log sigmoid", plain((*tensor.Tensor).LogSigmoid), func(x float64) float64 { return logistic(-x) }},
		{"elu", func(x *tensor.Tensor) *tensor.Tensor { return x.Elu(1) }, func(x float64) float64 { return math.Exp(min(x, 0)) }},
		{"log sum exp", func(x *tensor.Tensor) *tensor.Tensor { return x.LogSumExp(0) }, nil},
		{"log softmax", func(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(0) }, nil},
		{"x to the 1", func(x *tensor.Tensor) *tensor.Tensor { return x.Pow(x.Graph().Scalar(ir.F32, 1)) }, func(float64) float64 { return 1 }},
		{"x to the 2", func(x *tensor.Tensor) *tensor.Tensor { return x.Pow(x.Graph().Scalar(ir.F32, 2)) }, func(x float64) float64 { return 2 * x }},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := []float32{0, 0.5, -0.5, 1, -1, 3, -3, 20, -20, 89, -89, 200, -200, 1e4, -1e4}
			g := tensor.NewGraph()
			x := tensor.FromSlice(g, values, len(values))
			dx := grad.Of([]*tensor.Tensor{c.build(x)}, nil, []*tensor.Tensor{x})[0]
			if err := dx.Realize(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := tensor.Data[float32](dx)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				d := float64(got[i])
				if math.IsNaN(d) || math.IsInf(d, 0) {
					t.Errorf("at %v: %v", v, d)
				}
				if c.want == nil {
					continue
				}
				if want := c.want(float64(v)); !(math.Abs(d-want) <= 2e-6*max(1, math.Abs(want))) {
					t.Errorf("at %v: got %v, want %v", v, d, want)
				}
			}
		})
	}
}

// At the joints of functions of pieces the derivative is PyTorch's.
func TestDerivativesAtJoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(x *tensor.Tensor) *tensor.Tensor
		want  []float32 // at -1, 0, 6, 7
	}{
		{"relu", (*tensor.Tensor).Relu, []float32{0, 0, 1, 1}},
		{"relu6", (*tensor.Tensor).Relu6, []float32{0, 0, 0, 0}},
		{"clamp", func(x *tensor.Tensor) *tensor.Tensor { return x.Clamp(0, 6) }, []float32{0, 1, 1, 0}},
		{"abs", (*tensor.Tensor).Abs, []float32{-1, 0, 1, 1}},
		{"leaky relu", func(x *tensor.Tensor) *tensor.Tensor { return x.LeakyRelu(0.5) }, []float32{0.5, 0.5, 1, 1}},
		{"maximum", func(x *tensor.Tensor) *tensor.Tensor { return x.Maximum(x.Graph().Scalar(ir.F32, 0)) }, []float32{0, 0.5, 1, 1}},
		{"elu", func(x *tensor.Tensor) *tensor.Tensor { return x.Elu(2) }, []float32{float32(2 / math.E), 2, 1, 1}},
	} {
		g := tensor.NewGraph()
		x := tensor.FromSlice(g, []float32{-1, 0, 6, 7}, 4)
		dx := grad.Of([]*tensor.Tensor{c.build(x)}, nil, []*tensor.Tensor{x})[0]
		if got := realised[float32](t, dx); !slices.EqualFunc(got, c.want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
