package packed

import (
	"encoding/binary"
	"slices"

	"tgc/ir"
)

// Other codes of the same values, for CPUs that have weights in records: a file's blocks are written as blocks of a format
// whose weights are taken out of words with masks, shifts and one short table. No value changes but for the rounding of one
// product of scales.

// code is a row of the table of other codes: one block of a format is made of some blocks of another one.
type code struct {
	of     string
	to     *Format
	recode func(to, from []byte)
}

// codes is the table. Of several codes of a format the first one is taken of which rows are whole blocks.
var codes = slices.Concat(gridCodes, wordCodes)

// Recoded is the format in which rows of so many values of another one have another code, if they have one.
func Recoded(f *Format, width int64) (*Format, bool) {
	for i := range codes {
		if c := &codes[i]; c.of == f.Name && width%int64(c.to.BlockElems) == 0 {
			return c.to, true
		}
	}
	return nil, false
}

// codeBetween is the row by which blocks of a format become those of another one, nil without one.
func codeBetween(f, to *Format) *code {
	for i := range codes {
		if codes[i].of == f.Name && codes[i].to == to {
			return &codes[i]
		}
	}
	return nil
}

// sourceBytes is what the blocks take that become one.
func (c *code) sourceBytes() int {
	f, _ := Lookup(c.of)
	return c.to.BlockElems / f.BlockElems * f.BlockBytes
}

// recodeBlocks writes whole blocks.
func (c *code) recodeBlocks(to, from []byte) {
	source, block := c.sourceBytes(), c.to.BlockBytes
	for ; len(from) >= source; from = from[source:] {
		c.recode(to[:block], from[:source])
		to = to[block:]
	}
}

// wordCodes have bits beside each other that a word of four neighbours shares: each bit of a byte, or each two or four, is of
// an element as many further on as there are bytes.
var wordCodes = []code{
	{of: "TQ1_0", to: &ternaryFormats[1], recode: recodeTQ1_0}, // TQ2_0
	{of: "Q5_0", recode: recodeQ5(1), to: &Format{
		Name: "Q5_0_words", BlockElems: 128, BlockBytes: 88,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 4, Offset: 0},   // per 32
			{Name: "qh", DType: ir.U8, Count: 16, Offset: 8},  // bit k/16 of byte k%16
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 24}, // as in Q5_0, block after block
		},
		decode: func(d *decoder) *ir.UOp { // d * (q-16)
			return d.product(d.ofGroup("d"), d.plus(d.f32(d.fiveBits()), -16))
		},
	}},
	{of: "Q5_1", recode: recodeQ5(2), to: &Format{
		Name: "Q5_1_words", BlockElems: 128, BlockBytes: 96,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 4, Offset: 0}, // per 32
			{Name: "m", DType: ir.F16, Count: 4, Offset: 8}, // per 32
			{Name: "qh", DType: ir.U8, Count: 16, Offset: 16},
			{Name: "qs", DType: ir.U8, Count: 64, Offset: 32},
		},
		decode: func(d *decoder) *ir.UOp { // d*q + m
			return d.a.Add(d.product(d.ofGroup("d"), d.f32(d.fiveBits())), d.ofGroup("m"))
		},
	}},
	{of: "Q5_0", recode: recodeQ5Alone(1), to: &Format{
		Name: "Q5_0_words_32", BlockElems: 32, BlockBytes: 22,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qh", DType: ir.U8, Count: 4, Offset: 2},  // bit k/4 of byte k%4
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 6}, // nibble k/4%2 of byte 4*(k/8) + k%4
		},
		decode: func(d *decoder) *ir.UOp { // d * (q-16)
			return d.product(d.scale("d"), d.plus(d.f32(d.fiveBitsAlone()), -16))
		},
	}},
	{of: "Q5_1", recode: recodeQ5Alone(2), to: &Format{
		Name: "Q5_1_words_32", BlockElems: 32, BlockBytes: 24,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "m", DType: ir.F16, Count: 1, Offset: 2},
			{Name: "qh", DType: ir.U8, Count: 4, Offset: 4},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 8},
		},
		decode: func(d *decoder) *ir.UOp { // d*q + m
			return d.a.Add(d.product(d.scale("d"), d.f32(d.fiveBitsAlone())), d.scale("m"))
		},
	}},
	{of: "Q1_0", recode: recodeApart(1), to: &Format{
		Name: "Q1_0_words", BlockElems: 128, BlockBytes: 18,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 2}, // bit k/16 of byte k%16
		},
		decode: func(d *decoder) *ir.UOp { // d * (2*bit-1)
			bit := d.bits(d.field("qs", d.digit(1, 16)), d.digit(16, 8), 1, 1)
			return d.product(d.scale("d"), d.plus(d.f32(d.left(bit, 1)), -1))
		},
	}},
	{of: "Q2_0", recode: recodeApart(2), to: &Format{
		Name: "Q2_0_words", BlockElems: 64, BlockBytes: 18,
		Fields: []Field{
			{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
			{Name: "qs", DType: ir.U8, Count: 16, Offset: 2}, // bits 2*(k/16) of byte k%16
		},
		decode: func(d *decoder) *ir.UOp { // d * (q-1)
			q := d.bits(d.field("qs", d.digit(1, 16)), d.digit(16, 4), 2, 3)
			return d.product(d.scale("d"), d.plus(d.f32(q), -1))
		},
	}},
}

