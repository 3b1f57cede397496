package packed

import "tgc/ir"

// Types whose codes name a point of a grid: 4 or 8 values at once. The values
// are magnitudes with signs apart (IQ2, IQ3), or -1, 0, 1 (IQ1).
var gridFormats = []Format{
	{
		// Per 32 elements 8 bytes: four grid numbers, then a word with four times
		// 7 sign bits and a 4-bit scale on top.
		Name: "IQ2_XXS", GGUF: 16, BlockElems: 256, BlockBytes: 66,
		Random: &Random{RMS: 23.12 * quarterStepRMS},
		encode: encodeIQ2_XXS,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 32, Offset: 2, Run: 4, Stride: 8},
			{Name: "signs_scales", DType: ir.U32, Count: 8, Offset: 6, Run: 1, Stride: 8},
		},
		decode: func(d *decoder) *ir.UOp { // d * (sc+1/2)/4 * grid
			word := d.field("signs_scales", d.digit(32, 8))
			point := d.pick(gridIQ2XXS, d.field("qs", d.digit(8, 32)), d.digit(1, 8))
			return d.product(d.scale("d"), d.halfStep(d.right(word, 28), 0.25), d.f32(d.signedBySeven(point, word)))
		},
	},
	{
		// Per 8 elements a 16-bit word: grid number, 7 sign bits on top.
		Name: "IQ2_XS", GGUF: 17, BlockElems: 256, BlockBytes: 74,
		Random: &Random{RMS: 24.22 * quarterStepRMS},
		encode: encodeIQ2_XS,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U16, Count: 32, Offset: 2},
			{Name: "scales", DType: ir.U8, Count: 8, Offset: 66}, // a nibble per 16
		},
		decode: func(d *decoder) *ir.UOp { // d * (sc+1/2)/4 * grid
			word := d.field("qs", d.digit(8, 32))
			point := d.pick(gridIQ2XS, d.mask(word, 511), d.digit(1, 8))
			signs := d.evenSigns(d.a.Cast(d.right(word, 9), ir.U8))
			return d.product(d.scale("d"), d.halfStep(d.nibblePer16("scales"), 0.25), d.f32(d.signed(point, signs, d.digit(1, 8))))
		},
	},
	{
		Name: "IQ2_S", GGUF: 22, BlockElems: 256, BlockBytes: 82,
		Random: &Random{RMS: 24.43 * quarterStepRMS},
		encode: encodeIQ2_S,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 32, Offset: 2},     // low bits of the grid number per 8
			{Name: "signs", DType: ir.U8, Count: 32, Offset: 34}, // a bit per element
			{Name: "qh", DType: ir.U8, Count: 8, Offset: 66},     // upper 2 bits per 8
			{Name: "scales", DType: ir.U8, Count: 8, Offset: 74}, // a nibble per 16
		},
		decode: func(d *decoder) *ir.UOp { // d * (sc+1/2)/4 * grid
			number := d.wider(d.field("qs", d.digit(8, 32)), d.bits(d.field("qh", d.digit(32, 8)), d.digit(8, 4), 2, 3))
			point := d.pick(gridIQ2S, number, d.digit(1, 8))
			signs := d.field("signs", d.digit(8, 32))
			return d.product(d.scale("d"), d.halfStep(d.nibblePer16("scales"), 0.25), d.f32(d.signed(point, signs, d.digit(1, 8))))
		},
	},
	{
		// Grid numbers per 4 elements; per 32 a word as in IQ2_XXS.
		Name: "IQ3_XXS", GGUF: 18, BlockElems: 256, BlockBytes: 98,
		Random: &Random{RMS: 30.85 * 2 * quarterStepRMS},
		encode: encodeIQ3_XXS,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 2},
			{Name: "signs_scales", DType: ir.U32, Count: 8, Offset: 66},
		},
		decode: func(d *decoder) *ir.UOp { // d * (sc+1/2)/2 * grid
			word := d.field("signs_scales", d.digit(32, 8))
			point := d.pick(gridIQ3XXS, d.field("qs", d.digit(4, 64)), d.digit(1, 4))
			return d.product(d.scale("d"), d.halfStep(d.right(word, 28), 0.5), d.f32(d.signedBySeven(point, word)))
		},
	},
	{
		Name: "IQ3_S", GGUF: 21, BlockElems: 256, BlockBytes: 110,
		Random: &Random{RMS: 7.594 * odd4RMS},
		encode: encodeIQ3_S,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 2},      // low bits of the grid number per 4
			{Name: "qh", DType: ir.U8, Count: 8, Offset: 66},      // upper bit per 4
			{Name: "signs", DType: ir.U8, Count: 32, Offset: 74},  // a bit per element
			{Name: "scales", DType: ir.U8, Count: 4, Offset: 106}, // a nibble per 32
		},
		decode: func(d *decoder) *ir.UOp { // d * (2*sc+1) * grid
			number := d.wider(d.field("qs", d.digit(4, 64)), d.bits(d.field("qh", d.digit(32, 8)), d.digit(4, 8), 1, 1))
			point := d.pick(gridIQ3S, number, d.digit(1, 4))
			signs := d.field("signs", d.digit(8, 32))
			sc := d.bits(d.field("scales", d.digit(64, 4)), d.digit(32, 2), 4, 15)
			return d.product(d.scale("d"), d.f32(d.oddStep(sc)), d.f32(d.signed(point, signs, d.digit(1, 8))))
		},
	},
	{
		// Per 32 elements a 16-bit word: four times 3 upper bits of the grid
		// number, a 3-bit scale, and the sign of the shift.
		Name: "IQ1_S", GGUF: 19, BlockElems: 256, BlockBytes: 50,
		Random: &Random{RMS: 0.7809 * odd3RMS, Flip: true},
		encode: encodeIQ1_S,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 32, Offset: 2},
			{Name: "qh", DType: ir.U16, Count: 8, Offset: 34},
		},
		decode: func(d *decoder) *ir.UOp { // d * (2*sc+1) * (grid +- 1/8)
			word := d.field("qh", d.digit(32, 8))
			high := d.a.Cast(d.bits(word, d.digit(8, 4), 3, 7), ir.U8)
			point := d.pick(gridIQ1, d.wider(d.field("qs", d.digit(8, 32)), high), d.digit(1, 8))
			sc := d.a.Cast(d.mask(d.right(word, 12), 7), ir.U8)
			return d.product(d.scale("d"), d.f32(d.oddStep(sc)), d.eighthUp(point, d.mask(word, 0x8000)))
		},
	},
	{
		// Per 8 elements a nibble of qh: 3 upper bits of the grid number, and the
		// sign of the shift. The f16 scale is spread over the top nibbles of the
		// four words of scales, whose other 12 bits are four 3-bit scales per 16.
		Name: "IQ1_M", GGUF: 29, BlockElems: 256, BlockBytes: 56,
		Random: &Random{RMS: 0.7809 * odd3RMS, Flip: true, Scale: scaleInNibbles},
		encode: encodeIQ1_M,
		Fields: []Field{
			{Name: "qs", DType: ir.U8, Count: 32, Offset: 0},
			{Name: "qh", DType: ir.U8, Count: 16, Offset: 32},
			{Name: "scales", DType: ir.U16, Count: 4, Offset: 48},
		},
		decode: func(d *decoder) *ir.UOp { // d * (2*sc+1) * (grid +- 1/8)
			nibble := d.bits(d.field("qh", d.digit(16, 16)), d.digit(8, 2), 4, 15)
			number := d.wider(d.field("qs", d.digit(8, 32)), d.mask(nibble, 7))
			point := d.pick(gridIQ1, number, d.digit(1, 8))
			sc := d.a.Cast(d.bits(d.field("scales", d.digit(64, 4)), d.digit(16, 4), 3, 7), ir.U8)
			return d.product(d.f32(d.scaleFromNibbles()), d.f32(d.oddStep(sc)), d.eighthUp(point, d.mask(nibble, 8)))
		},
		// No exponent of all ones: the scale would be infinite or NaN. Top nibbles
		// hold the f16 from its low bits up.
		repair: func(block []byte, r scaleSource) { scaleInNibbles(block, r.half()) },
	},
}

