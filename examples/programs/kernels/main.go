// Kernels counts the kernels that a normalised softmax becomes, and shows one.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 8, 64).Softmax(1).RMSNorm(nil, 1e-5))
	desc, err := target.Parse("cuda:sm_90")
	if err != nil {
		log.Fatal(err)
	}
	c, err := g.Compile(context.Background(), desc, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	text, err := engine.Source(c.Kernels[0].Program, desc)
	fmt.Println(len(c.Kernels), strings.Contains(text, "__global__"), err)
}

// Output:
// 1 true <nil>
