// Clusters groups points around two centres (k-means).
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	points := tensor.FromSlice(g, []float32{0, 0, 0, 1, 1, 0, 9, 9, 9, 10, 10, 9}, 6, 2)
	centres := tensor.FromSlice(g, []float32{0, 0, 1, 0}, 2, 2)
	for range 5 {
		nearest := points.CDist(centres, 2).Argmin(1)
		member := nearest.OneHot(2, points.DType())
		centres = member.Transpose(0, 1).MatMul(points).Div(member.Sum(0).Unsqueeze(1))
	}
	fmt.Println(tensor.Data[float32](centres.MulScalar(3).Round()))
}

// Output:
// [1 1 28 28] <nil>
