package tensor

import (
	"math"
	"slices"

	"tgc/ir"
)

// Interpolation says where the elements of a resized axis come from.
type Interpolation uint8

// The interpolations. i is a position of the result, n and m are the extents of
// the source and of the result.
const (
	Nearest      Interpolation = iota // floor(i*n/m)
	NearestExact                      // floor((i+1/2)*n/m)
	Linear                            // between the neighbours of (i+1/2)*n/m - 1/2
	LinearAlign                       // between the neighbours of i*(n-1)/(m-1): corners stay
)

// Interpolate resizes the axes from 2 on of t [N, C, ..] to size, one axis after
// the other (bilinear is linear on both). The work is two products an element and axis.
func (t *Tensor) Interpolate(mode Interpolation, size ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() != 2+len(size) || mode > LinearAlign {
		return t.graph.fail("interpolate", "%s to %v; want [N C ..] and a size for each further axis", t, size)
	}
	out := t.wide()
	for i, m := range size {
		n := t.Extent(2 + i)
		if n < 1 || m < 1 {
			return t.graph.fail("interpolate", "%s to %v", t, size)
		}
		out = out.resize(2+i, n, m, mode)
	}
	return out.Cast(t.DType())
}

// resize interpolates axis k from n to m elements. Positions are fractions of
// integers in lowest terms, so that they are exact, and neighbours a few elements apart
// are seen to be.
func (t *Tensor) resize(k, n, m int, mode Interpolation) *Tensor {
	if n == m {
		return t
	}
	if mode <= NearestExact && m%n == 0 {
		return t.RepeatInterleave(k, m/n) // plain movement
	}
	step, start, den := n, 0, m // position i is (i*step + start) / den
	switch mode {
	case NearestExact:
		step, start, den = 2*n, n, 2*m
	case Linear:
		step, start, den = 2*n, n-m, 2*m
	case LinearAlign:
		step, den = n-1, max(m-1, 1)
	}
	if step%den == 0 && step > den {
		from := float64(start) / float64(den)
		if mode <= NearestExact {
			from = math.Floor(from)
		}
		return t.strided(k, m, step/den, from)
	}
	common := int(ir.GCD(ir.GCD(int64(step), int64(start)), int64(den)))
	low, w := t.positions(m, step/common, start/common, den/common)
	if mode <= NearestExact {
		return t.Gather(k, low)
	}
	// The elements at the ends are their own neighbours: one more of each, and no index
	// has to be kept inside.
	padded := t.padEdge(k, 1, 1, PadReplicate).Contiguous()
	a, b := padded.Gather(k, low.AddScalar(1)), padded.Gather(k, low.AddScalar(2))
	for range t.Rank() - 1 - k {
		w = w.Unsqueeze(-1)
	}
	return a.Add(b.Sub(a).Mul(w))
}

// strided interpolates axis k at m positions from start on, step apart, with no gather: of a start between two
// elements all positions lie as far from them.
func (t *Tensor) strided(k, m, step int, start float64) *Tensor {
	at, between := math.Modf(start)
	first, reach := int(at), (m-1)*step+1
	if between == 0 {
		return t.SliceInts(k, first, reach).every(k, step)
	}
	weights := slices.Repeat([]int{1}, t.Rank()-k)
	weights[0] = 2
	both := t.SliceInts(k, first, reach+1).windows(k, window{size: 2, stride: step, dilation: 1})
	return both.Mul(t.graph.Table(t.DType(), []float64{1 - between, between}, weights...)).Sum(k + 1)
}

// mostPositions is how many positions are a table: a vector has no division of integers.
// 64 planes of 56 x 56 to 97 x 97, nearest: 230 us against 900 on one Zen 5 core.
const mostPositions = 1 << 14

// positions are floor((i*step + start) / den), i < m, and what is left, as a fraction.
func (t *Tensor) positions(m, step, start, den int) (low, fraction *Tensor) {
	g, dtype := t.graph, ir.I32
	if 2*float64(step)*float64(m) > math.MaxInt32 {
		dtype = ir.I64
	}
	num := g.Iota(dtype, g.arena.Index(int64(m))).MulScalar(float64(step)).AddScalar(float64(start))
	by := num.scalar(float64(den))
	low = num.FloorDiv(by)
	if m > mostPositions {
		return low, num.FloorMod(by).Cast(t.DType()).MulScalar(1 / float64(den))
	}
	lows, fractions := make([]float64, m), make([]float64, m)
	for i := range lows {
		lows[i] = math.Floor(float64(i*step+start) / float64(den))
		fractions[i] = (float64(i*step+start) - lows[i]*float64(den)) / float64(den)
	}
	if step == 0 || den%step != 0 && step%den != 0 { // else neighbours are seen to be near each other
		low = g.Table(ir.I32, lows, m)
	}
	return low, g.Table(t.DType(), fractions, m)
}

// PixelShuffle moves channels into space: [N, C*f*f, H, W] to [N, C, H*f, W*f]
// (Shi et al. 2016).
func (t *Tensor) PixelShuffle(factor int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() != 4 || factor < 1 || t.Extent(1)%(factor*factor) != 0 {
		return t.graph.fail("pixel_shuffle", "%s by %d; want [N C*f*f H W]", t, factor)
	}
	return t.Unflatten(1, -1, factor, factor).Permute(0, 1, 4, 2, 5, 3).Flatten(4, 5).Flatten(2, 3)
}

// Glu is the first half of an axis times the sigmoid of the second (Dauphin et
// al. 2017).
func (t *Tensor) Glu(axis int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || t.Extent(k)%2 != 0 {
		return t.graph.fail("glu", "axis %d of %s, want an even extent", axis, t)
	}
	halves := t.Split(k, t.Extent(k)/2, t.Extent(k)/2)
	return halves[0].Mul(halves[1].Sigmoid())
}
