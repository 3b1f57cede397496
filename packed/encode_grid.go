package packed

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"tgc/internal/lists"
)

// Types whose codes name points of a grid. A super-block is put together as in
// encode_super.go; what is their own is how the values of a group become points: signs are
// split off, each value is rounded to the nearest coordinate that the grid has at all, and
// of the points near that one the closest to the values is taken.

// gridFit rounds groups to points of a grid.
type gridFit struct {
	grid    func() *pointIndex
	signed  bool      // signs are apart, and coordinates magnitudes
	even    bool      // of eight signs an even number is minus
	shifts  []float64 // all coordinates of some values in a row may be shifted by one of these; nil: none
	shared  int       // values that share a shift
	anchors []float64
}

// nearPoints is how many points are looked at: with twice as many, errors of normal values
// are smaller by less than 0.3 %.
const nearPoints = 12

// pointIndex finds points of a grid.
type pointIndex struct {
	size   int         // coordinates of a point
	levels []float64   // that coordinates have, ascending
	points [][]float64 // by number
	// near are numbers of the points closest to every combination of levels, the
	// combination's digits with the first coordinate's last.
	near [][]uint16
}

// indexOf makes the index of a grid when it is first asked for.
func indexOf(table constTable) func() *pointIndex {
	return sync.OnceValue(func() *pointIndex { return newPointIndex(table) })
}

func newPointIndex(table constTable) *pointIndex {
	x := &pointIndex{size: int(table.shape[1])}
	for point := range slices.Chunk([]byte(table.data), x.size) {
		x.points = append(x.points, lists.Map(point, func(b byte) float64 { return float64(int8(b)) }))
	}
	for _, p := range x.points {
		x.levels = append(x.levels, p...)
	}
	slices.Sort(x.levels)
	x.levels = slices.Compact(x.levels)
	combinations := int(math.Pow(float64(len(x.levels)), float64(x.size)))
	x.near = make([][]uint16, combinations)
	at := make([]float64, x.size)
	for n := range x.near {
		rest := n
		for i := range at {
			at[i] = x.levels[rest%len(x.levels)]
			rest /= len(x.levels)
		}
		x.near[n] = x.closest(at)
	}
	return x
}

// closest lists the points closest to one place, the closest first.
func (x *pointIndex) closest(at []float64) []uint16 {
	type candidate struct {
		number  uint16
		squares float64
	}
	best := make([]candidate, 0, nearPoints+1)
	for n, p := range x.points {
		squares := 0.0
		for i, v := range at {
			squares += (v - p[i]) * (v - p[i])
		}
		if len(best) == nearPoints && squares >= best[nearPoints-1].squares {
			continue
		}
		place, _ := slices.BinarySearchFunc(best, squares, func(c candidate, s float64) int { return cmp.Compare(c.squares, s) })
		best = slices.Insert(best, place, candidate{uint16(n), squares})
		best = best[:min(len(best), nearPoints)]
	}
	return lists.Map(best, func(c candidate) uint16 { return c.number })
}

// number is that of a point close to v.
func (x *pointIndex) number(v []float64) int {
	combination := 0
	for i := len(v) - 1; i >= 0; i-- {
		level := 0
		for level+1 < len(x.levels) && v[i] > (x.levels[level]+x.levels[level+1])/2 {
			level++
		}
		combination = combination*len(x.levels) + level
	}
	best, least := 0, math.Inf(1)
	for _, n := range x.near[combination] {
		squares := 0.0
		for i, c := range x.points[n] {
			squares += (v[i] - c) * (v[i] - c)
		}
		if squares < least {
			best, least = int(n), squares
		}
	}
	return best
}

// eight is how eight values are rounded: numbers of one or two points, which signs are
// minus (bit i of value i), and the levels that come out.
type eight struct {
	points [2]int
	signs  byte
	shift  int // number of it
	levels [8]float64
}

// round rounds eight values to levels of a scale, shifted by the shift of that number.
func (f *gridFit) round(values []float32, scale float64, shift int) (r eight) {
	index, inverse, by := f.grid(), 1/scale, 0.0
	if r.shift = shift; f.shifts != nil {
		by = f.shifts[shift]
	}
	var v [8]float64
	for i := range v {
		v[i] = float64(values[i])*inverse - by
		if f.signed && v[i] < 0 {
			v[i] = -v[i]
			r.signs |= 1 << i
		}
	}
	if f.even && parity(r.signs) {
		// One value takes the wrong sign: the smallest.
		least := 0
		for i := range v {
			if v[i] < v[least] {
				least = i
			}
		}
		v[least] = -v[least]
		r.signs ^= 1 << least
	}
	for at := 0; at < 8; at += index.size {
		n := index.number(v[at : at+index.size])
		r.points[at/index.size] = n
		for i, level := range index.points[n] {
			if r.signs>>(at+i)&1 != 0 {
				level = -level
			}
			r.levels[at+i] = level + by
		}
	}
	return r
}

