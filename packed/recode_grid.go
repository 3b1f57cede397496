package packed

import (
	"encoding/binary"
	"math/bits"

	"tgc/internal/lists"
	"tgc/ir"
)

// Types of grids with a code of four bits for each weight: the number of its level in a table of 8 or 16. Grids make blocks small,
// and cost a core more to read than memory does: a load for every four or eight weights, and their signs.

// gridCodes are blocks of 256: a f16 scale, a byte for each group, and nibbles as in IQ4_XS.
var gridCodes = []code{
	gridCode("IQ2_XXS", 32, 1.0/8, magnitudes(8, 25, 43), recodeIQ2_XXS),
	gridCode("IQ2_XS", 16, 1.0/8, magnitudes(8, 25, 43), recodeIQ2_XS),
	gridCode("IQ2_S", 16, 1.0/8, magnitudes(8, 25, 43), recodeIQ2_S),
	gridCode("IQ3_XXS", 32, 1.0/4, magnitudes(4, 12, 20, 28, 36, 44, 52, 62), recodeIQ3_XXS),
	gridCode("IQ3_S", 32, 1, magnitudes(1, 3, 5, 7, 9, 11, 13, 15), recodeIQ3_S),
	gridCode("IQ1_S", 32, 1.0/8, movedThirds, recodeIQ1_S),
	gridCode("IQ1_M", 16, 1.0/8, movedThirds, recodeIQ1_M),
}

// movedThirds are -1, 0 and 1 moved up by an eighth, then moved down by one, times 8.
var movedThirds = int8Table(-7, 1, 9, 0, -9, -1, 7, 0)

// magnitudes are up to four or eight levels, then the same negated.
func magnitudes(levels ...int8) constTable {
	half := 4
	if len(levels) > half {
		half = 8
	}
	table := make([]int8, 2*half)
	for i, level := range levels {
		table[i], table[half+i] = level, -level
	}
	return int8Table(table...)
}

