// Pi counts random points in a circle.
package main

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	points := tensor.NewGraph().Random(1).Uniform(-1, 1, 1<<20, 2)
	inside := points.Square().Sum(1).Lt(points.Graph().Scalar(ir.F32, 1))
	share, err := tensor.Data[float32](inside.Cast(ir.F32).Mean())
	fmt.Println(math.Abs(float64(4*share[0])-math.Pi) < 0.01, err)
}

// Output:
// true <nil>
