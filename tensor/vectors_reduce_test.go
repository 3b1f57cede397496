package tensor_test

import "tgc/tensor"

// reduceOps are the rows of the group reduce.
var reduceOps = map[string]opBuilder{
	"max": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		if a.keep() {
			return x.MaxKeep(a.axes()...)
		}
		return x.Max(a.axes()...)
	}),
}
