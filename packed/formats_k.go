package packed

import "tgc/ir"

// Super-blocks of 256: f16 scale d (and minimum dmin) for all, small integer
// scales (and minima) for groups of 16 or 32.
var kFormats = []Format{
	{
		Name: "Q2_K", GGUF: 10, BlockElems: 256, BlockBytes: 84,
		Random: &Random{RMS: rms2 * fourBitRMS, MinFactor: 1.5, Inner: fourBitScales},
		encode: encodeQ2_K,
		Fields: []Field{
			{Name: "scales", DType: ir.U8, Count: 16, Offset: 0}, // per 16: scale | minimum<<4
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 16},
			{Name: "d", DType: ir.F16, Count: 1, Offset: 80},
			{Name: "dmin", DType: ir.F16, Count: 1, Offset: 82},
		},
		decode: func(d *decoder) *ir.UOp { // d*sc*q - dmin*m
			group := d.field("scales", d.digit(16, 16))
			q := d.twoBits("qs")
			return d.a.Sub(
				d.product(d.scale("d"), d.f32(d.mask(group, 15)), d.f32(q)),
				d.product(d.scale("dmin"), d.f32(d.right(group, 4))))
		},
	},
	{
		Name: "Q3_K", GGUF: 11, BlockElems: 256, BlockBytes: 110,
		Random: &Random{RMS: 2.34 * 18.5},
		encode: encodeQ3_K,
		Fields: []Field{
			{Name: "hmask", DType: ir.U8, Count: 32, Offset: 0}, // bit k/32 of byte k%32
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 32},
			{Name: "scales", DType: ir.U8, Count: 12, Offset: 96}, // 16 of 6 bits
			{Name: "d", DType: ir.F16, Count: 1, Offset: 108},
		},
		decode: func(d *decoder) *ir.UOp { // d * (sc-32) * (q-4)
			// Group g = k/16: low nibbles lie in bytes g%8, upper two bits in 8+g%4.
			low := d.bits(d.field("scales", d.digit(16, 8)), d.digit(128, 2), 4, 15)
			high := d.bits(d.field("scales", d.mix(d.digit(16, 4), 1, d.a.Index(8), 1)), d.digit(64, 4), 2, 3)
			sc := d.or(low, d.left(high, 4))
			third := d.bits(d.field("hmask", d.digit(1, 32)), d.digit(32, 8), 1, 1)
			q := d.or(d.twoBits("qs"), d.left(third, 2))
			return d.product(d.scale("d"), d.plus(d.f32(sc), -32), d.plus(d.f32(q), -4))
		},
	},
	{
		Name: "Q4_K", GGUF: 12, BlockElems: 256, BlockBytes: 144,
		Random: &Random{RMS: rms4 * sixBitRMS, MinFactor: 7.5, Inner: sixBitScales},
		encode: encodeQ4_K,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "dmin", DType: ir.F16, Count: 1, Offset: 2},
			{Name: "scales", DType: ir.U8, Count: 12, Offset: 4},                      // 8 scales and 8 minima of 6 bits
			{Name: "qs", DType: ir.U8, Count: 128, Offset: 16, Apart: Apart{1, 2, 1}}, // a scale is for two pieces
		},
		decode: func(d *decoder) *ir.UOp { // d*sc*q - dmin*m
			sc, m := d.sixBitPairs()
			return d.a.Sub(
				d.product(d.scale("d"), d.f32(sc), d.f32(d.fourBits("qs"))),
				d.product(d.scale("dmin"), d.f32(m)))
		},
	},
	{
		Name: "Q5_K", GGUF: 13, BlockElems: 256, BlockBytes: 176,
		Random: &Random{RMS: rms5 * sixBitRMS, MinFactor: 15.5, Inner: sixBitScales},
		encode: encodeQ5_K,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "dmin", DType: ir.F16, Count: 1, Offset: 2},
			{Name: "scales", DType: ir.U8, Count: 12, Offset: 4},                      // as in Q4_K
			{Name: "qh", DType: ir.U8, Count: 32, Offset: 16},                         // bit k/32 of byte k%32
			{Name: "qs", DType: ir.U8, Count: 128, Offset: 48, Apart: Apart{4, 2, 2}}, // a byte of qh has bits of all
		},
		decode: func(d *decoder) *ir.UOp { // d*sc*q - dmin*m
			sc, m := d.sixBitPairs()
			fifth := d.bits(d.field("qh", d.digit(1, 32)), d.digit(32, 8), 1, 1)
			q := d.or(d.fourBits("qs"), d.left(fifth, 4))
			return d.a.Sub(
				d.product(d.scale("d"), d.f32(sc), d.f32(q)),
				d.product(d.scale("dmin"), d.f32(m)))
		},
	},
	{
		Name: "Q6_K", GGUF: 14, BlockElems: 256, BlockBytes: 210,
		Random: &Random{RMS: rms6 * q6ScaleRMS, Inner: q6Scales},
		encode: encodeQ6_K,
		Fields: []Field{
			{Name: "ql", DType: ir.U8, Count: 128, Offset: 0},
			{Name: "qh", DType: ir.U8, Count: 64, Offset: 128},
			{Name: "scales", DType: ir.I8, Count: 16, Offset: 192}, // per 16
			{Name: "d", DType: ir.F16, Count: 1, Offset: 208},
		},
		decode: func(d *decoder) *ir.UOp { // d * sc * (q-32)
			// In each half of 128, ql byte 0..63 holds elements e and e+64, and qh
			// byte 0..31 the upper bits of elements e, e+32, e+64, e+96.
			half := d.digit(128, 2)
			low := d.bits(d.field("ql", d.mix(half, 64, d.digit(1, 64), 1)), d.digit(64, 2), 4, 15)
			high := d.bits(d.field("qh", d.mix(half, 32, d.digit(1, 32), 1)), d.digit(32, 4), 2, 3)
			q := d.or(low, d.left(high, 4))
			sc := d.field("scales", d.digit(16, 16))
			return d.product(d.scale("d"), d.f32(sc), d.plus(d.f32(q), -32))
		},
	},
}

