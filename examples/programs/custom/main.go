// Custom gives a rounding the derivative of what it rounds.
package main

import (
	"fmt"

	"tgc/grad"
	"tgc/tensor"
)

func main() {
	x := tensor.FromSlice(tensor.NewGraph(), []float32{0.2, 1.7, -2.4}, 3)
	rounded := x.Round().WithGradient([]*tensor.Tensor{x}, func(_, adjoint *tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{adjoint}
	})
	fmt.Println(tensor.Data[float32](grad.Gradients(rounded.Square().Sum(), x)[0]))
}

// Output:
// [0 4 -4] <nil>
