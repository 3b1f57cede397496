// Rotate turns a picture by a quarter.
package main

import (
	"fmt"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	picture := g.Arange(ir.F32, 0, 9, 1).Reshape(1, 1, 3, 3)
	at := tensor.Meshgrid(g.Linspace(ir.F32, -1, 1, 3), g.Linspace(ir.F32, -1, 1, 3))
	places := at[0].Neg().Stack(2, at[1]).Reshape(1, 3, 3, 2) // x, y
	fmt.Println(tensor.Data[float32](picture.GridSample(places, tensor.GridOptions{AlignCorners: true})))
}

// Output:
// [2 5 8 1 4 7 0 3 6] <nil>
