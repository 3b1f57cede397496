package testkit

import (
	"pgregory.net/rapid"
	"tgc/ir"
	"tgc/packed"
	"tgc/tensor"
)

// WeightCases is a generator of graphs around one or two weights that are large
// enough (past 64 KB) for the plans of matrix times vector and of matrix
// products: what random graphs of small tensors never reach. A case takes some
// tenths of a second.
func WeightCases() *rapid.Generator[*Case] {
	return rapid.Custom(func(t *rapid.T) *Case {
		limits := Limits{Elements: 4_000, Large: true, Packed: true}
		b := newBuilder(t, limits)
		// Sums over wide rows have bounds that keep would refuse: they are
		// small beside the sum of the terms, which is what counts.
		b.pool = append(b.pool, weightLayer(b))
		b.outputs()
		return b.c
	})
}

// largeWeight is what a weight must have, in bytes, to count as one.
const largeWeight = 64 << 10

// weightFormats are drawn evenly: storage dtypes and all packed formats.
var weightFormats = append(formatsOf(1, 256), "f32", "f16", "bf16")

// formatsOf names the packed formats with at least and at most a number of elements
// in a block.
func formatsOf(least, most int) (names []string) {
	for _, f := range packed.All() {
		if !f.IsPlain() && f.BlockElems >= least && f.BlockElems <= most {
			names = append(names, f.Name)
		}
	}
	return names
}

// bigWeight is a weight [rows, width] of a format; rows 0 takes as many as make
// it large.
func (b *builder) bigWeight(format string, rows, width int) *tensor.Tensor {
	if dtype, err := ir.ParseDType(format); err == nil {
		if rows == 0 {
			rows = largeWeight/(width*dtype.Size()) + b.intRange("more rows", 1, 9)
		}
		return b.input(dtype, rows, width).Cast(ir.F32)
	}
	f, _ := packed.Lookup(format)
	if rows == 0 {
		rows = largeWeight/(width/f.BlockElems*f.BlockBytes) + b.intRange("more rows", 1, 9)
	}
	return b.packedWeight(format, rows, width)
}

// weightLayer is a row or several times a large weight, with the surroundings
// of a model's layer.
func weightLayer(b *builder) *tensor.Tensor {
	format := rapid.SampledFrom(weightFormats).Draw(b.t, "format")
	width := 256 * b.intRange("width", 1, 4)
	tokens := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4, 8, 9}).Draw(b.t, "tokens")
	x := b.input(ir.F32, tokens, width)
	y := b.norm(x, width)
	w := b.bigWeight(format, 0, width)
	rows := w.Extent(0)
	out := y.Linear(w)
	switch b.intRange("around", 0, 6) {
	case 1:
		out = out.MulScalar(1.0 / 64).Silu().Mul(y.Linear(b.bigWeight(format, rows, width)))
	case 2:
		b.pool = append(b.pool, y.Linear(b.bigWeight(rapid.SampledFrom(weightFormats).Draw(b.t, "other format"), 0, width)))
	case 3:
		out = out.Add(b.input(ir.F32, rows))
	case 4:
		out = out.Add(b.input(ir.F32, tokens, rows))
	case 5:
		out = out.MaxKeep(-1)
	case 6:
		if rows%2 == 0 {
			out = out.Reshape(tokens, rows/2, 2).Flip(2).Reshape(tokens, rows)
		}
	}
	return out
}
