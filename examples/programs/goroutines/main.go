// Goroutines use one function at once: its runs take turns.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	ctx, g := context.Background(), tensor.NewGraph()
	count := g.State("count", ir.I32)
	g.Store(count, count.AddScalar(1))
	f, err := g.Function(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := f.Run(ctx, nil); err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
	fmt.Println(tensor.Get[int32](ctx, f, "count"))
}

// Output:
// [8] <nil>
