package packed

import "tgc/ir"

// Small blocks: one f16 scale (and for the _1 types one f16 minimum m) for 32 to
// 128 linear integers.
//
// In the 4 and 5-bit types byte i of qs holds element i in its low nibble and
// element i+16 in its high one; qh holds the fifth bits, element i in bit i.
var smallFormats = []Format{
	{
		Name: "Q1_0", GGUF: 41, BlockElems: 128, BlockBytes: 18,
		Random: &Random{RMS: 1},
		encode: encodeQ1_0, most: largestHalf,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 2},
		},
		decode: func(d *decoder) *ir.UOp { // d * (bit ? 1 : -1)
			set := d.bitSet(d.field("qs", d.digit(8, 16)), d.digit(1, 8))
			sign := d.a.Where(set, d.a.ConstInt(ir.I8, 1), d.a.ConstInt(ir.I8, -1))
			return d.product(d.scale("d"), d.f32(sign))
		},
	},
	{
		Name: "Q2_0", GGUF: 42, BlockElems: 64, BlockBytes: 18,
		Random: &Random{RMS: 1.2247, Flip: true},
		encode: encodeQ2_0, most: largestHalf,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 2},
		},
		decode: func(d *decoder) *ir.UOp { // d * (q-1)
			q := d.bits(d.field("qs", d.digit(4, 16)), d.digit(1, 4), 2, 3)
			return d.product(d.scale("d"), d.plus(d.f32(q), -1))
		},
	},
	{
		Name: "Q4_0", GGUF: 2, BlockElems: 32, BlockBytes: 18,
		Random: &Random{RMS: 4.64, Flip: true},
		encode: encodeQ4_0,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 2},
		},
		decode: func(d *decoder) *ir.UOp { // d * (q-8)
			return d.product(d.scale("d"), d.plus(d.f32(d.halves4()), -8))
		},
	},
	{
		Name: "Q4_1", GGUF: 3, BlockElems: 32, BlockBytes: 20,
		Random: &Random{RMS: rms4, MinFactor: -7.5},
		encode: encodeQ4_1,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "m", DType: ir.F16, Count: 1, Offset: 2},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 4},
		},
		decode: func(d *decoder) *ir.UOp { // d*q + m
			return d.a.Add(d.product(d.scale("d"), d.f32(d.halves4())), d.scale("m"))
		},
	},
	{
		Name: "Q5_0", GGUF: 6, BlockElems: 32, BlockBytes: 22,
		Random: &Random{RMS: 9.25, Flip: true},
		encode: encodeQ5_0,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qh", DType: ir.U32, Count: 1, Offset: 2},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 6},
		},
		decode: func(d *decoder) *ir.UOp { // d * (q-16)
			return d.product(d.scale("d"), d.plus(d.f32(d.halves5()), -16))
		},
	},
	{
		Name: "Q5_1", GGUF: 7, BlockElems: 32, BlockBytes: 24,
		Random: &Random{RMS: rms5, MinFactor: -15.5},
		encode: encodeQ5_1,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "m", DType: ir.F16, Count: 1, Offset: 2},
			{Name: "qh", DType: ir.U32, Count: 1, Offset: 4},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 8},
		},
		decode: func(d *decoder) *ir.UOp { // d*q + m
			return d.a.Add(d.product(d.scale("d"), d.f32(d.halves5())), d.scale("m"))
		},
	},
	{
		Name: "Q8_0", GGUF: 8, BlockElems: 32, BlockBytes: 34,
		Random: &Random{RMS: 73.9},
		encode: encodeQ8_0,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.I8, Count: 32, Offset: 2, Apart: Apart{1, 2, 4}}, // the scale is for two pieces
		},
		decode: func(d *decoder) *ir.UOp { // d * q
			return d.product(d.scale("d"), d.f32(d.field("qs", d.digit(1, 32))))
		},
	},
}

// halves4 is the nibble of an element in a block of 32.
func (d *decoder) halves4() *ir.UOp {
	return d.bits(d.field("qs", d.digit(1, 16)), d.digit(16, 2), 4, 15)
}

// halves5 is halves4 with the fifth bit from qh.
func (d *decoder) halves5() *ir.UOp {
	high := d.bitSet(d.field("qh", d.a.Index(0)), d.digit(1, 32))
	fifth := d.a.Where(high, d.a.ConstInt(ir.U8, 16), d.a.ConstInt(ir.U8, 0))
	return d.or(d.halves4(), fifth)
}
