package packed

import "encoding/binary"

// Q8_0: the outermost value is put on level 127; level -128 is not used, so that
// a block and its negative look alike.
var fitQ8 = signedFit{lo: -127, hi: 127, anchors: []float64{127, 126}, store: toHalf}

func encodeQ8_0(block []byte, values, kept []float32) {
	scale := fitQ8.scale(values)
	putHalf(block, scale)
	for i, v := range values {
		q := fitQ8.code(v, scale)
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
		low := fitQ4.code(values[i], scale)
		high := fitQ4.code(values[i+16], scale)
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
		low, up := fitQ5.code(values[i], scale), fitQ5.code(values[i+16], scale)
		block[6+i] = byte(low+16)&15 | byte(up+16)&15<<4
		high |= uint32(low+16)>>4<<i | uint32(up+16)>>4<<(i+16)
		kept[i] = float32(scale) * float32(low)
		kept[i+16] = float32(scale) * float32(up)
	}
	binary.LittleEndian.PutUint32(block[2:], high)
}

// Q4_1 and Q5_1: a scale and a minimum of any sign, both f16.
var (
	fitQ41 = unsignedFit{top: 15, rounds: 3, signed: true, store: toHalf, anchors: []float64{15, 14.75, 14.5, 14, 13.5, 15.5, 16}}
	fitQ51 = unsignedFit{top: 31, rounds: 3, signed: true, store: toHalf, anchors: []float64{31, 30.75, 30.5, 30, 29.5, 31.5, 32}}
)

// affine is a block with its scale and minimum stored, and the levels of its values.
func (u *unsignedFit) affine(block []byte, values, kept []float32) (levels [32]int) {
	scale, minimum := u.fit(values)
	putHalf(block, scale)
	putHalf(block[2:], -minimum)
	for i, v := range values {
		if scale != 0 {
			levels[i] = nearest((float64(v)+minimum)*(1/scale), 0, u.top)
		}
		product := float32(scale) * float32(levels[i])
		kept[i] = product + float32(-minimum)
	}
	return levels
}

func encodeQ4_1(block []byte, values, kept []float32) {
	levels := fitQ41.affine(block, values, kept)
	for i := range 16 {
		block[4+i] = byte(levels[i]) | byte(levels[i+16])<<4
	}
}

func encodeQ5_1(block []byte, values, kept []float32) {
	levels := fitQ51.affine(block, values, kept)
	var high uint32
	for i := range 16 {
		low, up := levels[i], levels[i+16]
		block[8+i] = byte(low&15) | byte(up&15)<<4
		high |= uint32(low>>4)<<i | uint32(up>>4)<<(i+16)
	}
	binary.LittleEndian.PutUint32(block[4:], high)
}
