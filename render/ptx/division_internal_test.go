package ptx

import (
	"math/rand/v2"
	"testing"
)

// A product with the reciprocal is the quotient of every number of 31 bits, also around
// multiples of the divisor and at the ends.
func TestReciprocalOfIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	divisors := []uint64{1<<31 - 1, 1<<30 + 1, 1<<30 - 1}
	for d := uint64(3); d < 2000; d++ {
		divisors = append(divisors, d)
	}
	for range 2000 {
		divisors = append(divisors, 3+r.Uint64N(1<<31-3))
	}
	for _, d := range divisors {
		if d&(d-1) == 0 {
			continue // shifts
		}
		factor, shift := reciprocalOf(d)
		if factor >= 1<<32 {
			t.Fatalf("1/%d is %d, want a word", d, factor)
		}
		numbers := []uint64{0, 1, d - 1, d, 1<<31 - 1, 1<<31 - 2}
		for range 50 {
			numbers = append(numbers, r.Uint64N(1<<31), min(r.Uint64N(1<<31)/d*d, 1<<31-1))
		}
		for _, x := range numbers {
			for _, x := range []uint64{x, max(x, 1) - 1} {
				if got := x * factor >> 32 >> shift; got != x/d {
					t.Fatalf("%d / %d is %d, want %d", x, d, got, x/d)
				}
			}
		}
	}
}
