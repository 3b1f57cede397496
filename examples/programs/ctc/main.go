// Ctc is the loss of a spelling whose places are not known.
package main

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	even := g.Full(ir.F32, math.Log(1.0/3), 2, 1, 3)
	one := func(v int32) *tensor.Tensor { return tensor.FromSlice(g, []int32{v}, 1) }
	loss := even.CTCLoss(tensor.FromSlice(g, []int32{1}, 1, 1), one(2), one(1))
	fmt.Println(tensor.Data[float32](loss.Neg().Exp().MulScalar(9).Round())) // 3 ways of 9
}

// Output:
// [3] <nil>
