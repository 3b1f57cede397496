package gpu

import (
	"math"
	"testing"
)

// fma32 rounds once: the product is exact in f64, and a sum that is not gets an odd last bit.
func fma32(x, y, z float32) float32 {
	product := float64(x) * float64(y)
	sum := product + float64(z)
	rest := sum - product
	lost := (product - (sum - rest)) + (float64(z) - rest)
	if bits := math.Float64bits(sum); lost != 0 && bits&1 == 0 {
		if (lost > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}

// From a rounded guess, the steps of root and reciprocal give the rounded root, and the rounded
// reciprocal of that: for every mantissa and both parities of the exponent, on which alone it depends.
func TestRootsOfAllMantissas(t *testing.T) {
	for m := range uint32(1 << 24) {
		x := math.Float32frombits(0x3f800000 + m) // 1 to 4
		guess := float32(1 / math.Sqrt(float64(x)))
		near := x * guess
		root := fma32(fma32(-near, near, x), 0.5*guess, near)
		want := float32(math.Sqrt(float64(x)))
		if root != want {
			t.Fatalf("root of %x is %x, want %x", x, root, want)
		}
		guess = 1 / root
		if got := fma32(fma32(-root, guess, 1), guess, guess); got != 1/want {
			t.Fatalf("1/root of %x is %x, want %x", x, got, 1/want)
		}
	}
}

// From a rounded guess, the steps of inverse give the rounded reciprocal: for every mantissa, and where the result is
// subnormal for both its numbers of digits.
func TestReciprocalsOfAllMantissas(t *testing.T) {
	for m := range uint32(1 << 23) {
		x := math.Float32frombits(0x3f800000 + m) // 1 to 2
		near := fma32(1/x, fma32(-x, 1/x, 1), 1/x)
		if near != 1/x {
			t.Fatalf("1/%x is %x", x, near)
		}
		lost := fma32(-x, near, 1)
		for _, scale := range []float32{0x1p126, 0x1p127} {
			count := near * (1 / scale * whole) * 0x1p126
			shifted := count + whole
			rest := fma32(count, lost, count-(shifted-whole))
			if got, want := (shifted+rest-whole)*leastNumber, 1/(x*scale); got != want {
				t.Fatalf("1/%x is %x, want %x", x*scale, got, want)
			}
		}
	}
}
