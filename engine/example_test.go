package engine_test

import (
	"context"
	"fmt"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// A graph is compiled for a target that need not be here, and says what it became.
func ExampleCompile() {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 64, 1000)
	g.Output("y", x.Exp().Sum(1))
	sink, err := g.Sink()
	if err != nil {
		fmt.Println(err)
		return
	}
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := engine.Compile(context.Background(), sink, desc, engine.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(c.Kernels), "kernel in", len(c.Launches), "launch")
	// Output: 1 kernel in 1 launch
}
