package packed

// Q8_0: the outermost value is put on level 127; level -128 is not used, so that
// a block and its negative look alike.
var fitQ8 = signedFit{lo: -127, hi: 127, anchors: []float64{127, 126}, store: toHalf}

func encodeQ8_0(block []byte, values, kept []float32) {
	scale := fitQ8.scale(values)
	putHalf(block, scale)
	for i, v := range values {
		q := level(v, scale, fitQ8.lo, fitQ8.hi)
		block[2+i] = byte(int8(q))
		kept[i] = float32(scale) * float32(q)
	}
}

// Q4_0: levels -8..7, of which only the lower end is a power of two away, so the
// outermost value goes there whatever its sign and the scale takes the sign.
var fitQ4 = signedFit{
	lo: -8, hi: 7, refine: true, store: toHalf,
	anchors: []float64{-8, -7.75, -7.5, -7.25, -7, -8.25, -8.5, -8.75, -6, -5, -4, -3, -2, -1},
}

func encodeQ4_0(block []byte, values, kept []float32) {
	scale := fitQ4.scale(values)
	putHalf(block, scale)
	for i := range 16 {
		low := level(values[i], scale, fitQ4.lo, fitQ4.hi)
		high := level(values[i+16], scale, fitQ4.lo, fitQ4.hi)
		block[2+i] = byte(low+8) | byte(high+8)<<4
		kept[i] = float32(scale) * float32(low)
		kept[i+16] = float32(scale) * float32(high)
	}
}

// level is the level of a value; of scale 0 it is 0.
func level(v float32, scale float64, lo, hi int) int {
	if scale == 0 {
		return 0
	}
	return nearest(float64(v)*(1/scale), lo, hi)
}
