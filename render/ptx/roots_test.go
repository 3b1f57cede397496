package ptx

import (
	"math"
	"math/rand/v2"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
)

// Reciprocals and roots are those of IEEE 754 for every kind of f32, and reciprocals of roots are rounded again.
func TestRoots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	edges := []uint32{0, 1, 2, 3, 0x7fffff, 0x800000, 0x0d7fffff, 0x0d800000, 0x0d800001, 0x3fffffff, 0x407fffff, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0xff000003, 0x807fffff}
	for round := range 40 {
		values := make([]float32, programtest.Lanes)
		for i := range values {
			values[i] = math.Float32frombits(edges[i])
			if round > 0 {
				values[i] = math.Float32frombits(r.Uint32()>>(1+r.IntN(10)) ^ uint32(round&1)<<31)
			}
		}
		for op, want := range map[ir.Op]func(x float32) float32{
			ir.OpRecip: func(x float32) float32 { return 1 / x },
			ir.OpSqrt:  func(x float32) float32 { return float32(math.Sqrt(float64(x))) },
			ir.OpRsqrt: func(x float32) float32 { return 1 / float32(math.Sqrt(float64(x))) },
		} {
			buffers := map[int][]byte{0: floats(values...), 1: unread(4 * len(values))}
			emulate(t, programtest.Elementwise(op, ir.F32, ir.F32), architectures[round%3], Options{}, buffers, nil, 7)
			for i, x := range values {
				got, want := floatAt(buffers[1], i), want(x)
				if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
					t.Errorf("%s of %x is %x, want %x", op, x, got, want)
				}
			}
		}
	}
}
