// Edges blurs a picture of bytes, finds its edges and shrinks it.
package main

import (
	"fmt"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	dark := g.Zeros(ir.U8, 1, 1, 8, 4)
	picture := dark.Cat(3, dark.AddScalar(200)).Cast(ir.F32)
	blurred := picture.Conv(g.Full(ir.F32, 1.0/9, 1, 1, 3, 3), nil)
	sobel := tensor.FromSlice(g, []float32{-1, 0, 1, -2, 0, 2, -1, 0, 1}, 1, 1, 3, 3)
	edges := blurred.Conv(sobel, nil).Abs().MaxPool([]int{2, 2}).Interpolate(tensor.Nearest, 1, 2)
	fmt.Println(tensor.Data[float32](edges.Round()))
}

// Output:
// [533 533] <nil>
