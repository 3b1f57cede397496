// Histogram counts what lies between limits.
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{0.1, 0.4, 0.45, 0.9, 0.2}, 5)
	limits := tensor.FromSlice(g, []float32{0.25, 0.5, 0.75}, 3)
	fmt.Println(tensor.Data[int32](limits.SearchSorted(x, true).Bincount(4)))
	fmt.Println(tensor.Data[float32](x.Median(0)))
}

// Output:
// [2 2 0 1] <nil>
// [0.4] <nil>
