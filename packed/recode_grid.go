package packed

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"tgc/internal/lists"
	"tgc/ir"
)

// Types of grids with a code of four bits for each weight: the number of its level in a table of 8 or 16. Grids make blocks small,
// and cost a core more to read than memory does: a load for every four or eight weights, and their signs.

// The levels of grids.
var (
	levelsIQ2    = []int8{8, 25, 43}
	levelsIQ3XXS = []int8{4, 12, 20, 28, 36, 44, 52, 62}
	levelsIQ3S   = []int8{1, 3, 5, 7, 9, 11, 13, 15}
	levelsIQ1    = []int8{-1, 0, 1}
)

// gridCodes are the rows. A sign, or that a value is moved down, is the upper half of the table.
var gridCodes = []code{
	gridCode("IQ2_XXS", 32, 1.0/8, signed(4, levelsIQ2), scalesOfWords(6, 8), eightIQ2XXS),
	gridCode("IQ2_XS", 16, 1.0/8, signed(4, levelsIQ2), scalesOfNibbles(66), eightIQ2XS),
	gridCode("IQ2_S", 16, 1.0/8, signed(4, levelsIQ2), scalesOfNibbles(74), eightIQ2S),
	gridCode("IQ3_XXS", 32, 1.0/4, signed(8, levelsIQ3XXS), scalesOfWords(66, 4), eightIQ3XXS),
	gridCode("IQ3_S", 32, 1, signed(8, levelsIQ3S), scalesOfNibbles(106), eightIQ3S),
	gridCode("IQ1_S", 32, 1.0/8, movedEighths, scalesIQ1S, eightIQ1S),
	gridCode("IQ1_M", 16, 1.0/8, movedEighths, scalesIQ1M, eightIQ1M),
}

// movedEighths are -1, 0 and 1 moved up by an eighth, then moved down by one, times 8.
var movedEighths = int8Table(-7, 1, 9, 0, -9, -1, 7, 0)

// signed are levels in half a table, and negated in the other half.
func signed(half int, levels []int8) constTable {
	table := make([]int8, 2*half)
	for i, level := range levels {
		table[i], table[half+i] = level, -level
	}
	return int8Table(table...)
}

// codeBlock is the number of weights of a block; codeGroup that of those whose nibbles lie together, as in IQ4_XS.
const (
	codeBlock = 256
	codeGroup = 32
)

// gridCode is a row: a f16 scale, a byte for each group of weights, and nibbles; value = d * scale * step * level, where scale
// is odd (2*sc+1 in all types of grids). scales writes both kinds of them, and eight gives the codes of weights 8*i to 8*i+7, a byte each.
func gridCode(of string, group int, step float64, levels constTable, scales func(d, scales, from []byte), eight func(from []byte, i int) uint64) code {
	groups := codeBlock / group
	first := 2 + groups // of the nibbles
	return code{of: of,
		to: &Format{
			Name: of + "_codes", BlockElems: codeBlock, BlockBytes: first + codeBlock/2,
			Fields: []Field{
				{Name: "d", DType: ir.F16, Count: 1, Offset: 0},
				{Name: "scales", DType: ir.U8, Count: groups, Offset: 2},
				{Name: "qs", DType: ir.U8, Count: codeBlock / 2, Offset: first},
			},
			decode: func(d *decoder) *ir.UOp {
				sc := d.f32(d.field("scales", d.digit(int64(group), int64(groups))))
				b := d.field("qs", d.mix(d.digit(32, 8), 16, d.digit(1, 16), 1))
				level := d.pick(levels, d.bits(b, d.digit(16, 2), 4, int64(len(levels.data)-1)))
				return d.product(d.scale("d"), d.a.Mul(sc, d.const32(step)), d.f32(level))
			},
		},
		recode: func(to, from []byte) {
			scales(to[:2], to[2:first], from)
			for g := range codeBlock / codeGroup {
				low := [2]uint64{eight(from, 4*g), eight(from, 4*g+1)}
				high := [2]uint64{eight(from, 4*g+2), eight(from, 4*g+3)}
				putWords(to[first+16*g:], []uint64{low[0] | high[0]<<4, low[1] | high[1]<<4})
			}
		},
	}
}

// odd is 2*sc + 1.
func odd(sc byte) byte { return 2*sc + 1 }

// scalesOfWords are in the upper four bits of words some bytes apart.
func scalesOfWords(first, stride int) func(d, scales, from []byte) {
	return func(d, scales, from []byte) {
		copy(d, from)
		for g := range scales {
			scales[g] = odd(from[first+stride*g+3] >> 4)
		}
	}
}

