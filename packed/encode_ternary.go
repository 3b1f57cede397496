package packed

import (
	"cmp"
	"math"
	"slices"
)

// TQ1_0 and TQ2_0: every value is -d, 0 or d.

// ternary stores the best d of a block and returns its digits, 0 to 2.
func ternary(scale []byte, values, kept []float32) (digits [256]byte) {
	d := ternaryScale(values)
	putHalf(scale, d)
	for i, v := range values {
		q := 0
		if d != 0 {
			q = nearest(float64(v)/d, -1, 1)
		}
		digits[i] = byte(q + 1)
		kept[i] = float32(d) * float32(q)
	}
	return digits
}

// ternaryScale is the d of the least squared difference: were the n largest values the ones
// that are not 0, it would be their mean, which leaves (their sum)^2/n less than zeros do.
func ternaryScale(values []float32) float64 {
	sizes := make([]float64, len(values))
	for i, v := range values {
		sizes[i] = math.Abs(float64(v))
	}
	slices.SortFunc(sizes, func(x, y float64) int { return cmp.Compare(y, x) })
	best, gain, sum := 0.0, 0.0, 0.0
	for i, x := range sizes {
		sum += x
		if n := float64(i + 1); sum*sum/n > gain {
			best, gain = sum/n, sum*sum/n
		}
	}
	return toHalf(best)
}

func encodeTQ2_0(block []byte, values, kept []float32) {
	digits := ternary(block[64:], values, kept)
	clear(block[:64])
	for i, q := range digits {
		block[i/128*32+i%32] |= q << (2 * (i / 32 % 4))
	}
}

func encodeTQ1_0(block []byte, values, kept []float32) {
	digits := ternary(block[52:], values, kept)
	for i := range 32 {
		block[i] = trits(digits[i], digits[i+32], digits[i+64], digits[i+96], digits[i+128])
	}
	for i := range 16 {
		block[32+i] = trits(digits[160+i], digits[176+i], digits[192+i], digits[208+i], digits[224+i])
	}
	for i := range 4 {
		block[48+i] = trits(digits[240+i], digits[244+i], digits[248+i], digits[252+i], 0)
	}
}

// trits is a number of five ternary digits as a fraction of 256, rounded up, so that the
// digits come out again one after the other as it is tripled.
func trits(digits ...byte) byte {
	n := 0
	for _, q := range digits {
		n = 3*n + int(q)
	}
	return byte((n*256 + 242) / 243)
}

// Q1_0: every value is -d or d, of which the mean of their sizes is best.
func encodeQ1_0(block []byte, values, kept []float32) {
	sum := 0.0
	for _, v := range values {
		sum += math.Abs(float64(v))
	}
	d := toHalf(sum / float64(len(values)))
	putHalf(block, d)
	clear(block[2:18])
	for i, v := range values {
		kept[i] = float32(-d)
		if v >= 0 {
			block[2+i/8] |= 1 << (i % 8)
			kept[i] = float32(d)
		}
	}
}

// Q2_0: levels -1 to 2, of a scale of any sign.
var fitQ2 = signedFit{
	lo: -1, hi: 2, refine: true, store: toHalf,
	anchors: []float64{2, 1.75, 1.5, 2.25, 2.5, 3, 1.25, 1, -1, -1.25, -1.5, -2},
}

func encodeQ2_0(block []byte, values, kept []float32) {
	scale := fitQ2.scale(values)
	putHalf(block, scale)
	clear(block[2:18])
	for i, v := range values {
		q := fitQ2.code(v, scale)
		block[2+i/4] |= byte(q+1) << (2 * (i % 4))
		kept[i] = float32(scale) * float32(q)
	}
}
