// Network runs a small network with fixed weights, two layers that compute the
// exclusive or of two inputs, and shows that each layer is one kernel.
package main

import (
	"context"
	"fmt"
	"os"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 4, 2)
	w1 := g.Table(ir.F32, []float64{1, 1, 1, 1}, 2, 2)
	b1 := g.Table(ir.F32, []float64{0, -1}, 2)
	w2 := g.Table(ir.F32, []float64{1, -2}, 1, 2)
	hidden := x.Linear(w1).Add(b1).Maximum(g.Scalar(ir.F32, 0))
	g.Output("y", hidden.Linear(w2))

	f, err := g.Function(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	inputs := []float32{0, 0, 0, 1, 1, 0, 1, 1}
	if err := tensor.Set(ctx, f, "x", inputs); err != nil {
		return err
	}
	if err := f.Run(ctx, nil); err != nil {
		return err
	}
	y, err := tensor.Get[float32](ctx, f, "y")
	if err != nil {
		return err
	}
	for i, v := range y {
		fmt.Printf("%v xor %v = %v\n", inputs[2*i], inputs[2*i+1], v)
	}
	fmt.Printf("%d kernels\n", len(f.Step().Compiled.Kernels))
	return nil
}
