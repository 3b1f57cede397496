package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/tensor"
)

// realFunction is a function of one number with its reference in float64 and how
// far a result may be off, relative and absolute, in units of the dtype's
// rounding (2^-24 for f32).
type realFunction struct {
	name     string
	build    func(x *tensor.Tensor) *tensor.Tensor
	want     func(x float64) float64
	lo, hi   float64 // range of arguments
	rel, abs float64
}

var realFunctions = []realFunction{
	{"exp", (*tensor.Tensor).Exp, math.Exp, -80, 80, 120, 0},
	{"expm1", (*tensor.Tensor).Expm1, math.Expm1, -20, 20, 30, 0},
	{"log", (*tensor.Tensor).Log, math.Log, 1e-30, 1e30, 8, 0},
	{"log10", (*tensor.Tensor).Log10, math.Log10, 1e-30, 1e30, 8, 0},
	{"log1p", (*tensor.Tensor).Log1p, math.Log1p, -0.999, 1e6, 8, 0},
	{"sin", (*tensor.Tensor).Sin, math.Sin, -1e4, 1e4, 0, 4},
	{"cos", (*tensor.Tensor).Cos, math.Cos, -1e4, 1e4, 0, 4},
	{"tan", (*tensor.Tensor).Tan, math.Tan, -1.5, 1.5, 40, 2},
	{"asin", (*tensor.Tensor).Asin, func(x float64) float64 { return math.Atan2(x, leg(x)) }, -1, 1, 8, 0},
	{"acos", (*tensor.Tensor).Acos, func(x float64) float64 { return math.Atan2(leg(x), x) }, -1, 1, 8, 0},
	{"atan", (*tensor.Tensor).Atan, math.Atan, -100, 100, 8, 0},
	{"sinh", (*tensor.Tensor).Sinh, math.Sinh, -80, 80, 120, 0},
	{"cosh", (*tensor.Tensor).Cosh, math.Cosh, -80, 80, 120, 0},
	{"tanh", (*tensor.Tensor).Tanh, math.Tanh, -15, 15, 10, 0},
	{"asinh", (*tensor.Tensor).Asinh, math.Asinh, -1e20, 1e20, 16, 0},
	{"acosh", (*tensor.Tensor).Acosh, math.Acosh, 1, 1e30, 16, 0},
	{"atanh", (*tensor.Tensor).Atanh, math.Atanh, -0.999, 0.999, 16, 0},
	{"erf", (*tensor.Tensor).Erf, math.Erf, -6, 6, 8, 0},
	{"erfinv", (*tensor.Tensor).Erfinv, math.Erfinv, -1, 1, 16, 0},
	{"lgamma", (*tensor.Tensor).Lgamma, func(x float64) float64 { v, _ := math.Lgamma(x); return v }, -30.4, 1e6, 32, 64},
	{"digamma", (*tensor.Tensor).Digamma, digamma, -30.4, 1e6, 16, 64},
	{"sigmoid", (*tensor.Tensor).Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -80, 80, 120, 0},
	{"softplus", func(x *tensor.Tensor) *tensor.Tensor { return x.Softplus(1) }, softplus, -80, 80, 120, 0},
	{"logsigmoid", (*tensor.Tensor).LogSigmoid, func(x float64) float64 { return -softplus(-x) }, -80, 80, 120, 0},
	{"gelu", (*tensor.Tensor).Gelu, func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }, -8, 8, 8, 16},
	{"mish", (*tensor.Tensor).Mish, func(x float64) float64 { return x * math.Tanh(softplus(x)) }, -60, 60, 120, 0},
}

// leg is sqrt(1-x^2): package math's own arc functions are not precise near 1.
func leg(x float64) float64 { return math.Sqrt((1 - x) * (1 + x)) }

// digamma is by the recurrence up to 100 and three terms of the asymptotic series.
func digamma(x float64) float64 {
	if x <= 0 {
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*(x-math.Round(x)))
	}
	sum := 0.0
	for ; x < 100; x++ {
		sum += 1 / x
	}
	return math.Log(x) - 1/(2*x) - 1/(12*x*x) + 1/(120*math.Pow(x, 4)) - 1/(252*math.Pow(x, 6)) - sum
}

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// arguments are the ends, points close to 0 and to the joints of formulas, and
// random ones, evenly spread over the range and over exponents.
func (f *realFunction) arguments(r *rand.Rand) []float64 {
	list := []float64{f.lo, f.hi}
	for _, joint := range []float64{0, 0.5, 1, 2, 6, 20} {
		for _, step := range []float64{0, 1e-6, -1e-6, 1e-3, -1e-3} {
			list = append(list, joint+step, -joint+step)
		}
	}
	for range 200 {
		list = append(list, f.lo+(f.hi-f.lo)*r.Float64(), math.Copysign(math.Exp(r.NormFloat64()*4), r.NormFloat64()))
	}
	inside := list[:0]
	for _, x := range list {
		if x >= f.lo && x <= f.hi {
			inside = append(inside, x)
		}
	}
	return inside
}

// Functions stay within a few roundings of their dtype over their whole range,
// and what is computed for f16 and bf16 is rounded but once.
func TestFunctionAccuracy(t *testing.T) {
	dev := openDevice(t)
	g := tensor.NewGraph().On(dev)
	dtypes := []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16}
	var all []*tensor.Tensor
	for _, f := range realFunctions {
		values := f.arguments(rand.New(rand.NewPCG(1, 2)))
		x := tensor.FromSlice(g, values, len(values))
		for _, dtype := range dtypes {
			all = append(all, f.build(x.Cast(dtype)).Cast(ir.F64))
		}
	}
	if err := tensor.Realize(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	for i, f := range realFunctions {
		for j, dtype := range dtypes {
			got, err := tensor.Data[float64](all[i*len(dtypes)+j])
			if err != nil {
				t.Fatal(err)
			}
			f.check(t, dtype, got)
		}
	}
}

// check compares with the reference at the arguments as the dtype rounds them.
func (f *realFunction) check(t *testing.T, dtype ir.DType, got []float64) {
	unit, rel, abs := math.Ldexp(1, -1-dtype.MantissaBits()), f.rel, f.abs
	if dtype.Size() < 4 {
		rel, abs = 1.01, f.abs*0x1p-10
	}
	worst := 0.0
	for i, x := range f.arguments(rand.New(rand.NewPCG(1, 2))) {
		x = ir.RoundFloat(dtype, x)
		want := f.want(x)
		tolerance := unit*(rel*math.Abs(want)+abs) + leastNormal(dtype)
		if math.IsInf(ir.RoundFloat(dtype, want), 0) || want != want {
			continue
		}
		if off := math.Abs(got[i] - want); !(off <= tolerance) {
			if worst < off/tolerance {
				worst = off / tolerance
				t.Errorf("%s of %s at %v: got %v, want %v: off by %.3g units", f.name, dtype, x, got[i], want, off/unit/max(math.Abs(want), 1e-300))
			}
		}
	}
}

// leastNormal bounds the error below the normal range.
func leastNormal(dtype ir.DType) float64 {
	return map[ir.DType]float64{ir.F16: 0x1p-25, ir.BF16: 0x1p-126, ir.F32: 0x1p-126, ir.F64: 0x1p-1022}[dtype]
}
