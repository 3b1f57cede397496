package nn

import (
	"math"

	"tgc/ir"
	"tgc/tensor"
)

// Pairing says which elements of a head rotary embedding rotates together.
type Pairing uint8

// The pairings in use.
const (
	PairNeighbours Pairing = iota // (2i, 2i+1): LLaMA in GGUF
	PairHalves                    // (i, i+n/2): NeoX, Qwen, OLMoE
)

// Rotation holds the cosines and sines of rotary position embedding (Su et al.
// 2021) for a batch of positions: both [B, T, n/2], f32.
type Rotation struct{ Cos, Sin *tensor.Tensor }

// NewRotation computes the rotation of positions [B, T] (i32) for the angular
// frequencies, in radians per position. Angles are reduced in turns in f64, so
// that far positions are as exact as near ones.
func NewRotation(positions *tensor.Tensor, frequencies []float64) Rotation {
	g := positions.Graph()
	turns := make([]float64, len(frequencies))
	for i, f := range frequencies {
		turns[i] = f / (2 * math.Pi)
	}
	table := g.Table(ir.F64, turns, len(turns))
	angle := positions.Cast(ir.F64).Unsqueeze(-1).Mul(table)
	angle = angle.Sub(angle.AddScalar(0.5).Floor()).MulScalar(2 * math.Pi)
	return Rotation{Cos: angle.Cos().Cast(ir.F32), Sin: angle.Sin().Cast(ir.F32)}
}

// Apply rotates the first n elements of each head of x [B, T, H, D], where n/2
// is the number of frequencies; the rest is kept.
func (r Rotation) Apply(x *tensor.Tensor, pairing Pairing) *tensor.Tensor {
	half := r.Cos.Extent(-1)
	d := x.Extent(-1)
	kept := (*tensor.Tensor)(nil)
	if 2*half < d {
		kept = x.SliceInts(-1, 2*half, d-2*half)
		x = x.SliceInts(-1, 0, 2*half)
	}
	y := r.rotate(x, pairing, half)
	if kept != nil {
		y = y.Cat(-1, kept)
	}
	return y
}

// rotate treats the pair as an axis of extent 2, j: element j of the result is
// x[j]*cos + x[1-j]*sin*(j == 0 ? -1 : 1).
func (r Rotation) rotate(x *tensor.Tensor, pairing Pairing, half int) *tensor.Tensor {
	b, t, h := x.Dim(0), x.Dim(1), x.Dim(2)
	g := x.Graph()
	two, n := g.Dims(2)[0], g.Dims(half)[0]
	cos, sin := r.Cos.Unsqueeze(2), r.Sin.Unsqueeze(2)
	axis := -1
	if pairing == PairHalves {
		axis = -2
		x = x.ReshapeDims(b, t, h, two, n)
		cos, sin = cos.Unsqueeze(-2), sin.Unsqueeze(-2)
	} else {
		x = x.ReshapeDims(b, t, h, n, two)
		cos, sin = cos.Unsqueeze(-1), sin.Unsqueeze(-1)
	}
	first, second := x.SliceInts(axis, 0, 1), x.SliceInts(axis, 1, 1)
	y := first.Mul(cos).Sub(second.Mul(sin)).Cat(axis, first.Mul(sin).Add(second.Mul(cos)))
	return y.ReshapeDims(b, t, h, g.Dims(2 * half)[0])
}
