package packed

import "math"

// Fits of one scale, or a scale and a minimum, to a group of values. A fit tries
// scales which put the outermost value on a chosen level, rounds all values to
// levels, and then solves for the scale that is best for those levels (least
// squares). The levels that are tried reach a little past the last one: cutting
// the tip of one value is often worth finer steps for all.

// signedFit says how values become signed integers q with x = scale * q.
type signedFit struct {
	lo, hi int
	// anchors are the levels on which the outermost value is put, the usual one
	// first. Those of whole numbers also recognise values that lie on a coarser
	// grid already.
	anchors []float64
	// refine also tries the least-squares scale of every anchor.
	refine bool
	// store rounds a scale to what the block can hold.
	store func(float64) float64
}

// residual returns the sum of squared differences if values are rounded to
// levels of scale, and the scale that suits those levels best.
func (s *signedFit) residual(values []float32, scale float64) (squares, better float64) {
	var xq, qq float64
	inverse := 1 / scale
	for _, v := range values {
		x := float64(v)
		q := min(max(math.RoundToEven(x*inverse), float64(s.lo)), float64(s.hi))
		difference := x - scale*q
		squares += difference * difference
		xq += x * q
		qq += q * q
	}
	if qq > 0 {
		better = xq / qq
	}
	return squares, better
}

// scale finds the best scale; 0 if no other is better than that.
func (s *signedFit) scale(values []float32) float64 {
	outermost := extreme(values)
	best, least := 0.0, sumSquares(values)
	try := func(scale float64) (better float64) {
		if scale == 0 || math.IsInf(1/scale, 0) {
			return 0
		}
		squares, better := s.residual(values, scale)
		if squares < least {
			best, least = scale, squares
		}
		return better
	}
	for _, anchor := range s.anchors {
		better := try(s.store(outermost / anchor))
		if s.refine {
			try(s.store(better))
		}
		if least == 0 {
			break
		}
	}
	return best
}

func sumSquares(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return sum
}

// unsignedFit says how values become integers q of 0..top with
// x = scale*q - minimum and a minimum of at least 0.
type unsignedFit struct {
	top     int
	anchors []float64 // levels on which the largest value is put
}

// fit finds scale and minimum of the least squared difference.
func (u *unsignedFit) fit(values []float32) (scale, minimum float64) {
	low, high := 0.0, 0.0
	for i, v := range values {
		x := float64(v)
		low = min(low, x)
		if i == 0 || x > high {
			high = x
		}
	}
	minimum, least := -low, math.Inf(1)
	if high <= low { // all values alike, and none above 0
		return 0, minimum
	}
	for _, anchor := range u.anchors {
		s, m := (high-low)/anchor, -low
		for range 2 {
			squares, nextScale, nextMinimum := u.residual(values, s, m)
			if squares < least {
				scale, minimum, least = s, m, squares
			}
			if s, m = nextScale, nextMinimum; s <= 0 {
				break
			}
		}
		if least == 0 {
			break
		}
	}
	return scale, minimum
}

// residual returns the sum of squared differences, and scale and minimum that
// suit the levels best: the line through (q, x), or through 0 if its minimum
// were negative.
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
	if nextMinimum < 0 && qq > 0 {
		nextScale, nextMinimum = xq/qq, 0
	}
	return squares, nextScale, nextMinimum
}
