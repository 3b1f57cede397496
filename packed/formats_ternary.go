package packed

import "tgc/ir"

// Ternary types: d * (q-1) with q in 0..2.
var ternaryFormats = []Format{
	{
		// Five ternary digits in a byte, as a fraction of 256: times 3^n, modulo
		// 256, the upper "trit" is digit n. The last 4 bytes hold four digits each.
		Name: "TQ1_0", GGUF: 34, BlockElems: 256, BlockBytes: 54,
		Random: &Random{RMS: 0.8165},
		encode: encodeTQ1_0, most: largestHalf,
		Fields: []Field{
			{Name: "qs", DType: ir.U8, Count: 48, Offset: 0}, // 32 bytes for elements 0..159, 16 for 160..239
			{Name: "qh", DType: ir.U8, Count: 4, Offset: 48}, // elements 240..255
			{Name: "d", DType: ir.F16, Count: 1, Offset: 52},
		},
		decode: func(d *decoder) *ir.UOp {
			wide := d.a.Lt(d.digit(32, 8), d.a.Index(5))
			narrow := d.a.Lt(d.digit(16, 16), d.a.Index(15))
			b := d.a.Where(wide, d.field("qs", d.digit(1, 32)),
				d.a.Where(narrow, d.field("qs", d.mix(d.digit(1, 16), 1, d.a.Index(32), 1)), d.field("qh", d.digit(1, 4))))
			shifted := d.a.Mul(b, d.pick(tritPowers, d.digit(4, 64)))
			tripled := d.a.Mul(d.a.Cast(shifted, ir.U16), d.a.ConstInt(ir.U16, 3))
			q := d.a.Cast(d.right(tripled, 8), ir.U8)
			return d.product(d.scale("d"), d.plus(d.f32(q), -1))
		},
	},
	{
		Name: "TQ2_0", GGUF: 35, BlockElems: 256, BlockBytes: 66,
		Random: &Random{RMS: 0.8660, Flip: true, Inner: func(block []byte, _ [2]uint64) { withoutThrees(block[:64]) }},
		encode: encodeTQ2_0, most: largestHalf,
		Fields: []Field{
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 0},
			{Name: "d", DType: ir.F16, Count: 1, Offset: 64},
		},
		decode: func(d *decoder) *ir.UOp {
			return d.product(d.scale("d"), d.plus(d.f32(d.twoBits("qs")), -1))
		},
		repair: func(block []byte, _ scaleSource) { withoutThrees(block[:64]) },
	},
}

// withoutThrees turns the codes 3, which are never written, into 2.
func withoutThrees(codes []byte) {
	for i, b := range codes {
		codes[i] = b &^ (b & (b >> 1) & 0x55) // 11 becomes 10
	}
}

// tritPowers is the power of 3 for the elements 4i..4i+3 of a TQ1_0 block.
var tritPowers = func() constTable {
	power := [5]byte{1, 3, 9, 27, 81}
	data := make([]byte, 64)
	for i := range data {
		switch e := 4 * i; {
		case e < 160:
			data[i] = power[e/32]
		case e < 240:
			data[i] = power[(e-160)/16]
		default:
			data[i] = power[(e-240)/4]
		}
	}
	return constTable{ir.U8, []int64{64}, string(data)}
}()
