// Searches sorts, finds and counts.
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	x := tensor.FromSlice(tensor.NewGraph(), []int32{3, 1, 3, 0, 2}, 5)
	sorted, order := x.Sort(0, true)
	best, _ := x.TopK(2, 0, false)
	distinct := x.Unique(4)
	fmt.Println(tensor.Data[int32](sorted))
	fmt.Println(tensor.Data[int32](order))
	fmt.Println(tensor.Data[int32](best))
	fmt.Println(tensor.Data[int32](distinct.Values))
	fmt.Println(tensor.Data[int32](distinct.Counts))
	fmt.Println(tensor.Data[int32](x.Bincount(4)))
}

// Output:
// [3 3 2 1 0] <nil>
// [0 2 4 1 3] <nil>
// [0 1] <nil>
// [0 1 2 3] <nil>
// [1 1 1 2] <nil>
// [1 1 1 2] <nil>