func parity(signs byte) bool {
	signs ^= signs >> 4
	signs ^= signs >> 2
	return (signs^signs>>1)&1 != 0
}

// roundAll rounds the values of a group into list with, for each run that shares one, the
// shift that suits them best.
func (f *gridFit) roundAll(values []float32, scale float64, list []eight) (total sums) {
	run := f.shared
	if run == 0 {
		run = len(values)
	}
	for at := 0; at < len(values); at += run {
		least := sums{squares: math.Inf(1)}
		for shift := range max(len(f.shifts), 1) {
			var rounded [4]eight // the longest groups are of 32
			var found sums
			for n := range run / 8 {
				v := values[at+8*n : at+8*n+8]
				rounded[n] = f.round(v, scale, shift)
				for i, x := range v {
					found.add(float64(x), rounded[n].levels[i], scale)
				}
			}
			if found.squares < least.squares {
				least = found
				copy(list[at/8:], rounded[:run/8])
			}
		}
		total.squares += least.squares
		total.xq += least.xq
		total.qq += least.qq
	}
	return total
}

func (f *gridFit) residual(values []float32, scale float64) sums {
	var list [4]eight
	return f.roundAll(values, scale, list[:])
}

// scale is never negative: steps of scales are not, and points are looked for with the sign.
func (f *gridFit) scale(values []float32) float64 {
	return bestScale(f, values, f.anchors, true, math.Abs)
}

// rounded are all values of a block, eight by eight.
func (s *superFit) rounded(b *superBlock, values, kept []float32) (list []eight) {
	fit := s.fit.(*gridFit)
	for g := range len(values) / s.group {
		at := g * s.group
		scale := b.d * s.steps[b.codes[g]]
		if scale == 0 {
			scale = 1 // any points will do: what they stand for is 0
		}
		some := make([]eight, s.group/8)
		fit.roundAll(values[at:at+s.group], scale, some)
		step := float32(b.d) * float32(s.steps[b.codes[g]])
		for n, r := range some {
			for i, level := range r.levels {
				kept[at+8*n+i] = step * float32(level)
			}
		}
		list = append(list, some...)
	}
	return list
}

// quarterSteps are (code + 1/2) * by for codes of four bits.
func quarterSteps(by float64) []float64 {
	return lists.Map(integerSteps(0, 15), func(i float64) float64 { return (i + 0.5) * by })
}

// oddSteps are 2*code + 1.
func oddSteps(codes int) []float64 {
	return lists.Map(integerSteps(0, codes-1), func(i float64) float64 { return 2*i + 1 })
}

// anchorsFrom are levels, given as parts of the outermost one of a grid.
func anchorsFrom(outermost float64, parts ...float64) []float64 {
	return lists.Map(parts, func(p float64) float64 { return p * outermost })
}

var (
	anchors2 = anchorsFrom(43, 1, 1.15, 1.3, 1.5, 1.75, 0.9, 0.8, 0.65, 2.1)
	anchors3 = anchorsFrom(1, 0.95, 1, 0.9, 1.05, 0.85, 1.12, 0.78, 1.2)
	anchors1 = anchorsFrom(1.125, 1, 1.2, 1.45, 1.7, 2, 2.4)

	fitIQ2XXS = superFit{group: 32, steps: quarterSteps(0.25), fit: &gridFit{grid: indexOf(gridIQ2XXS), signed: true, even: true, anchors: anchors2}}
	fitIQ2XS  = superFit{group: 16, steps: quarterSteps(0.25), fit: &gridFit{grid: indexOf(gridIQ2XS), signed: true, even: true, anchors: anchors2}}
	fitIQ2S   = superFit{group: 16, steps: quarterSteps(0.25), fit: &gridFit{grid: indexOf(gridIQ2S), signed: true, anchors: anchors2}}
	fitIQ3XXS = superFit{group: 32, steps: quarterSteps(0.5), fit: &gridFit{
		grid: indexOf(gridIQ3XXS), signed: true, even: true, anchors: anchorsFrom(62, anchors3...),
	}}
	fitIQ3S = superFit{group: 32, steps: oddSteps(16), fit: &gridFit{grid: indexOf(gridIQ3S), signed: true, anchors: anchorsFrom(15, anchors3...)}}
	fitIQ1S = superFit{group: 32, steps: oddSteps(8), fit: &gridFit{grid: gridOf1, shifts: eighths, shared: 32, anchors: anchors1}}
	fitIQ1M = superFit{group: 16, steps: oddSteps(8), fit: &gridFit{grid: gridOf1, shifts: eighths, shared: 8, anchors: anchors1}}

	gridOf1 = indexOf(gridIQ1)
	eighths = []float64{0.125, -0.125}
)

