package nn

import "tgc/tensor"

// Pairing says which elements of a head rotary embedding rotates together.
type Pairing = tensor.Pairing

// The pairings in use.
const (
	PairNeighbours = tensor.PairNeighbours // (2i, 2i+1): LLaMA in GGUF
	PairHalves     = tensor.PairHalves     // (i, i+n/2): NeoX, Qwen, OLMoE
)

// Rotation holds the cosines and sines of rotary position embedding (Su et al.
// 2021) for a batch of positions: both [B, T, n/2], f32.
type Rotation struct{ Cos, Sin *tensor.Tensor }

// NewRotation computes the rotation of positions [B, T] (i32) for the angular
// frequencies, in radians per position.
func NewRotation(positions *tensor.Tensor, frequencies []float64) Rotation {
	cos, sin := positions.Rotation(frequencies)
	return Rotation{Cos: cos, Sin: sin}
}

// Scale multiplies what it rotates by a factor, as scalings of the rotation to longer
// texts do (Peng et al. 2023).
func (r Rotation) Scale(factor float64) Rotation {
	if factor == 1 {
		return r
	}
	return Rotation{Cos: r.Cos.MulScalar(factor), Sin: r.Sin.MulScalar(factor)}
}

// Apply rotates the first n elements of each head of x [B, T, H, D], where n/2
// is the number of frequencies; the rest is kept.
func (r Rotation) Apply(x *tensor.Tensor, pairing Pairing) *tensor.Tensor {
	return x.RotatePairs(r.Cos.Unsqueeze(2), r.Sin.Unsqueeze(2), pairing)
}
