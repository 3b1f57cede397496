// Batches runs one compiled function on batches of several sizes.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	ctx, g := context.Background(), tensor.NewGraph()
	n := g.Var("n", 1, 8)
	g.Output("sums", g.InputDims("x", ir.F32, n, g.Dims(2)[0]).Sum(1))
	f, err := g.Function(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, x := range [][]float32{{1, 2}, {1, 2, 3, 4, 5, 6}} {
		rows := int64(len(x) / 2)
		if err := errors.Join(tensor.Set(ctx, f, "x", x), f.Run(ctx, map[string]int64{"n": rows})); err != nil {
			log.Fatal(err)
		}
		fmt.Println(tensor.Get[float32](ctx, f, "sums"))
	}
	fmt.Println(f.Run(ctx, map[string]int64{"n": 9}) != nil)
}

// Output:
// [3] <nil>
// [3 7 11] <nil>
// true