// twoBits reads a 2-bit integer: in each half of 128, byte m holds elements m,
// m+32, m+64 and m+96.
func (d *decoder) twoBits(field string) *ir.UOp {
	b := d.field(field, d.mix(d.digit(128, 2), 32, d.digit(1, 32), 1))
	return d.bits(b, d.digit(32, 4), 2, 3)
}

// fourBits reads a nibble: in each quarter of 64, byte m holds elements m and
// m+32.
func (d *decoder) fourBits(field string) *ir.UOp {
	b := d.field(field, d.mix(d.digit(64, 4), 32, d.digit(1, 32), 1))
	return d.bits(b, d.digit(32, 2), 4, 15)
}

// sixBitPairs unpacks the scale and the minimum of group g = k/32 of Q4_K and
// Q5_K. Groups 0..3 have theirs whole in bytes g and g+4, with upper bits of
// groups 4..7 above them; their low nibbles are in bytes g+4. All
// indices use g%4, so that both arms are in bounds for every g.
func (d *decoder) sixBitPairs() (scale, minimum *ir.UOp) {
	g := d.digit(32, 4)
	a := d.field("scales", g)
	b := d.field("scales", d.mix(g, 1, d.a.Index(4), 1))
	c := d.field("scales", d.mix(g, 1, d.a.Index(8), 1))
	first := d.a.Lt(d.digit(128, 2), d.a.Index(1))
	scale = d.a.Where(first, d.mask(a, 63), d.or(d.mask(c, 15), d.left(d.right(a, 6), 4)))
	minimum = d.a.Where(first, d.mask(b, 63), d.or(d.right(c, 4), d.left(d.right(b, 6), 4)))
	return scale, minimum
}
