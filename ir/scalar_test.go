package ir

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestEvalScalarEdges(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	ints := func(v ...int64) (s []Scalar) {
		for _, x := range v {
			s = append(s, IntScalar(x))
		}
		return s
	}
	floats := func(v ...float64) (s []Scalar) {
		for _, x := range v {
			s = append(s, FloatScalar(x))
		}
		return s
	}
	for _, c := range []struct {
		op         Op
		dtype, src DType
		args       []Scalar
		want       Scalar
	}{
		{OpAdd, I8, I8, ints(127, 1), IntScalar(-128)},
		{OpAdd, Bool, Bool, ints(1, 1), IntScalar(1)},
		{OpMul, U8, U8, ints(16, 17), IntScalar(16)},
		{OpFloorDiv, I32, I32, ints(-7, 2), IntScalar(-4)},
		{OpFloorDiv, I32, I32, ints(7, 0), IntScalar(0)},
		{OpFloorDiv, I32, I32, ints(math.MinInt32, -1), IntScalar(math.MinInt32)},
		{OpFloorDiv, I64, I64, ints(math.MinInt64, -1), IntScalar(math.MinInt64)},
		{OpFloorMod, I32, I32, ints(-7, 2), IntScalar(1)},
		{OpFloorMod, I32, I32, ints(7, -2), IntScalar(-1)},
		{OpFloorMod, I32, I32, ints(7, 0), IntScalar(0)},
		{OpFloorDiv, U64, U64, ints(-1, 2), IntScalar(math.MaxInt64)},
		{OpCmpLt, Bool, U64, ints(1, -1), IntScalar(1)},
		{OpCmpLt, Bool, I64, ints(1, -1), IntScalar(0)},
		{OpCmpLt, Bool, F32, floats(nan, 1), IntScalar(0)},
		{OpCmpEq, Bool, F32, floats(nan, nan), IntScalar(0)},
		{OpMin, F32, F32, floats(nan, -inf), FloatScalar(nan)},
		{OpMax, F32, F32, floats(math.Copysign(0, -1), 0), FloatScalar(0)},
		{OpShl, I32, I32, ints(1, 32), IntScalar(0)},
		{OpShl, I32, I32, ints(1, 31), IntScalar(math.MinInt32)},
		{OpShl, I32, I32, ints(1, -1), IntScalar(0)},
		{OpShr, I8, I8, ints(-128, 9), IntScalar(-1)},
		{OpShr, U8, U8, ints(255, 8), IntScalar(0)},
		{OpShr, U64, U64, ints(-1, 63), IntScalar(1)},
		{OpAbs, I8, I8, ints(-128), IntScalar(-128)},
		{OpAbs, U64, U64, ints(-1), IntScalar(-1)},
		{OpPopc, I8, I8, ints(-1), IntScalar(8)},
		{OpClz, U8, U8, ints(1), IntScalar(7)},
		{OpClz, U32, U32, ints(0), IntScalar(32)},
		{OpNot, U8, U8, ints(1), IntScalar(254)},
		{OpNot, Bool, Bool, ints(1), IntScalar(0)},
		{OpMulHi, I64, I64, ints(-1, 1), IntScalar(-1)},
		{OpMulHi, U64, U64, ints(-1, -1), IntScalar(-2)},
		{OpMulHi, I8, I8, ints(-128, -128), IntScalar(64)},
		{OpCast, I8, F32, floats(300), IntScalar(127)},
		{OpCast, U8, F32, floats(-3), IntScalar(0)},
		{OpCast, I32, F32, floats(nan), IntScalar(0)},
		{OpCast, I64, F64, floats(1e30), IntScalar(math.MaxInt64)},
		{OpCast, U64, F64, floats(1e19), IntScalar(-8446744073709551616)},
		{OpCast, I32, F32, floats(-1.9), IntScalar(-1)},
		{OpCast, I8, I32, ints(200), IntScalar(-56)},
		{OpCast, Bool, F32, floats(nan), IntScalar(1)},
		{OpCast, F32, I64, ints(1<<24 + 1), FloatScalar(1 << 24)},
		{OpCast, F32, U64, ints(-1), FloatScalar(1 << 63 * 2)},
		{OpCast, F16, F32, floats(65520), FloatScalar(inf)},
		{OpCast, F8E4M3, F32, floats(448), FloatScalar(448)},
		{OpCast, F8E4M3, F32, floats(464), FloatScalar(448)},
		{OpCast, F8E4M3, F32, floats(470), FloatScalar(nan)},
		{OpCast, F8E5M2, F32, floats(61439), FloatScalar(57344)},
		{OpCast, F8E5M2, F32, floats(61440), FloatScalar(inf)},
		{OpCast, F8E5M2, F64, floats(-0x1p-17), FloatScalar(math.Copysign(0, -1))},
		{OpCast, F8E5M2, F64, floats(0x1.8p-17), FloatScalar(0x1p-16)},
		{OpBitcast, U32, F32, floats(1), IntScalar(0x3f800000)},
		{OpBitcast, F16, U16, ints(0x3c00), FloatScalar(1)},
		{OpBitcast, I8, U8, ints(255), IntScalar(-1)},
		{OpRound, F32, F32, floats(2.5), FloatScalar(2)},
		{OpSqrt, F32, F32, floats(-1), FloatScalar(nan)},
	} {
		got := EvalScalar(c.op, c.dtype, c.src, c.args)
		if got.I != c.want.I || math.Float64bits(got.F) != math.Float64bits(c.want.F) && !(got.F != got.F && c.want.F != c.want.F) {
			t.Errorf("%s %s of %s %v: got %v, want %v", c.op, c.dtype, c.src, c.args, got, c.want)
		}
	}
}

