package main

import (
	"context"
	"fmt"
	"strings"

	"tgc/engine"
	"tgc/ir"
	"tgc/tensor"
)

// products are jobs that are one product of matrices of inputs: "product:512x768x1024" multiplies [512 1024] with
// [1024 768], "turned:" with the transpose of [768 1024], "batched:8x512x768x1024" is eight of the first, and
// "conv:8x64x56x96x3" a convolution of eight images of 64 channels and 56 x 56 points with 96 filters of 3 x 3. What is
// a mode elsewhere is a type here, f32 by default.
var products = map[string]struct {
	extents int
	build   func(g *tensor.Graph, t ir.DType, d []int) *tensor.Tensor
}{
	"product": {3, func(g *tensor.Graph, t ir.DType, d []int) *tensor.Tensor {
		return g.Input("x", t, d[0], d[2]).MatMul(g.Input("y", t, d[2], d[1]))
	}},
	"turned": {3, func(g *tensor.Graph, t ir.DType, d []int) *tensor.Tensor {
		return g.Input("x", t, d[0], d[2]).Linear(g.Input("y", t, d[1], d[2]))
	}},
	"batched": {4, func(g *tensor.Graph, t ir.DType, d []int) *tensor.Tensor {
		return g.Input("x", t, d[0], d[1], d[3]).MatMul(g.Input("y", t, d[0], d[3], d[2]))
	}},
	"conv": {5, func(g *tensor.Graph, t ir.DType, d []int) *tensor.Tensor {
		return g.Input("x", t, d[0], d[1], d[2], d[2]).Conv(g.Input("y", t, d[3], d[1], d[4], d[4]), nil, tensor.ConvOptions{})
	}},
}

// product builds such a job; ok is false for a shape of a model.
func (j job) product() (g *tensor.Graph, ok bool, err error) {
	name, text, _ := strings.Cut(j.shape, ":")
	of, ok := products[name]
	if !ok {
		return nil, false, nil
	}
	extents := make([]int, strings.Count(text, "x")+1)
	if len(extents) != of.extents {
		return nil, true, fmt.Errorf("%s: %d extents, want %d", j.shape, len(extents), of.extents)
	}
	for i, field := range strings.Split(text, "x") {
		if _, err := fmt.Sscan(field, &extents[i]); err != nil {
			return nil, true, fmt.Errorf("%s: %s: %w", j.shape, field, err)
		}
	}
	t, known := map[string]ir.DType{"exact": ir.F32, "f32": ir.F32, "f64": ir.F64, "i32": ir.I32}[j.mode]
	if !known {
		return nil, true, fmt.Errorf("%s: type %s, want f32, f64 or i32", j.shape, j.mode)
	}
	g = tensor.NewGraph()
	g.Output("z", of.build(g, t, extents))
	return g, true, g.Err()
}

// compiled are the kernels of a job, and what frees them.
func (b *bench) compiled(ctx context.Context, j job) (*engine.Compiled, func(), error) {
	g, ok, err := j.product()
	if err != nil {
		return nil, nil, err
	}
	if ok {
		c, err := g.Compile(ctx, b.target, engine.Config{})
		return c, func() {}, err
	}
	return b.step(ctx, j)
}