// halfStep is (sc + 1/2) * step in f32; exact.
func (d *decoder) halfStep(sc *ir.UOp, step float64) *ir.UOp {
	return d.a.Mul(d.plus(d.f32(sc), 0.5), d.const32(step))
}

// oddStep is 2*sc + 1.
func (d *decoder) oddStep(sc *ir.UOp) *ir.UOp { return d.or(d.left(sc, 1), d.like(sc, 1)) }

// nibblePer16 is the nibble for group k/16 of a field of 8 bytes.
func (d *decoder) nibblePer16(field string) *ir.UOp {
	return d.bits(d.field(field, d.digit(32, 8)), d.digit(16, 2), 4, 15)
}

// wider is the u16 number low | high<<8 of two bytes.
func (d *decoder) wider(low, high *ir.UOp) *ir.UOp {
	return d.or(d.a.Cast(low, ir.U16), d.left(d.a.Cast(high, ir.U16), 8))
}

// signedBySeven applies the sign bits of element group k/8%4 in a word that
// holds 7 for each of four groups of 8.
func (d *decoder) signedBySeven(point, word *ir.UOp) *ir.UOp {
	seven := d.a.Cast(d.bits(word, d.digit(8, 4), 7, 127), ir.U8)
	return d.signed(point, d.evenSigns(seven), d.digit(1, 8))
}

// eighthUp shifts a grid value by 1/8: down if the flag is not zero.
func (d *decoder) eighthUp(point, flag *ir.UOp) *ir.UOp {
	delta := d.a.Where(d.a.Eq(flag, d.like(flag, 0)), d.const32(0.125), d.const32(-0.125))
	return d.a.Add(d.f32(point), delta)
}

// scaleFromNibbles joins the top nibbles of the four words of IQ1_M's scales to
// an f16.
func (d *decoder) scaleFromNibbles() *ir.UOp {
	var bits *ir.UOp
	for i := range int64(4) {
		top := d.left(d.right(d.field("scales", d.a.Index(i)), 12), 4*i)
		if bits == nil {
			bits = top
		} else {
			bits = d.or(bits, top)
		}
	}
	return d.a.Make(ir.OpBitcast, ir.F16, nil, bits)
}
