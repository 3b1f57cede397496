package grad_test

import (
	"fmt"

	"tgc/grad"
	"tgc/tensor"
)

// The derivative of a scalar by what it was computed from.
func ExampleGradients() {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{1, 2, 3}, 3)
	dx := grad.Gradients(x.Square().Sum(), x)[0]
	fmt.Println(tensor.Data[float32](dx))
	// Output: [2 4 6] <nil>
}

// A Jacobian's row is the derivative of one element; derivatives have derivatives.
func ExampleOf() {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{1, 2, 3}, 3)
	weights := tensor.FromSlice(g, []float32{1, 0, 10}, 3)
	first := grad.Of([]*tensor.Tensor{x.Mul(x).Mul(x)}, []*tensor.Tensor{weights}, []*tensor.Tensor{x})[0]
	second := grad.Gradients(first.Sum(), x)[0]
	fmt.Println(tensor.Data[float32](first))
	fmt.Println(tensor.Data[float32](second))
	// Output:
	// [3 0 270] <nil>
	// [6 0 180] <nil>
}
