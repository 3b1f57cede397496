package nn_test

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Parameters are named values: drawn, loaded into a compiled graph, and read back.
func ExampleParameters() {
	ctx, g := context.Background(), tensor.NewGraph()
	p := nn.NewParameters(g)
	scale := p.In("first").Weight("scale", nn.Constant(2), 3)
	g.Output("y", g.Input("x", ir.F32, 3).Mul(scale))
	f, err := g.Function(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	if err := p.Load(ctx, f, p.Initial(1)); err != nil {
		fmt.Println(err)
		return
	}
	if err := tensor.Set(ctx, f, "x", []float32{1, 2, 3}); err != nil {
		fmt.Println(err)
		return
	}
	if err := f.Run(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	y, err := tensor.Get[float32](ctx, f, "y")
	fmt.Println(p.All()[0].Name, p.Count(), y, err)
	// Output: first.scale 3 [2 4 6] <nil>
}