// ofGroup is the f16 of a field that has one for every 32 elements of a block of 128.
func (d *decoder) ofGroup(name string) *ir.UOp { return d.f32(d.field(name, d.digit(32, 4))) }

// fiveBits are the integers of Q5_0_words and Q5_1_words.
func (d *decoder) fiveBits() *ir.UOp {
	low := d.bits(d.field("qs", d.mix(d.digit(32, 4), 16, d.digit(1, 16), 1)), d.digit(16, 2), 4, 15)
	high := d.bits(d.field("qh", d.digit(1, 16)), d.digit(16, 8), 1, 1)
	return d.or(low, d.left(high, 4))
}

// recodeQ5 joins four blocks of 32 with some f16 scales and minima each, a word of fifth bits, and 16 bytes of low ones.
func recodeQ5(scales int) func(to, from []byte) {
	const blocks, elements = 4, 32
	return func(to, from []byte) {
		block := len(from) / blocks
		var fifths [2]uint64
		low := to[2*scales*blocks+16:]
		for i := range blocks {
			b := from[i*block:][:block]
			for j := range scales {
				copy(to[2*(j*blocks+i):][:2], b[2*j:])
			}
			qh := binary.LittleEndian.Uint32(b[2*scales:])
			for k := 0; k < elements; k += 8 {
				fifths[k/8%2] |= spreadBits[byte(qh>>k)] << (2*i + k/16)
			}
			copy(low[16*i:][:16], b[2*scales+4:])
		}
		putWords(to[2*scales*blocks:], fifths[:])
	}
}

// fiveBitsAlone are the integers of Q5_0_words_32 and Q5_1_words_32.
func (d *decoder) fiveBitsAlone() *ir.UOp {
	low := d.bits(d.field("qs", d.mix(d.digit(8, 4), 4, d.digit(1, 4), 1)), d.digit(4, 2), 4, 15)
	high := d.bits(d.field("qh", d.digit(1, 4)), d.digit(4, 8), 1, 1)
	return d.or(low, d.left(high, 4))
}

// recodeQ5Alone moves the bits of one block of 32 after so many f16: those of four neighbours are in four bytes, and
// the next four in the same bytes.
func recodeQ5Alone(scales int) func(to, from []byte) {
	const lows = 0x0f0f0f0f
	return func(to, from []byte) {
		copy(to, from[:2*scales])
		to, from = to[2*scales:], from[2*scales:]
		var fifths uint32
		for i, b := range from[:4] {
			eight := spreadBits[b]
			fifths |= uint32(eight)<<(2*i) | uint32(eight>>32)<<(2*i+1)
		}
		binary.LittleEndian.PutUint32(to, fifths)
		to, from = to[4:], from[4:]
		for i := range 2 { // elements 8*i to 8*i+7 in low nibbles, those 16 further on in high ones
			four, next := word32(from, 8*i), word32(from, 8*i+4)
			binary.LittleEndian.PutUint32(to[4*i:], four&lows|next&lows<<4)
			binary.LittleEndian.PutUint32(to[8+4*i:], four>>4&lows|next&^lows)
		}
	}
}

// recodeApart moves the integers of 16 bytes after an f16, of so many bits each: neighbours in a byte become neighbours in
// neighbouring bytes.
func recodeApart(width int) func(to, from []byte) {
	const bytes = 16
	perByte, table := 8/width, spread(width)
	return func(to, from []byte) {
		copy(to[:2], from[:2])
		var out [bytes / 8]uint64
		for j, b := range from[2:][:bytes] {
			at := j * perByte // of the first element
			out[at%bytes/8] |= table[b] << (8 * (at % 8)) << (width * (at / bytes))
		}
		putWords(to[2:], out[:])
	}
}

// spread is, for each byte, its integers of so many bits, each in the low bits of a byte of its own.
func spread(width int) (table [256]uint64) {
	for b := range table {
		for i := range 8 / width {
			table[b] |= uint64(b>>(width*i)&(1<<width-1)) << (8 * i)
		}
	}
	return table
}

var spreadBits = spread(1)

// putWords writes words, little endian.
func putWords(to []byte, words []uint64) {
	for i, word := range words {
		binary.LittleEndian.PutUint64(to[8*i:], word)
	}
}

// recodeTQ1_0 takes ternary digits apart, and joins those of elements 32 apart by two bits.
func recodeTQ1_0(to, from []byte) {
	qs, qh := from[:48], from[48:52]
	clear(to[:64])
	put := func(k int, digit byte) { to[k/128*32+k%32] |= digit << (2 * (k % 128 / 32)) }
	for j, b := range qs[:32] {
		for n, digit := range tritsOf[b] {
			put(32*n+j, digit)
		}
	}
	for j, b := range qs[32:] {
		for n, digit := range tritsOf[b] {
			put(160+16*n+j, digit)
		}
	}
	for j, b := range qh {
		for n, digit := range tritsOf[b][:4] {
			put(240+4*n+j, digit)
		}
	}
	copy(to[64:66], from[52:54])
}

// tritsOf are the five ternary digits of a byte of TQ1_0.
var tritsOf = func() (table [256][5]byte) {
	for b := range table {
		rest := byte(b)
		for n := range table[b] {
			table[b][n] = byte(uint16(rest) * 3 >> 8)
			rest *= 3
		}
	}
	return table
}()
