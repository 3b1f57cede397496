package main

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/nn/train"
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

// network classifies a batch.
func network(p *nn.Parameters, in train.Inputs) train.Outputs {
	return train.Classification(classifier(p).Forward(in.Get("pictures")), in.Get("digits"))
}
