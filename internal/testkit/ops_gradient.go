package testkit

import (
	"tgc/grad"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// gradientOp differentiates a value by one that it was computed from: the graphs
// of backward passes.
func gradientOp(b *builder) *tensor.Tensor {
	y := b.float(0)
	if y == nil {
		return nil
	}
	below := lists.Set(ir.Toposort(y.Node()))
	x := b.pick("by", func(t *tensor.Tensor) bool { return isFloat(t) && below[t.Node()] })
	var cotangent *tensor.Tensor
	if b.chance("cotangent") {
		cotangent = y
	}
	return grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{cotangent}, []*tensor.Tensor{x})[0]
}