// scalesOfNibbles are two in a byte.
func scalesOfNibbles(first int) func(d, scales, from []byte) {
	return func(d, scales, from []byte) {
		copy(d, from)
		for g := range scales {
			scales[g] = odd(from[first+g/2] >> (4 * (g % 2)) & 15)
		}
	}
}

func scalesIQ1S(d, scales, from []byte) {
	copy(d, from)
	for g := range scales {
		scales[g] = odd(byte(word16(from, 34+2*g) >> 12 & 7))
	}
}

func scalesIQ1M(d, scales, from []byte) {
	clear(d)
	for i := range 4 {
		word := word16(from, 48+2*i)
		d[i/2] |= byte(word>>12) << (4 * (i % 2))
		for j := range 4 {
			scales[4*i+j] = odd(byte(word >> (3 * j) & 7))
		}
	}
}

func word16(from []byte, at int) uint16 { return binary.LittleEndian.Uint16(from[at:]) }
func word32(from []byte, at int) uint32 { return binary.LittleEndian.Uint32(from[at:]) }

// numbered are the points of a grid, each as the numbers of its levels, a byte each.
func numbered(points constTable, levels []int8) func() []uint64 {
	return sync.OnceValue(func() []uint64 {
		n := int(points.shape[1])
		return lists.Make(int(points.shape[0]), func(i int) (word uint64) {
			for k, value := range []byte(points.data[n*i : n*(i+1)]) {
				word |= uint64(slices.Index(levels, int8(value))) << (8 * k)
			}
			return word
		})
	})
}

var (
	numbersIQ2XXS = numbered(gridIQ2XXS, levelsIQ2)
	numbersIQ2XS  = numbered(gridIQ2XS, levelsIQ2)
	numbersIQ2S   = numbered(gridIQ2S, levelsIQ2)
	numbersIQ3XXS = numbered(gridIQ3XXS, levelsIQ3XXS)
	numbersIQ3S   = numbered(gridIQ3S, levelsIQ3S)
	numbersIQ1    = numbered(gridIQ1, levelsIQ1)
)

// evenSignsOf are eight signs of which the last makes their number even.
func evenSignsOf(seven uint32) byte {
	signs := byte(seven & 127)
	return signs | byte(bits.OnesCount8(signs)&1)<<7
}

// upper marks the codes of eight weights that are in the upper half of a table of 8, and upper16 of one of 16.
func upper(which byte) uint64   { return spreadBits[which] << 2 }
func upper16(which byte) uint64 { return spreadBits[which] << 3 }

func eightIQ2XXS(from []byte, i int) uint64 {
	at := 2 + 8*(i/4)
	return numbersIQ2XXS()[from[at+i%4]] | upper(evenSignsOf(word32(from, at+4)>>(7*(i%4))))
}

func eightIQ2XS(from []byte, i int) uint64 {
	word := word16(from, 2+2*i)
	return numbersIQ2XS()[word&511] | upper(evenSignsOf(uint32(word>>9)))
}

func eightIQ2S(from []byte, i int) uint64 {
	high := from[66+i/4] >> (2 * (i % 4)) & 3
	return numbersIQ2S()[int(from[2+i])|int(high)<<8] | upper(from[34+i])
}

func eightIQ3XXS(from []byte, i int) uint64 {
	points := numbersIQ3XXS()
	signs := evenSignsOf(word32(from, 66+4*(i/4)) >> (7 * (i % 4)))
	return points[from[2+2*i]] | points[from[3+2*i]]<<32 | upper16(signs)
}

func eightIQ3S(from []byte, i int) uint64 {
	points, high := numbersIQ3S(), int(from[66+i/4])>>(2*(i%4))
	return points[int(from[2+2*i])|high&1<<8] | points[int(from[3+2*i])|high>>1&1<<8]<<32 | upper16(from[74+i])
}

func eightIQ1S(from []byte, i int) uint64 {
	word := word16(from, 34+2*(i/4))
	return numbersIQ1()[int(from[2+i])|int(word>>(3*(i%4))&7)<<8] | upper(-byte(word>>15))
}

func eightIQ1M(from []byte, i int) uint64 {
	nibble := from[32+i/2] >> (4 * (i % 2)) & 15
	return numbersIQ1()[int(from[i])|int(nibble&7)<<8] | upper(-(nibble >> 3))
}
