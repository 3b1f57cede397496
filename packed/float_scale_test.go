package packed

import (
	"math"
	"testing"
)

// TestFloatScales tries every byte that can be a scale of the 4-bit float types.
// All codes in the block name the level 2, so that the value is the scale.
func TestFloatScales(t *testing.T) {
	for _, test := range []struct {
		format string
		codes  byte // two equal nibbles
		want   func(x byte) float64
	}{
		{"MXFP4", 0x22, func(x byte) float64 { return math.Ldexp(1, int(x)-127) }},
		{"NVFP4", 0x22, func(x byte) float64 {
			exponent, fraction := int(x>>3&15), float64(x&7)
			switch {
			case x == 0x7f:
				return 0
			case exponent == 0:
				return fraction / 512
			}
			return math.Ldexp(1+fraction/8, exponent-7)
		}},
	} {
		f, _ := Lookup(test.format)
		for x := range 256 {
			block := make([]byte, f.BlockBytes)
			for i := range block {
				block[i] = test.codes
			}
			block[0] = byte(x)
			got := decodeAll(t, f, Identity.Place(f, 1, 1), block, 1, int64(f.BlockElems))[0]
			if want := float32(test.want(byte(x))); got != want {
				t.Errorf("%s scale byte 0x%02x: %g, want %g", test.format, x, got, want)
			}
		}
	}
}
