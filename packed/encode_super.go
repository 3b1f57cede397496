package packed

import (
	"math"
	"slices"
)

// Super-blocks whose groups have a scale: x = d * step * level. Every group gets the scale
// that suits it; the f16 scale d is such that the outermost group's takes the outermost
// step; then each group's step is tried with its neighbours, since it moves every level;
// and at last d is solved for again with all steps fixed, as long as that helps.

// superFit says how a super-block is put together.
type superFit struct {
	fit   groupFit
	group int       // values of a group
	steps []float64 // what the codes of scales mean, ascending
}

// integerSteps are the integers from lo to hi.
func integerSteps(lo, hi int) []float64 {
	var steps []float64
	for i := lo; i <= hi; i++ {
		steps = append(steps, float64(i))
	}
	return steps
}

// superBlock is a candidate for a block: d, and a code for every group.
type superBlock struct {
	d     float64
	codes [16]int
	total sums // with steps among the levels
}

// again is how often d is solved for: more changes no block by a part in a thousand.
const again = 3

func (s *superFit) block(values []float32) *superBlock {
	wanted := make([]float64, 0, 16)
	for group := range slices.Chunk(values, s.group) {
		wanted = append(wanted, s.fit.scale(group))
	}
	best := s.with(values, wanted, toHalf(extreme(wanted)/extreme(s.steps)))
	for range again {
		next := s.with(values, wanted, toHalf(best.total.better()))
		if next.total.squares >= best.total.squares {
			break
		}
		best = next
	}
	return best
}

// with chooses codes for a given d.
func (s *superFit) with(values []float32, wanted []float64, d float64) *superBlock {
	b := &superBlock{d: d}
	for g, scale := range wanted {
		group := values[g*s.group : (g+1)*s.group]
		centre := 0
		if d != 0 {
			centre = s.closest(scale / d)
		}
		least := sums{squares: math.Inf(1)}
		for code := max(centre-1, 0); code <= min(centre+1, len(s.steps)-1); code++ {
			step := s.steps[code]
			found := sums{squares: sumSquares(group)}
			if d*step != 0 {
				found = s.fit.residual(group, d*step)
			}
			if found.squares < least.squares {
				b.codes[g], least = code, sums{found.squares, step * found.xq, step * step * found.qq}
			}
		}
		b.total.squares += least.squares
		b.total.xq += least.xq
		b.total.qq += least.qq
	}
	return b
}

// closest is the code of the step closest to v.
func (s *superFit) closest(v float64) int {
	at, _ := slices.BinarySearch(s.steps, v)
	if at == len(s.steps) || at > 0 && v-s.steps[at-1] < s.steps[at]-v {
		at--
	}
	return at
}

// levels returns the codes of all values where the groups' fit is a signed one, and notes
// what the block then holds.
func (s *superFit) levels(b *superBlock, values, kept []float32) []int {
	fit := s.fit.(*signedFit)
	codes := make([]int, len(values))
	for i, v := range values {
		step := s.steps[b.codes[i/s.group]]
		codes[i] = fit.code(v, b.d*step)
		level := float64(codes[i])
		if fit.table != nil {
			level = fit.table.levels[codes[i]]
		}
		kept[i] = float32(float32(b.d)*float32(step)) * float32(level)
	}
	return codes
}

// Q6_K: 16 groups of 16, levels -32..31, steps of an int8.
var fitQ6 = superFit{group: 16, steps: integerSteps(-128, 127), fit: &signedFit{
	lo: -32, hi: 31, refine: true, anchors: []float64{-32, -31.5, -31, -32.5},
}}

func encodeQ6_K(block []byte, values, kept []float32) {
	b := fitQ6.block(values)
	clear(block)
	for e, q := range fitQ6.levels(b, values, kept) {
		half, e2 := e/128, e%128
		u := byte(q + 32)
		block[64*half+e2%64] |= (u & 15) << (4 * (e2 / 64))
		block[128+32*half+e2%32] |= (u >> 4) << (2 * (e2 / 32))
	}
	for g, code := range b.codes {
		block[192+g] = byte(int8(code - 128))
	}
	putHalf(block[208:], b.d)
}

// Q3_K: 16 groups of 16, levels -4..3, steps of 6 bits. The outermost value is put on
// either end, as three levels lie on one side and four on the other.
var fitQ3K = superFit{group: 16, steps: integerSteps(-32, 31), fit: &signedFit{
	lo: -4, hi: 3, refine: true,
	anchors: []float64{-4, -3.75, -3.5, -3.25, -3, -2.75, -4.25, -4.5, -4.75, -5.25, 2.75, 3, 3.25, 3.5, -2, -1},
}}

func encodeQ3_K(block []byte, values, kept []float32) {
	b := fitQ3K.block(values)
	clear(block)
	for e, q := range fitQ3K.levels(b, values, kept) {
		u := byte(q + 4)
		block[32+32*(e/128)+e%32] |= (u & 3) << (2 * (e / 32 % 4))
		block[e%32] |= (u >> 2) << (e / 32)
	}
	scales := block[96:108] // low nibbles of groups g and g+8, then the upper two bits of all
	for g, code := range b.codes {
		scales[g%8] |= byte(code) & 15 << (4 * (g / 8))
		scales[8+g%4] |= byte(code) >> 4 << (2 * (g / 4))
	}
	putHalf(block[108:], b.d)
}

// IQ4_NL and IQ4_XS: levels of a table, whose ends are not alike.
var fitFourBit = signedFit{
	table: newLevelTable(fourBitLevels), refine: true,
	anchors: []float64{-127, -120, -112, -104, -97, -90, -83, -135, -144, 89, 96, 104, 113, 121, 130},
}

// fitIQ4NL is that of a block of its own, whose scale is an f16.
var fitIQ4NL = signedFit{table: fitFourBit.table, refine: true, anchors: fitFourBit.anchors, store: toHalf}

func encodeIQ4_NL(block []byte, values, kept []float32) {
	scale := fitIQ4NL.scale(values)
	clear(block)
	putHalf(block, scale)
	for i, v := range values {
		code := fitIQ4NL.code(v, scale)
		block[2+i%16] |= byte(code) << (4 * (i / 16))
		kept[i] = float32(scale) * float32(fitIQ4NL.table.levels[code])
	}
}

var fitIQ4XS = superFit{fit: &fitFourBit, group: 32, steps: integerSteps(-32, 31)}

func encodeIQ4_XS(block []byte, values, kept []float32) {
	b := fitIQ4XS.block(values)
	clear(block)
	putHalf(block, b.d)
	for e, code := range fitIQ4XS.levels(b, values, kept) {
		block[8+16*(e/32)+e%16] |= byte(code) << (4 * (e / 16 % 2))
	}
	for g, code := range b.codes[:8] {
		block[4+g/2] |= byte(code) & 15 << (4 * (g % 2))
		block[2+g/4] |= byte(code) >> 4 << (2 * (g % 4))
	}
}
