// Descent minimises a function, step by step, with values of its own each time.
package main

import (
	"context"
	"fmt"
	"log"

	"tgc/grad"
	"tgc/tensor"
)

func main() {
	w := tensor.FromSlice(tensor.NewGraph(), []float32{5, -3}, 2)
	for range 100 {
		loss := w.AddScalar(-1).Square().Sum()
		w = w.Sub(grad.Gradients(loss, w)[0].MulScalar(0.1))
		if err := w.Realize(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(tensor.Data[float32](w.MulScalar(1000).Round().MulScalar(0.001)))
}

// Output:
// [1 1] <nil>
