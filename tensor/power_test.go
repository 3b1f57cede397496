package tensor_test

import (
	"math"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/tensor"
)

// Powers by constants are C's pow, rounded once; derivatives are those by the book, that of a root 0 at 0.
func TestPowersByConstants(t *testing.T) {
	for _, p := range []float64{0, 0.5, 1, 2, 3, 4, 5, 7, 8, 9, -1, 2.5} {
		g := onDevice(t)
		x := tensor.FromSlice(g, corners, len(corners))
		y := x.Pow(g.Scalar(ir.F32, p))
		dx := grad.Of([]*tensor.Tensor{y}, nil, []*tensor.Tensor{x})[0]
		if p == 0 {
			dx = x.MulScalar(0)
		}
		if err := tensor.Realize(t.Context(), y, dx); err != nil {
			t.Fatal(err)
		}
		got, _ := tensor.Data[float32](y)
		slope, _ := tensor.Data[float32](dx)
		for i, v := range corners {
			want := float32(math.Pow(float64(v), p))
			if math.Float32bits(got[i]) != math.Float32bits(want) && (got[i] == got[i] || want == want) {
				if !(math.Abs(float64(got[i]-want)) <= 0x1p-23*math.Abs(float64(want))) || p == math.Trunc(p) && p > 0 && p < 9 {
					t.Errorf("%v to the power of %v: %v, want %v", v, p, got[i], want)
				}
			}
			if size := math.Abs(float64(v)); size > 1e-3 && size < 1e3 && v > 0 || v == 0 && p >= 1 {
				if want := p * math.Pow(float64(v), p-1); !(math.Abs(float64(slope[i])-want) <= 1e-5*math.Abs(want)) && p != 0 {
					t.Errorf("derivative of %v to the power of %v: %v, want %v", v, p, slope[i], want)
				}
			}
			if v == 0 && p == 0.5 && slope[i] != 0 {
				t.Errorf("derivative of the root of 0: %v", slope[i])
			}
		}
	}
}
