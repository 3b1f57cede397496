package main

import (
	"math"
	"math/rand/v2"
)

// size is the height and width of a picture in pixels.
const size = 28

// point is a position on a digit's canvas: 0..1 to the right and downward.
type point struct{ x, y float64 }

// stroke is a line through points.
type stroke []point

// shapes holds a few ways to write each digit, as people do.
var shapes = [10][][]stroke{
	0: {{arc(0.5, 0.5, 0.3, 0.4, 0, 360)}, {arc(0.5, 0.5, 0.22, 0.42, 20, 380)}},
	1: {{{{0.5, 0.1}, {0.5, 0.9}}}, {{{0.32, 0.28}, {0.55, 0.1}, {0.55, 0.9}}}, {{{0.32, 0.28}, {0.52, 0.1}, {0.52, 0.9}}, {{0.32, 0.9}, {0.72, 0.9}}}},
	2: {
		{join(arc(0.5, 0.32, 0.27, 0.22, 190, 400), stroke{{0.22, 0.9}, {0.8, 0.9}})},
		{join(arc(0.5, 0.33, 0.25, 0.23, 200, 420), stroke{{0.3, 0.8}}, arc(0.32, 0.82, 0.08, 0.08, 90, 400), stroke{{0.8, 0.9}})},
	},
	3: {
		{join(arc(0.48, 0.3, 0.24, 0.2, 200, 450), arc(0.48, 0.7, 0.28, 0.21, 270, 520))},
		{join(stroke{{0.22, 0.1}, {0.74, 0.1}, {0.45, 0.42}}, arc(0.46, 0.67, 0.28, 0.24, 280, 510))},
	},
	4: {
		{{{0.62, 0.1}, {0.2, 0.62}, {0.82, 0.62}}, {{0.64, 0.4}, {0.64, 0.92}}},
		{{{0.25, 0.12}, {0.24, 0.52}, {0.75, 0.52}}, {{0.74, 0.1}, {0.72, 0.92}}},
	},
	5: {
		{join(stroke{{0.76, 0.1}, {0.3, 0.1}, {0.27, 0.45}}, arc(0.48, 0.65, 0.28, 0.24, 230, 500))},
		{{{0.3, 0.1}, {0.76, 0.1}}, join(stroke{{0.3, 0.1}, {0.26, 0.5}}, arc(0.46, 0.67, 0.28, 0.22, 240, 510))},
	},
	6: {
		{join(stroke{{0.68, 0.1}, {0.38, 0.4}}, arc(0.5, 0.67, 0.25, 0.23, 200, 560))},
		{join(stroke{{0.58, 0.08}, {0.3, 0.45}, {0.26, 0.7}}, arc(0.5, 0.7, 0.24, 0.2, 180, 540))},
	},
	7: {
		{{{0.22, 0.1}, {0.78, 0.1}, {0.42, 0.9}}},
		{{{0.22, 0.12}, {0.78, 0.1}, {0.46, 0.9}}, {{0.36, 0.5}, {0.74, 0.5}}},
	},
	8: {
		{arc(0.5, 0.3, 0.22, 0.2, 0, 360), arc(0.5, 0.7, 0.27, 0.2, 0, 360)},
		{{{0.7, 0.16}, {0.5, 0.1}, {0.3, 0.2}, {0.34, 0.38}, {0.66, 0.6}, {0.72, 0.8}, {0.5, 0.92}, {0.28, 0.8}, {0.34, 0.6}, {0.66, 0.4}, {0.7, 0.2}}},
	},
	9: {
		{arc(0.48, 0.34, 0.25, 0.24, 0, 360), {{0.73, 0.34}, {0.7, 0.6}, {0.6, 0.92}}},
		{join(arc(0.5, 0.33, 0.25, 0.23, 0, 360), stroke{{0.75, 0.34}, {0.74, 0.7}}, arc(0.5, 0.72, 0.24, 0.18, 0, 150))},
	},
}

// arc is a part of an ellipse, angles in degrees, clockwise from the right.
func arc(cx, cy, rx, ry, from, to float64) stroke {
	const step = 30
	n := int(math.Ceil(math.Abs(to-from)/step)) + 1
	s := make(stroke, n)
	for i := range s {
		sin, cos := math.Sincos((from + (to-from)*float64(i)/float64(n-1)) * math.Pi / 180)
		s[i] = point{cx + rx*cos, cy + ry*sin}
	}
	return s
}

func join(parts ...stroke) stroke {
	var all stroke
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// draw makes picture number n of a series: a digit, written in some hand, turned,
// slanted, stretched and moved, with a pen of some width, on noisy paper. The
// picture (size*size values around 0..1) is a function of the numbers alone.
func draw(series, n uint64, into []float32) (digit int32) {
	r := rand.New(rand.NewPCG(series, n))
	digit = int32(r.IntN(10))
	hands := shapes[digit]
	lines := distort(hands[r.IntN(len(hands))], r)
	pen := 0.9 + 1.3*r.Float64() // radius in pixels
	dark := 0.7 + 0.3*r.Float64()
	noise := 0.02 + 0.1*r.Float64()
	for y := range size {
		for x := range size {
			d := distance(lines, float64(x)+0.5, float64(y)+0.5)
			ink := min(max(pen+0.5-d, 0), 1)
			into[y*size+x] = float32(dark*ink + noise*r.NormFloat64())
		}
	}
	return digit
}

// distort maps strokes from the canvas to pixels by a random affine map, with
// every point moved a little.
func distort(strokes []stroke, r *rand.Rand) []stroke {
	within := func(limit float64) float64 { return limit * (2*r.Float64() - 1) }
	sin, cos := math.Sincos(within(0.3))
	slant := within(0.3)
	width, height := 20*(1+within(0.25)), 22*(1+within(0.15))
	right, down := size/2+within(2.5), size/2+within(2.5)
	out := make([]stroke, len(strokes))
	for i, s := range strokes {
		for _, p := range s {
			x, y := (p.x-0.5+within(0.03))*width, (p.y-0.5+within(0.03))*height
			x += slant * y
			out[i] = append(out[i], point{right + cos*x - sin*y, down + sin*x + cos*y})
		}
	}
	return out
}

// distance is how far the nearest line is from a position, in pixels.
func distance(strokes []stroke, x, y float64) float64 {
	best := math.Inf(1)
	for _, s := range strokes {
		for i := 1; i < len(s); i++ {
			a, b := s[i-1], s[i]
			dx, dy := b.x-a.x, b.y-a.y
			along := 0.0
			if length := dx*dx + dy*dy; length > 0 {
				along = min(max(((x-a.x)*dx+(y-a.y)*dy)/length, 0), 1)
			}
			ex, ey := x-a.x-along*dx, y-a.y-along*dy
			best = min(best, ex*ex+ey*ey)
		}
	}
	return math.Sqrt(best)
}
