package tensor

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
)

// Pairing says which elements of a row rotary embedding rotates together.
type Pairing uint8

// The pairings in use, for a row of which n elements are rotated.
const (
	PairNeighbours Pairing = iota // (2i, 2i+1), "interleaved": LLaMA in GGUF
	PairHalves                    // (i, i+n/2), "half": NeoX, Qwen, OLMoE
)

// RotaryOptions describes a rotary position embedding.
type RotaryOptions struct {
	Base    float64 // pair i turns by base^(-2i/Dims) radians a position; 0 is 10000
	Offset  int     // position of the first row
	Pairing Pairing
	Dims    int // elements rotated; 0 is all
}

// Rotary rotates pairs of elements of each row of t [.., T, D] by angles that
// grow with the row (Su et al. 2021); elements past Dims are kept.
func (t *Tensor) Rotary(o RotaryOptions) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() < 2 {
		return t.graph.fail("rotary", "%s, want [.. T D]", t)
	}
	dims, base := o.Dims, o.Base
	if dims == 0 {
		dims = t.Extent(-1)
	}
	if base == 0 {
		base = 10000
	}
	if dims%2 != 0 || dims > t.Extent(-1) || dims < 0 {
		return t.graph.fail("rotary", "%d elements of %s", dims, t)
	}
	frequencies := lists.Make(dims/2, func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(dims)) })
	cos, sin := t.graph.Iota(ir.I32, t.Dim(-2)).AddScalar(float64(o.Offset)).Rotation(frequencies)
	return t.wide().RotatePairs(cos, sin, o.Pairing).Cast(t.DType())
}

// Rotation is the cosines and sines (f32, [.., n]) of positions t [..]
// (integers) times n angular frequencies, in radians a position. Angles are
// reduced in turns in f64, so that far positions are as exact as near ones.
func (t *Tensor) Rotation(frequencies []float64) (cos, sin *Tensor) {
	if !t.ok() {
		return t.bad(), t.bad()
	}
	turns := lists.Map(frequencies, func(f float64) float64 { return f / (2 * math.Pi) })
	table := t.graph.Table(ir.F64, turns, len(turns))
	angle := t.Cast(ir.F64).Unsqueeze(-1).Mul(table)
	angle = angle.Sub(angle.AddScalar(0.5).Floor()).MulScalar(2 * math.Pi)
	// Within a turn, so that the cosine needs no reduction of its own.
	return angle.AddScalar(math.Pi / 2).Sin().Cast(ir.F32), angle.Sin().Cast(ir.F32)
}

// RotatePairs rotates the first 2n elements of each row of t [.., D] by cosines
// and sines [.., n], broadcast; the rest is kept.
func (t *Tensor) RotatePairs(cos, sin *Tensor, pairing Pairing) *Tensor {
	if !t.ok() || !cos.ok() || !sin.ok() {
		return t.bad()
	}
	if t.Rank() < 1 || cos.Rank() < 1 || 2*cos.Extent(-1) > t.Extent(-1) {
		return t.graph.fail("rotate_pairs", "%s by cosines %s", t, cos)
	}
	half, d := cos.Extent(-1), t.Extent(-1)
	if 2*half == d {
		return t.rotate(cos, sin, pairing, half)
	}
	kept := t.SliceInts(-1, 2*half, d-2*half)
	return t.SliceInts(-1, 0, 2*half).rotate(cos, sin, pairing, half).Cat(-1, kept)
}

// rotate treats the pair as an axis of extent 2, j: element j of the result is
// t[j]*cos + t[1-j]*sin*(j == 0 ? -1 : 1).
func (t *Tensor) rotate(cos, sin *Tensor, pairing Pairing, half int) *Tensor {
	shape := t.Shape()
	last := len(shape) - 1
	pair := t.graph.Dims(half, 2)
	axis := -1
	if pairing == PairHalves {
		axis = -2
		pair[0], pair[1] = pair[1], pair[0]
	}
	x := t.ReshapeDims(append(shape[:last:last], pair...)...)
	cos, sin = cos.Unsqueeze(axis), sin.Unsqueeze(axis)
	first, second := x.SliceInts(axis, 0, 1), x.SliceInts(axis, 1, 1)
	y := first.Mul(cos).Sub(second.Mul(sin)).Cat(axis, first.Mul(sin).Add(second.Mul(cos)))
	return y.ReshapeDims(shape...)
}
