package tensor_test

import (
	"context"
	"fmt"

	"github.com/x448/float16"
	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// Values go in with FromSlice, come out with Data; Realize computes what was asked
// for as one graph.
func Example_values() {
	ctx := context.Background()
	g := tensor.NewGraph().On(interp.New(interp.Options{}))
	x := tensor.FromSlice(g, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	mean, largest := x.Mean(1), x.Argmax(1)
	if err := tensor.Realize(ctx, mean, largest); err != nil {
		fmt.Println(err)
		return
	}
	m, _ := tensor.Data[float32](mean)
	i, err := tensor.Data[int32](largest)
	fmt.Println(m, i, err)
	// Output: [2 5] [2 2] <nil>
}

// A Function is compiled once and runs again and again on changing inputs.
func ExampleCompile() {
	ctx := context.Background()
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 3)
	g.Output("y", x.Square().Sum())
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for _, values := range [][]float32{{1, 2, 3}, {3, 4, 0}} {
		if err := tensor.Set(ctx, f, "x", values); err != nil {
			fmt.Println(err)
			return
		}
		if err := f.Run(ctx, nil); err != nil {
			fmt.Println(err)
			return
		}
		y, err := tensor.Get[float32](ctx, f, "y")
		fmt.Println(y, err)
	}
	// Output:
	// [14] <nil>
	// [25] <nil>
}

// Mixed dtypes are promoted as PyTorch promotes them; a scalar changes the kind
// of number, never its width.
func ExampleTensor_Add() {
	g := tensor.NewGraph()
	half := tensor.FromSlice(g, []float16.Float16{float16.Fromfloat32(1.5)}, 1)
	whole := tensor.FromSlice(g, []int64{2}, 1)
	sum := half.Add(whole)
	if err := sum.Realize(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	v, err := tensor.Data[float32](sum)
	fmt.Println(sum, v, err)
	// Output: f16[1] [3.5] <nil>
}

// A mistake does not interrupt the expression: the graph keeps the first.
func ExampleGraph_Err() {
	g := tensor.NewGraph()
	x, y := g.Input("x", ir.F32, 2, 3), g.Input("y", ir.F32, 4)
	x.Add(y).Exp().Sum()
	fmt.Println(g.Err())
	// Output: tensor: example_test.go:80: add: shapes [2 3] and [4] do not broadcast
}

func ExampleTensor_Where() {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, []float32{-1, 2, -3}, 3)
	y := x.Lt(g.Scalar(ir.F32, 0)).Where(x.Neg(), x.MulScalar(10))
	if err := y.Realize(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	v, err := tensor.Data[float32](y)
	fmt.Println(v, err)
	// Output: [1 20 3] <nil>
}

func ExampleTensor_Cummax() {
	g := tensor.NewGraph()
	values, indices := tensor.FromSlice(g, []float32{1, 3, 2, 3, 0}, 5).Cummax(0)
	if err := tensor.Realize(context.Background(), values, indices); err != nil {
		fmt.Println(err)
		return
	}
	v, _ := tensor.Data[float32](values)
	i, err := tensor.Data[int32](indices)
	fmt.Println(v, i, err)
	// Output: [1 3 3 3 3] [0 1 1 3 3] <nil>
}
