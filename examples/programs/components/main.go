// Components finds the direction in which points spread most.
package main

import (
	"fmt"
	"log"
	"math"

	"tgc/tensor"
)

func main() {
	points := tensor.FromSlice(tensor.NewGraph(), []float32{1, 2, 2, 4.1, 3, 5.9, 4, 8, 5, 10}, 5, 2)
	_, s, v := points.Sub(points.MeanKeep(0)).SVD()
	first, err := tensor.Data[float32](v.SliceInts(1, 0, 1))
	if err != nil {
		log.Fatal(err)
	}
	sizes, err := tensor.Data[float32](s)
	fmt.Printf("slope %.2f, %v, %v\n", math.Abs(float64(first[1]/first[0])), sizes[0] > 50*sizes[1], err)
}

// Output:
// slope 1.99, true, <nil>
