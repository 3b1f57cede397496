package packed

import "encoding/binary"

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

// Q5_0: as Q4_0, with a fifth bit of each level in a word of its own.
var fitQ5 = signedFit{
	lo: -16, hi: 15, refine: true, store: toHalf,
	anchors: []float64{-16, -15.75, -15.5, -15.25, -15, -16.25, -16.5, -16.75, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1},
}

func encodeQ5_0(block []byte, values, kept []float32) {
	scale := fitQ5.scale(values)
	putHalf(block, scale)
	var high uint32
	for i := range 16 {
		low, up := level(values[i], scale, fitQ5.lo, fitQ5.hi), level(values[i+16], scale, fitQ5.lo, fitQ5.hi)
		block[6+i] = byte(low+16)&15 | byte(up+16)&15<<4
		high |= uint32(low+16)>>4<<i | uint32(up+16)>>4<<(i+16)
		kept[i] = float32(scale) * float32(low)
		kept[i+16] = float32(scale) * float32(up)
	}
	binary.LittleEndian.PutUint32(block[2:], high)
}

// level is the level of a value; of scale 0 it is 0.
func level(v float32, scale float64, lo, hi int) int {
	if scale == 0 {
		return 0
	}
	return nearest(float64(v)*(1/scale), lo, hi)
}
