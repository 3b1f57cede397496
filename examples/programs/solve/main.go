// Solve solves a system of equations and says how far it is off.
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	a := tensor.FromSlice(g, []float64{2, 1, 0, 1, 3, 1, 0, 1, 4}, 3, 3)
	b := tensor.FromSlice(g, []float64{3, 5, 5}, 3, 1)
	x := a.Solve(b)
	fmt.Println(tensor.Data[float64](a.MatMul(x).Sub(b).Abs().Max().Lt(g.Scalar(x.DType(), 1e-12)).Cast(x.DType())))
	fmt.Println(tensor.Data[float64](x.MulScalar(18).Round()))
}

// Output:
// [1] <nil>
// [18 18 18] <nil>
