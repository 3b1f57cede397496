package main

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/tensor"
)

// classifier is a small convolutional network: pictures [B, 1, 28, 28] to
// logits [B, 10].
func classifier(p *nn.Parameters) layer.Chain {
	relu := layer.Func(func(x *tensor.Tensor) *tensor.Tensor { return x.Maximum(x.Graph().Scalar(ir.F32, 0)) })
	pool := layer.MaxPool{Kernel: []int{2, 2}}
	same := func(kernel int) tensor.ConvOptions { return tensor.ConvOptions{Padding: []int{kernel / 2}} }
	return layer.Chain{
		layer.NewConv2d(p.In("conv1"), 1, 16, 5, same(5)), relu, pool, // [B 16 14 14]
		layer.NewConv2d(p.In("conv2"), 16, 32, 3, same(3)), relu, pool, // [B 32 7 7]
		layer.Flatten{},
		layer.NewDropout(p, 0.2),
		layer.NewLinear(p.In("out"), 32*7*7, 10),
	}
}

// loss is the training graph: cross entropy.
func loss(batch int) func(p *nn.Parameters) *tensor.Tensor {
	return func(p *nn.Parameters) *tensor.Tensor {
		pictures, digits := inputs(p.Graph(), learned, batch)
		return classifier(p).Forward(pictures).CrossEntropy(digits, tensor.CrossEntropyOptions{})
	}
}

// hits is the evaluation graph: how many of a batch are recognised.
func hits(batch int) *tensor.Graph {
	g := tensor.NewGraph()
	p := nn.NewParameters(g)
	pictures, digits := inputs(g, unseen, batch)
	found := classifier(p).Forward(pictures).Argmax(1).Eq(digits)
	g.Output("hits", found.Cast(ir.I32).Sum().Reshape(1))
	return g
}

// Prefixes of input names: buffers of one name are one buffer in both graphs.
const learned, unseen = "train.", "test."

func inputs(g *tensor.Graph, prefix string, batch int) (pictures, digits *tensor.Tensor) {
	return g.Input(prefix+"pictures", ir.F32, batch, 1, size, size), g.Input(prefix+"digits", ir.I32, batch)
}
