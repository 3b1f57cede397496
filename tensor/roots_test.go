package tensor_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"tgc/tensor"
)

// Reciprocals and roots of f32, and reciprocals of roots, are the rounded ones on every device: on a GPU for all mantissas where
// operands are subnormal, where residuals would be, in the middle and where reciprocals are subnormal; elsewhere for some.
func TestRoots(t *testing.T) {
	dev := openDevice(t)
	defer dev.Close()
	step := uint32(40961)
	if name := os.Getenv("TGC_DEVICE"); strings.HasPrefix(name, "cuda") && !strings.Contains(name, "emu") {
		step = 1
	}
	for _, exponent := range []uint32{0, 26, 127, 252, 254} { // and the next
		x := make([]float32, 0, 1<<24/step+1)
		for m := uint32(0); m < 1<<24; m += step {
			x = append(x, math.Float32frombits(exponent<<23+m))
		}
		in := tensor.FromSlice(tensor.NewGraph().On(dev), x, len(x))
		inverse, root, reciprocal := in.Recip(), in.Sqrt(), in.Rsqrt()
		if err := tensor.Realize(t.Context(), inverse, root, reciprocal); err != nil {
			t.Fatal(err)
		}
		inverses, _ := tensor.Data[float32](inverse)
		roots, _ := tensor.Data[float32](root)
		reciprocals, _ := tensor.Data[float32](reciprocal)
		for i, v := range x {
			want := float32(math.Sqrt(float64(v)))
			same(t, "recip", v, inverses[i], 1/v)
			same(t, "sqrt", v, roots[i], want)
			same(t, "rsqrt", v, reciprocals[i], 1/want)
		}
	}
}

// same compares bits; NaN equals NaN.
func same(t *testing.T, what string, x, got, want float32) {
	if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
		t.Fatalf("%s of %x is %x, want %x", what, x, got, want)
	}
}
