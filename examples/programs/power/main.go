// Power finds the largest eigenvalue by a loop that carries a vector.
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	a := tensor.FromSlice(g, []float32{2, 1, 1, 2}, 2, 2)
	v := tensor.Loop(30, func(state []*tensor.Tensor) []*tensor.Tensor {
		next := a.MatMul(state[0])
		return []*tensor.Tensor{next.Div(next.Norm(2))}
	}, tensor.FromSlice(g, []float32{1, 0}, 2, 1))[0]
	fmt.Println(tensor.Data[float32](a.MatMul(v).Norm(2).MulScalar(1000).Round()))
}

// Output:
// [3000] <nil>
