package data_test

import (
	"context"
	"fmt"

	"tgc/nn/data"
)

// Batch n is the same whenever it is asked for.
func ExampleLoader() {
	samples := data.Table{data.Of("x", []float32{0, 10, 20, 30, 40, 50}), data.Of("y", []int32{0, 1, 2, 3, 4, 5})}
	loader := data.NewLoader(samples, data.Options{Batch: 2, Shuffle: true, Seed: 1})
	for batch, err := range loader.Batches(context.Background(), 0, 4) { // one epoch, and one batch of the next
		fmt.Println(batch["x"].Float32s(), batch["y"].Shape, err)
	}
	again, err := loader.At(3)
	fmt.Println(again["x"].Float32s(), err)
	// Output:
	// [10 30] [2] <nil>
	// [20 50] [2] <nil>
	// [0 40] [2] <nil>
	// [30 20] [2] <nil>
	// [30 20] <nil>
}
