// Recurrent runs two layers of LSTM cells in both directions.
package main

import (
	"fmt"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/layer"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	p := nn.NewParameters(g)
	cells := layer.NewRecurrent(p, layer.RecurrentOptions{Cell: layer.NewCell(layer.NewLSTM), In: 3, Hidden: 4, Layers: 2, Bidirectional: true})
	all, _ := cells.Forward(g.Random(1).Normal(0, 1, 2, 5, 3), nil)
	fmt.Println(all.Shape(), all.DType() == ir.F32, p.Count(), g.Err())
}

// Output:
// [2 5 8] true 736 <nil>