// putSeven adds the signs of eight to a word that holds seven for each of four, and the
// scale on top.
func putSeven(block []byte, some []eight, code int) {
	word := uint32(code) << 28
	for n, r := range some {
		word |= uint32(r.signs&127) << (7 * n)
	}
	binary.LittleEndian.PutUint32(block, word)
}

// putNibble stores a code of four bits.
func putNibble(block []byte, n, code int) { block[n/2] |= byte(code) << (4 * (n % 2)) }

func encodeIQ2_XXS(block []byte, values, kept []float32) {
	b := fitIQ2XXS.block(values)
	putHalf(block, b.d)
	list := fitIQ2XXS.rounded(b, values, kept)
	for g := range 8 {
		some := list[4*g : 4*g+4]
		for n, r := range some {
			block[2+8*g+n] = byte(r.points[0])
		}
		putSeven(block[6+8*g:], some, b.codes[g])
	}
}

func encodeIQ2_XS(block []byte, values, kept []float32) {
	b := fitIQ2XS.block(values)
	clear(block)
	putHalf(block, b.d)
	for n, r := range fitIQ2XS.rounded(b, values, kept) {
		binary.LittleEndian.PutUint16(block[2+2*n:], uint16(r.points[0])|uint16(r.signs&127)<<9)
	}
	for g, code := range b.codes {
		putNibble(block[66:], g, code)
	}
}

func encodeIQ2_S(block []byte, values, kept []float32) {
	b := fitIQ2S.block(values)
	clear(block)
	putHalf(block, b.d)
	for n, r := range fitIQ2S.rounded(b, values, kept) {
		block[2+n] = byte(r.points[0])
		block[34+n] = r.signs
		block[66+n/4] |= byte(r.points[0]>>8) << (2 * (n % 4))
	}
	for g, code := range b.codes {
		putNibble(block[74:], g, code)
	}
}

func encodeIQ3_XXS(block []byte, values, kept []float32) {
	b := fitIQ3XXS.block(values)
	putHalf(block, b.d)
	list := fitIQ3XXS.rounded(b, values, kept)
	for n, r := range list {
		block[2+2*n], block[3+2*n] = byte(r.points[0]), byte(r.points[1])
	}
	for g := range 8 {
		putSeven(block[66+4*g:], list[4*g:4*g+4], b.codes[g])
	}
}

func encodeIQ3_S(block []byte, values, kept []float32) {
	b := fitIQ3S.block(values)
	clear(block)
	putHalf(block, b.d)
	for n, r := range fitIQ3S.rounded(b, values, kept) {
		for i, point := range r.points {
			block[2+2*n+i] = byte(point)
			block[66+n/4] |= byte(point>>8) << (2*(n%4) + i)
		}
		block[74+n] = r.signs
	}
	for g, code := range b.codes[:8] {
		putNibble(block[106:], g, code)
	}
}

func encodeIQ1_S(block []byte, values, kept []float32) {
	b := fitIQ1S.block(values)
	putHalf(block, b.d)
	list := fitIQ1S.rounded(b, values, kept)
	for g := range 8 {
		word := uint16(b.codes[g])<<12 | uint16(list[4*g].shift)<<15
		for n, r := range list[4*g : 4*g+4] {
			block[2+4*g+n] = byte(r.points[0])
			word |= uint16(r.points[0]>>8) << (3 * n)
		}
		binary.LittleEndian.PutUint16(block[34+2*g:], word)
	}
}

// The f16 scale of IQ1_M is spread over the top nibbles of its words of scales.
func encodeIQ1_M(block []byte, values, kept []float32) {
	b := fitIQ1M.block(values)
	clear(block)
	for n, r := range fitIQ1M.rounded(b, values, kept) {
		block[n] = byte(r.points[0])
		putNibble(block[32:], n, r.points[0]>>8|r.shift<<3)
	}
	var half [2]byte
	putHalf(half[:], b.d)
	for w := range 4 {
		word := binary.LittleEndian.Uint16(half[:]) >> (4 * w) & 15 << 12
		for i, code := range b.codes[4*w : 4*w+4] {
			word |= uint16(code) << (3 * i)
		}
		binary.LittleEndian.PutUint16(block[48+2*w:], word)
	}
}