// Known answers of Threefry-2x32-20 from the Random123 distribution
// (kat_vectors): key 0 0, counter 0 0.
func TestThreefryKnownAnswer(t *testing.T) {
	if got := Threefry(0, 0); got != 0x6b200159 {
		t.Fatalf("Threefry(0, 0) = %#x, want 0x6b200159", got)
	}
}

func TestFloat8RoundTrip(t *testing.T) {
	for _, dtype := range []DType{F8E4M3, F8E5M2} {
		for b := range 256 {
			v := FloatFromBits(dtype, uint64(b))
			if v != v {
				continue
			}
			if got := FloatBits(dtype, v); got != uint64(b) {
				t.Errorf("%s %#x = %v stores as %#x", dtype, b, v, got)
			}
		}
	}
}

// The bytes of F8E5M2 are the upper ones of F16.
func TestFloat8E5M2IsHalfOfF16(t *testing.T) {
	for b := range uint64(256) {
		got, want := FloatFromBits(F8E5M2, b), FloatFromBits(F16, b<<8)
		if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
			t.Errorf("%#x is %v, want %v", b, got, want)
		}
	}
}

// Every number between two of a format goes to the nearer one, to the even one from the middle.
func TestFloat8RoundsToNearest(t *testing.T) {
	for _, dtype := range []DType{F8E4M3, F8E5M2} {
		for b := range uint64(0x7e) {
			low, high := FloatFromBits(dtype, b), FloatFromBits(dtype, b+1)
			if math.IsInf(high, 0) || high != high {
				break
			}
			middle := (low + high) / 2
			even := low
			if b%2 == 1 {
				even = high
			}
			for v, want := range map[float64]float64{middle: even, math.Nextafter(middle, 0): low, math.Nextafter(middle, high): high} {
				if got := RoundFloat(dtype, v); got != want {
					t.Errorf("%s of %v is %v, want %v", dtype, v, got, want)
				}
				if got := RoundFloat(dtype, -v); got != -want {
					t.Errorf("%s of %v is %v, want %v", dtype, -v, got, -want)
				}
			}
		}
	}
}

// The float formats below F64 are rounded once: compare with exact arithmetic.
func TestFloatOpsRoundOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]DType{F32, F16, BF16}).Draw(t, "dtype")
		draw := func(name string) float64 {
			exp := rapid.IntRange(-14, 14).Draw(t, name+"exp")
			mant := rapid.Float64Range(1, 2).Draw(t, name)
			return RoundFloat(dtype, math.Ldexp(mant, exp)) * float64(rapid.SampledFrom([]int{-1, 1}).Draw(t, name+"sign"))
		}
		x, y, z := draw("x"), draw("y"), draw("z")
		exact := func() *big.Float { return new(big.Float).SetPrec(500) }
		product := exact().Mul(exact().SetFloat64(x), exact().SetFloat64(y))
		for _, c := range []struct {
			op   Op
			want *big.Float
		}{
			{OpAdd, exact().Add(exact().SetFloat64(x), exact().SetFloat64(y))},
			{OpMul, product},
			{OpFDiv, exact().Quo(exact().SetFloat64(x), exact().SetFloat64(y))},
			{OpFma, exact().Add(product, exact().SetFloat64(z))},
		} {
			got := EvalScalar(c.op, dtype, dtype, []Scalar{{F: x}, {F: y}, {F: z}}).F
			if math.IsInf(got, 0) {
				continue
			}
			// The nearest: neither neighbour in the format is closer.
			gap := exact().Sub(exact().SetFloat64(got), c.want)
			gap.Abs(gap)
			for _, neighbour := range neighbours(dtype, got) {
				other := exact().Sub(exact().SetFloat64(neighbour), c.want)
				if other.Abs(other).Cmp(gap) < 0 {
					t.Fatalf("%s %s(%v, %v, %v) = %v, but %v is closer", c.op, dtype, x, y, z, got, neighbour)
				}
			}
		}
	})
}

func neighbours(dtype DType, v float64) []float64 {
	word := FloatBits(dtype, v)
	var out []float64
	for _, w := range []uint64{word - 1, word + 1} {
		if n := FloatFromBits(dtype, w); n == n && !math.IsInf(n, 0) && math.Signbit(n) == math.Signbit(v) {
			out = append(out, n)
		}
	}
	return out
}

func TestFloatBitsRoundTrip(t *testing.T) {
	for _, dtype := range []DType{F16, BF16} {
		for w := range uint64(1 << 16) {
			v := FloatFromBits(dtype, w)
			if v != v {
				continue
			}
			if got := FloatBits(dtype, v); got != w || RoundFloat(dtype, v) != v {
				t.Fatalf("%s bits %#x = %v: stored %#x", dtype, w, v, got)
			}
		}
	}
}

// TestLog2NearOne wants log2(1+r) good to its last bits, which taking the power
// of two out of 1+r would lose.
func TestLog2NearOne(t *testing.T) {
	for _, r := range []float64{0x1p-52, 0x1p-40, 1e-6, 0.0026, 0.01, 0.3, 0.49, -0x1p-53, -1e-9, -0.003, -0.24} {
		x := 1 + r
		got := EvalScalar(OpLog2, F64, F64, []Scalar{{F: x}}).F
		want := math.Log1p(x-1) / math.Ln2
		if math.Abs(got-want) > 4*0x1p-53*math.Abs(want) {
			t.Errorf("log2(1%+g) = %g, want %g", r, got, want)
		}
	}
}
