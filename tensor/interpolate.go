package tensor

import (
	"math"

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
// the other (bilinear is linear on both).
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
// integers, num/den, so that they are exact.
func (t *Tensor) resize(k, n, m int, mode Interpolation) *Tensor {
	if n == m && mode != LinearAlign || n == m {
		return t
	}
	dtype := ir.I32
	if 4*float64(n)*float64(m) > math.MaxInt32 {
		dtype = ir.I64
	}
	i := t.graph.Iota(dtype, t.graph.arena.Index(int64(m)))
	odd := i.MulScalar(2).AddScalar(1)
	var num *Tensor
	den := 2 * m
	switch mode {
	case Nearest:
		num, den = i.MulScalar(float64(n)), m
	case NearestExact:
		num = odd.MulScalar(float64(n))
	case Linear:
		num = odd.MulScalar(float64(n)).AddScalar(float64(-m)).Maximum(i.scalar(0))
	case LinearAlign:
		num, den = i.MulScalar(float64(n-1)), max(m-1, 1)
	}
	if mode <= NearestExact && m%n == 0 {
		return t.RepeatInterleave(k, m/n) // plain movement
	}
	low := num.FloorDiv(num.scalar(float64(den)))
	a := t.Gather(k, low)
	if mode <= NearestExact {
		return a
	}
	b := t.Gather(k, low.AddScalar(1).Minimum(low.scalar(float64(n-1))))
	w := num.FloorMod(num.scalar(float64(den))).Cast(t.DType()).MulScalar(1 / float64(den))
	for range t.Rank() - 1 - k {
		w = w.Unsqueeze(-1)
	}
	return a.Add(b.Sub(a).Mul(w))
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
