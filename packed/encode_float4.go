package packed

import "math"

// MXFP4 and NVFP4: 4-bit floats (sign, 2 exponent bits, 1 mantissa bit) of a scale that is a
// power of two for 32 values, or an 8-bit float for 16.

// largestMicroscaled is the largest size that MXFP4 is asked to hold: twelve times 2^124,
// the last scale of which all values are finite, is above it.
const largestMicroscaled = 0x1p127

// levels4 are the sizes of 4-bit floats, twice, by their code; middles4 lie between them.
var (
	levels4  = [8]float64{0, 1, 2, 3, 4, 6, 8, 12}
	middles4 = [7]float64{0.5, 1.5, 2.5, 3.5, 5, 7, 10}
)

// float4 is the code of the 4-bit float nearest to half of x. Zero has no sign.
func float4(x float64) (code byte) {
	size := math.Abs(x)
	for int(code) < len(middles4) && size > middles4[code] {
		code++
	}
	if x < 0 && code > 0 {
		code |= 8
	}
	return code
}

// value4 is twice the value of a code.
func value4(code byte) float64 {
	if code > 7 {
		return -levels4[code&7]
	}
	return levels4[code]
}

// loss4 is the sum of squared differences in a scale.
func loss4(values []float32, scale float64) (squares float64) {
	for _, v := range values {
		difference := float64(v) - scale*value4(float4(float64(v)/scale))
		squares += difference * difference
	}
	return squares
}

// encodeMXFP4 tries the power of two that just holds the outermost value and the two below
// it, which cut it.
func encodeMXFP4(block []byte, values, kept []float32) {
	best, least := 0, sumSquares(values)
	if outermost := math.Abs(extreme(values)); outermost > 0 {
		_, exponent := math.Frexp(outermost / 12)
		for down := range 3 {
			e := exponent - down + 128
			if e < 0 || e > 252 {
				continue
			}
			if loss := loss4(values, math.Ldexp(1, e-128)); loss < least {
				best, least = e, loss
			}
		}
	}
	scale := math.Ldexp(1, best-128)
	block[0] = byte(best)
	for i := range 16 {
		low, high := float4(float64(values[i])/scale), float4(float64(values[i+16])/scale)
		block[1+i] = low | high<<4
		kept[i], kept[i+16] = float32(scale*value4(low)), float32(scale*value4(high))
	}
}

// largestNVFP4 is the largest size that NVFP4's scales hold: 448 times 6.
const largestNVFP4 = 2688

// halfE4M3 is half of an unsigned 8-bit float: 4 exponent bits of bias 7, 3 of mantissa.
func halfE4M3(code int) float64 {
	exponent, mantissa := code>>3, float64(code&7)
	if exponent == 0 {
		return math.Ldexp(mantissa, -10)
	}
	return math.Ldexp(8+mantissa, exponent-11)
}

const lastE4M3 = 0x7e // the code after it is no number

func encodeNVFP4(block []byte, values, kept []float32) {
	for g := range 4 {
		group, keptGroup := values[16*g:16*g+16], kept[16*g:16*g+16]
		code := bestE4M3(group)
		block[g] = byte(code)
		scale := halfE4M3(code)
		for i := range 8 {
			var low, high byte
			if scale > 0 {
				low, high = float4(float64(group[i])/scale), float4(float64(group[i+8])/scale)
			}
			block[4+8*g+i] = low | high<<4
			keptGroup[i], keptGroup[i+8] = float32(scale*value4(low)), float32(scale*value4(high))
		}
	}
}

// bestE4M3 tries the scales in which the outermost value is 3 to 24 halves of a step: in the level of 12, or cut, or not
// far below it.
func bestE4M3(values []float32) (best int) {
	least, outermost := sumSquares(values), math.Abs(extreme(values))
	for code := 1; code <= lastE4M3; code++ {
		scale := halfE4M3(code)
		if outermost > 24*scale || 3*scale > outermost && code > 1 {
			continue
		}
		if loss := loss4(values, scale); loss < least {
			best, least = code, loss
		}
	}
	return best
}
