package optim_test

import (
	"fmt"

	"tgc/ir"
	"tgc/nn/optim"
	"tgc/tensor"
)

// A schedule is a function of the number of steps made before.
func ExampleCosine() {
	g := tensor.NewGraph()
	rate := optim.Cosine(1, 0, 2, 6)
	steps := tensor.FromSlice(g, []float32{0, 1, 2, 4, 6}, 5)
	values, err := tensor.Data[float32](rate(steps).Cast(ir.F32))
	fmt.Printf("%.2f %v\n", values, err)
	// Output: [0.50 1.00 1.00 0.50 0.00] <nil>
}
