// Gradient is the slope of Rosenbrock's function.
package main

import (
	"fmt"

	"tgc/grad"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	x, y := tensor.FromSlice(g, []float32{-1}, 1), tensor.FromSlice(g, []float32{2}, 1)
	f := x.Neg().AddScalar(1).Square().Add(y.Sub(x.Square()).Square().MulScalar(100))
	slopes := grad.Gradients(f.Sum(), x, y)
	fmt.Println(tensor.Data[float32](slopes[0].Cat(0, slopes[1])))
}

// Output:
// [396 200] <nil>
