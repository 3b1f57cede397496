package packed

import (
	"math"
	"slices"
)

// Fits of one scale, or a scale and a minimum, to a group of values. A fit tries
// scales which put the outermost value on a chosen level, rounds all values to
// levels, and then solves for the scale that is best for those levels (least
// squares). The levels that are tried reach a little past the last one: cutting
// the tip of one value is often worth finer steps for all.

// groupFit rounds the values of a group to levels of a scale.
type groupFit interface {
	// residual is what is left of the values, and the sums that tell a better scale.
	residual(values []float32, scale float64) sums
	// scale is the best one for a group alone, 0 if no other is better than that.
	scale(values []float32) float64
}

// sums are those of values x and the levels q that they were rounded to.
type sums struct{ squares, xq, qq float64 } // of differences, of x*q, of q*q

// add counts a value x that is rounded to level q of a scale.
func (s *sums) add(x, q, scale float64) {
	difference := x - scale*q
	s.squares += difference * difference
	s.xq += x * q
	s.qq += q * q
}

// better is the scale that suits the levels best.
func (s sums) better() float64 {
	if s.qq == 0 {
		return 0
	}
	return s.xq / s.qq
}

// signedFit says how values become levels q of both signs with x = scale * q.
type signedFit struct {
	lo, hi int         // the levels are integers from lo to hi,
	table  *levelTable // or those of a table, by number
	// anchors are the levels on which the outermost value is put, the usual one
	// first. Those of whole numbers also recognise values that lie on a coarser
	// grid already.
	anchors []float64
	// refine also tries the least-squares scale of every anchor.
	refine bool
	// store rounds a scale to what the block can hold; nil for as it is.
	store func(float64) float64
}

func (s *signedFit) residual(values []float32, scale float64) (total sums) {
	inverse := 1 / scale
	for _, v := range values {
		x := float64(v)
		if s.table != nil {
			total.add(x, s.table.levels[s.table.number(x*inverse)], scale)
			continue
		}
		total.add(x, min(max(math.RoundToEven(x*inverse), float64(s.lo)), float64(s.hi)), scale)
	}
	return total
}

// code is the integer, or the number in the table, that stands for a value; of scale 0
// that of zero, or what is next to it.
func (s *signedFit) code(v float32, scale float64) int {
	if scale == 0 {
		v, scale = 0, 1
	}
	if x := float64(v) * (1 / scale); s.table != nil {
		return s.table.number(x)
	} else {
		return nearest(x, s.lo, s.hi)
	}
}

func (s *signedFit) scale(values []float32) float64 {
	return bestScale(s, values, s.anchors, s.refine, s.store)
}

// bestScale tries scales which put the outermost value on each anchor, and those that
// suit the levels found so.
func bestScale(fit groupFit, values []float32, anchors []float64, refine bool, store func(float64) float64) float64 {
	outermost := extreme(values)
	best, least := 0.0, sumSquares(values)
	try := func(scale float64) (better float64) {
		if store != nil {
			scale = store(scale)
		}
		if scale == 0 || math.IsInf(1/scale, 0) {
			return 0
		}
		found := fit.residual(values, scale)
		if found.squares < least {
			best, least = scale, found.squares
		}
		return found.better()
	}
	for _, anchor := range anchors {
		better := try(outermost / anchor)
		if refine {
			try(better)
		}
		if least == 0 {
			break
		}
	}
	return best
}

// levelTable are levels that are no integers in a row.
type levelTable struct {
	levels []float64 // ascending
	middle []float64 // between a level and the next one
	first  [256]int  // number of the level of -128, -127 .. 127
}

func newLevelTable(table constTable) *levelTable {
	t := &levelTable{}
	for i, b := range []byte(table.data) {
		t.levels = append(t.levels, float64(int8(b)))
		if i > 0 {
			t.middle = append(t.middle, (t.levels[i-1]+t.levels[i])/2)
		}
	}
	for i := range t.first {
		at, _ := slices.BinarySearch(t.middle, float64(i-128))
		t.first[i] = at
	}
	return t
}

// number is that of the level closest to x.
func (t *levelTable) number(x float64) int {
	n := t.first[int(math.Floor(min(max(x, -128), 127)))+128]
	for n < len(t.middle) && x > t.middle[n] {
		n++
	}
	return n
}

func sumSquares(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return sum
}

// unsignedFit says how values become integers q of 0..top with
// x = scale*q - minimum.
type unsignedFit struct {
	top     int
	anchors []float64 // levels on which the largest value is put
	rounds  int       // how often scale and minimum are solved for again
	// signed lets minima be negative; else they are at least 0.
	signed bool
	// store rounds scale and minimum to what the block can hold; nil for as they are.
	store func(float64) float64
}

// fit finds scale and minimum of the least squared difference.
func (u *unsignedFit) fit(values []float32) (scale, minimum float64) {
	low, high := float64(values[0]), float64(values[0])
	for _, v := range values {
		low, high = min(low, float64(v)), max(high, float64(v))
	}
	if !u.signed {
		low = min(low, 0)
	}
	if high <= low { // all values alike
		return 0, u.stored(-low)
	}
	least := sumSquares(values)
	for _, anchor := range u.anchors {
		s, m := (high-low)/anchor, -low
		for range u.rounds {
			if s, m = u.stored(s), u.stored(m); s <= 0 {
				break
			}
			squares, nextScale, nextMinimum := u.residual(values, s, m)
			if squares < least {
				scale, minimum, least = s, m, squares
			}
			s, m = nextScale, nextMinimum
		}
		if least == 0 {
			break
		}
	}
	return scale, minimum
}

func (u *unsignedFit) stored(v float64) float64 {
	if u.store == nil {
		return v
	}
	return u.store(v)
}

// residual returns the sum of squared differences, and scale and minimum that
// suit the levels best: the line through (q, x), or through 0 if its minimum
// were negative and must not be.
func (u *unsignedFit) residual(values []float32, scale, minimum float64) (squares, nextScale, nextMinimum float64) {
	var x1, q1, xq, qq float64
	inverse := 1 / scale
	for _, v := range values {
		x := float64(v)
		q := min(max(math.RoundToEven((x+minimum)*inverse), 0), float64(u.top))
		difference := x - (scale*q - minimum)
		squares += difference * difference
		x1 += x
		q1 += q
		xq += x * q
		qq += q * q
	}
	n := float64(len(values))
	if spread := n*qq - q1*q1; spread > 0 {
		nextScale = (n*xq - x1*q1) / spread
		nextMinimum = (nextScale*q1 - x1) / n
	}
	if nextMinimum < 0 && qq > 0 && !u.signed {
		nextScale, nextMinimum = xq/qq, 0
	}
	return squares, nextScale, nextMinimum
}
