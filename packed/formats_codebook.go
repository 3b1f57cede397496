package packed

import "tgc/ir"

// fourBitLevels are the values of IQ4_NL and IQ4_XS: denser around zero.
var fourBitLevels = int8Table(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)

// twiceE2M1 are the values of a 4-bit float (sign, 2 exponent bits, 1 mantissa
// bit) times 2; the scales of MXFP4 and NVFP4 are halved in return. Minus zero
// is written as zero.
var twiceE2M1 = int8Table(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

// Types whose 4-bit codes name a value of a table.
var codebookFormats = []Format{
	{
		Name: "IQ4_NL", GGUF: 20, BlockElems: 32, BlockBytes: 18,
		Random: &Random{RMS: 67.44, Flip: true},
		encode: encodeIQ4_NL,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 2},
		},
		decode: func(d *decoder) *ir.UOp { // d * level[q]
			return d.product(d.scale("d"), d.f32(d.pick(fourBitLevels, d.halves4())))
		},
	},
	{
		Name: "IQ4_XS", GGUF: 23, BlockElems: 256, BlockBytes: 136,
		Random: &Random{RMS: 67.44 * 18.5},
		encode: encodeIQ4_XS,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "scales_h", DType: ir.U16, Count: 1, Offset: 2}, // upper 2 bits per 32
			{Name: "scales_l", DType: ir.U8, Count: 4, Offset: 4},  // low nibble per 32
			{Name: "qs", DType: ir.U8, Count: 128, Offset: 8},
		},
		decode: func(d *decoder) *ir.UOp { // d * (sc-32) * level[q]
			low := d.bits(d.field("scales_l", d.digit(64, 4)), d.digit(32, 2), 4, 15)
			high := d.bits(d.field("scales_h", d.a.Index(0)), d.digit(32, 8), 2, 3)
			sc := d.or(low, d.left(d.a.Cast(high, ir.U8), 4))
			b := d.field("qs", d.mix(d.digit(32, 8), 16, d.digit(1, 16), 1))
			level := d.pick(fourBitLevels, d.bits(b, d.digit(16, 2), 4, 15))
			return d.product(d.scale("d"), d.plus(d.f32(sc), -32), d.f32(level))
		},
	},
	{
		Name: "MXFP4", GGUF: 39, BlockElems: 32, BlockBytes: 17,
		Random: &Random{RMS: 5.852, PowerOfTwo: 128},
		encode: encodeMXFP4, most: largestMicroscaled,
		Fields: []Field{
			{Name: "e", DType: ir.U8, Count: 1, Offset: 0}, // power of two, bias 127
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 1},
		},
		decode: func(d *decoder) *ir.UOp { // 2^(e-128) * level[q]
			return d.product(d.halfPowerOfTwo(d.field("e", d.a.Index(0))), d.f32(d.pick(twiceE2M1, d.halves4())))
		},
		// Exponents around one: 2^127 times 12 is no f32.
		repair: func(block []byte, r scaleSource) { block[0] = byte(127 - 8 + r.IntN(12)) },
	},
	{
		Name: "NVFP4", GGUF: 40, BlockElems: 64, BlockBytes: 36,
		Random: &Random{RMS: 2.926, Scale: scaleOfGroups},
		encode: encodeNVFP4, most: largestNVFP4,
		Fields: []Field{
			{Name: "d", DType: ir.U8, Count: 4, Offset: 0}, // unsigned 8-bit float per 16
			{Name: "qs", DType: ir.U8, Count: 32, Offset: 4},
		},
		decode: func(d *decoder) *ir.UOp { // d/2 * level[q]
			group := d.digit(16, 4)
			b := d.field("qs", d.mix(group, 8, d.digit(1, 8), 1))
			level := d.pick(twiceE2M1, d.bits(b, d.digit(8, 2), 4, 15))
			return d.product(d.halfUnsignedE4M3(d.field("d", group)), d.f32(level))
		},
		// Without the sign bit and without the code for NaN.
		repair: func(block []byte, r scaleSource) {
			for i := range 4 {
				block[i] = byte(16 + r.IntN(64))
			}
		},
	},
}

// halfPowerOfTwo is 2^(e-128) for a byte e; the two smallest are subnormal.
func (d *decoder) halfPowerOfTwo(e *ir.UOp) *ir.UOp {
	wide := d.a.Cast(e, ir.U32)
	subnormal := d.a.Binary(ir.OpShl, d.like(wide, 0x00200000), wide)
	normal := d.left(d.a.Binary(ir.OpSub, wide, d.like(wide, 1)), 23)
	bits := d.a.Where(d.a.Lt(e, d.like(e, 2)), subnormal, normal)
	return d.a.Make(ir.OpBitcast, ir.F32, nil, bits)
}

// halfUnsignedE4M3 is half the value of an 8-bit float with 4 exponent bits
// (bias 7) and 3 mantissa bits, sign bit ignored. The code for NaN is read as 0.
func (d *decoder) halfUnsignedE4M3(x *ir.UOp) *ir.UOp {
	code := d.mask(x, 0x7f)
	// Moved to the top of an f32 the exponent is off by 127-7; one less halves.
	wide := d.left(d.a.Add(d.a.Cast(code, ir.U32), d.a.ConstInt(ir.U32, 119<<3)), 20)
	normal := d.a.Make(ir.OpBitcast, ir.F32, nil, wide)
	subnormal := d.product(d.f32(code), d.const32(1.0/1024))
	value := d.a.Where(d.a.Lt(code, d.like(code, 8)), subnormal, normal)
	return d.a.Where(d.a.Eq(x, d.like(x, 0x7f)), d.const32(0), value)
}