// gridCode is a row: value = d * scale * step * level, where scale is odd (2*sc+1 in all types of grids).
func gridCode(of string, group int, step float64, levels constTable, recode func(b codeBlock, from []byte)) code {
	groups := codeWeights / group
	return code{
		of: of,
		Format: Format{
			Name: of + "_codes", BlockElems: codeWeights, BlockBytes: 2 + groups + codeWeights/2,
			Fields: []Field{
				{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
				{Name: "scales", DType: ir.U8, Count: groups, Offset: 2},
				{Name: "qs", DType: ir.U8, Count: codeWeights / 2, Offset: 2 + groups},
			},
			decode: func(d *decoder) *ir.UOp {
				sc := d.f32(d.field("scales", d.digit(int64(group), int64(groups))))
				b := d.field("qs", d.mix(d.digit(32, 8), 16, d.digit(1, 16), 1))
				level := d.pick(levels, d.bits(b, d.digit(16, 2), 4, int64(len(levels.data)-1)))
				return d.product(d.scale("d"), d.a.Mul(sc, d.const32(step)), d.f32(level))
			},
		},
		recode: func(to, from []byte) { recode(codeBlock{to[:2], to[2:][:groups], to[2+groups:]}, from) },
	}
}

// codeWeights is the number of weights of a block with scales of groups.
const codeWeights = 256

// codeBlock is a block that is written: a scale, those of groups, and nibbles.
type codeBlock struct{ d, scales, qs []byte }

// put writes the codes of 32 weights, of which each word has those of eight.
func (b codeBlock) put(group int, codes [4]uint64) {
	putWords(b.qs[16*group:][:16], []uint64{codes[0] | codes[2]<<4, codes[1] | codes[3]<<4})
}

// odd is 2*sc + 1.
func odd(sc byte) byte { return 2*sc + 1 }

// numbered are the numbers of the levels of each point of a grid, a byte each.
func numbered(points constTable, levels ...int8) []uint64 {
	n := int(points.shape[1])
	return lists.Make(int(points.shape[0]), func(i int) (word uint64) {
		for k, value := range []byte(points.data[n*i : n*(i+1)]) {
			for number, level := range levels {
				if level == int8(value) {
					word |= uint64(number) << (8 * k)
				}
			}
		}
		return word
	})
}

var (
	numbersIQ2XXS = numbered(gridIQ2XXS, 8, 25, 43)
	numbersIQ2XS  = numbered(gridIQ2XS, 8, 25, 43)
	numbersIQ2S   = numbered(gridIQ2S, 8, 25, 43)
	numbersIQ3XXS = numbered(gridIQ3XXS, 4, 12, 20, 28, 36, 44, 52, 62)
	numbersIQ3S   = numbered(gridIQ3S, 1, 3, 5, 7, 9, 11, 13, 15)
	numbersIQ1    = numbered(gridIQ1, -1, 0, 1)
)

// evenSignsOf are eight signs of which the last makes their number even.
func evenSignsOf(seven uint32) byte {
	signs := byte(seven & 127)
	return signs | byte(bits.OnesCount8(signs)&1)<<7
}

// upper marks the codes of eight weights that are in the upper half of a table of 8, and upper16 of one of 16.
func upper(which byte) uint64   { return spreadBits[which] << 2 }
func upper16(which byte) uint64 { return spreadBits[which] << 3 }

// pair joins the points of two times four weights.
func pair(first, second uint64) uint64 { return first | second<<32 }

func recodeIQ2_XXS(b codeBlock, from []byte) {
	copy(b.d, from[:2])
	for g := range b.scales {
		points, word := from[2+8*g:][:4], binary.LittleEndian.Uint32(from[6+8*g:])
		b.scales[g] = odd(byte(word >> 28))
		var codes [4]uint64
		for i, point := range points {
			codes[i] = numbersIQ2XXS[point] | upper(evenSignsOf(word>>(7*i)))
		}
		b.put(g, codes)
	}
}

func recodeIQ2_XS(b codeBlock, from []byte) {
	copy(b.d, from[:2])
	nibbles(b.scales, from[66:74])
	for g := range codeWeights / 32 {
		var codes [4]uint64
		for i := range codes {
			word := binary.LittleEndian.Uint16(from[2+8*g+2*i:])
			codes[i] = numbersIQ2XS[word&511] | upper(evenSignsOf(uint32(word>>9)))
		}
		b.put(g, codes)
	}
}

func recodeIQ2_S(b codeBlock, from []byte) {
	copy(b.d, from[:2])
	nibbles(b.scales, from[74:82])
	for g := range codeWeights / 32 {
		var codes [4]uint64
		for i := range codes {
			point := int(from[2+4*g+i]) | int(from[66+g]>>(2*i)&3)<<8
			codes[i] = numbersIQ2S[point] | upper(from[34+4*g+i])
		}
		b.put(g, codes)
	}
}

func recodeIQ3_XXS(b codeBlock, from []byte) {
	copy(b.d, from[:2])
	for g := range b.scales {
		points, word := from[2+8*g:][:8], binary.LittleEndian.Uint32(from[66+4*g:])
		b.scales[g] = odd(byte(word >> 28))
		var codes [4]uint64
		for i := range codes {
			codes[i] = pair(numbersIQ3XXS[points[2*i]], numbersIQ3XXS[points[2*i+1]]) | upper16(evenSignsOf(word>>(7*i)))
		}
		b.put(g, codes)
	}
}

func recodeIQ3_S(b codeBlock, from []byte) {
	copy(b.d, from[:2])
	nibbles(b.scales, from[106:110])
	for g := range codeWeights / 32 {
		var codes [4]uint64
		high := int(from[66+g])
		for i := range codes {
			point := func(n int) uint64 { return numbersIQ3S[int(from[2+8*g+n])|high>>n&1<<8] }
			codes[i] = pair(point(2*i), point(2*i+1)) | upper16(from[74+4*g+i])
		}
		b.put(g, codes)
	}
}

func recodeIQ1_S(b codeBlock, from []byte) {
	copy(b.d, from[:2])
	for g := range b.scales {
		word := binary.LittleEndian.Uint16(from[34+2*g:])
		b.scales[g] = odd(byte(word >> 12 & 7))
		var codes [4]uint64
		for i := range codes {
			codes[i] = numbersIQ1[int(from[2+4*g+i])|int(word>>(3*i)&7)<<8] | upper(-byte(word>>15))
		}
		b.put(g, codes)
	}
}

func recodeIQ1_M(b codeBlock, from []byte) {
	clear(b.d)
	for i := range 4 {
		word := binary.LittleEndian.Uint16(from[48+2*i:])
		b.d[i/2] |= byte(word>>12) << (4 * (i % 2))
		for j := range 4 {
			b.scales[4*i+j] = odd(byte(word >> (3 * j) & 7))
		}
	}
	for g := range codeWeights / 32 {
		var codes [4]uint64
		for i := range codes {
			nibble := int(from[32+2*g+i/2] >> (4 * (i % 2)) & 15)
			codes[i] = numbersIQ1[int(from[4*g+i])|nibble&7<<8] | upper(-byte(nibble>>3))
		}
		b.put(g, codes)
	}
}

// nibbles writes the odd scales of two groups for each byte.
func nibbles(scales, from []byte) {
	for i := range scales {
		scales[i] = odd(from[i/2] >> (4 * (i % 2)) & 15)
	}
}
