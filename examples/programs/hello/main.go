// Hello prints a softmax.
package main

import (
	"fmt"

	"tgc/tensor"
)

func main() {
	x := tensor.FromSlice(tensor.NewGraph(), []float32{1, 2, 3, 4}, 2, 2)
	fmt.Println(tensor.Data[float32](x.Softmax(1)))
}

// Output:
// [0.26894143 0.7310586 0.26894143 0.7310586] <nil>
