// Leastsquares fits a line by a QR decomposition.
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	a := tensor.FromSlice(g, []float64{0, 1, 1, 1, 2, 1, 3, 1}, 4, 2)
	y := tensor.FromSlice(g, []float64{1, 3, 5, 7}, 4, 1)
	q, r := a.QR()
	fmt.Println(tensor.Data[float64](r.Solve(q.Transpose(0, 1).MatMul(y)).MulScalar(1000).Round()))
}

// Output:
// [2000 1000] <nil>
