// Matmul multiplies two matrices and prints the kernels that the compiler made
// of it.
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
	const m, k, n = 4, 8, 3
	g := tensor.NewGraph()
	a, b := g.Input("a", ir.F32, m, k), g.Input("b", ir.F32, k, n)
	g.Output("c", a.MatMul(b))

	f, err := g.Function(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	x, y := make([]float32, m*k), make([]float32, k*n)
	for i := range x {
		x[i] = float32(i % 7)
	}
	for i := range y {
		y[i] = float32(i % 5)
	}
	if err := tensor.Set(ctx, f, "a", x); err != nil {
		return err
	}
	if err := tensor.Set(ctx, f, "b", y); err != nil {
		return err
	}
	if err := f.Run(ctx, nil); err != nil {
		return err
	}
	c, err := tensor.Get[float32](ctx, f, "c")
	if err != nil {
		return err
	}
	for i := range m {
		fmt.Println(c[i*n : (i+1)*n])
	}
	for _, kernel := range f.Step().Compiled.Kernels {
		fmt.Printf("\nkernel %s: %s\nplan: %s\n", kernel.Name, kernel.Why, kernel.Plan)
		if err := ir.Print(os.Stdout, kernel.AST); err != nil {
			return err
		}
	}
	return nil
}
