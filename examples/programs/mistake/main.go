// Mistake shows what is said of shapes that do not fit.
package main

import (
	"fmt"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	y := g.Ones(ir.F32, 2, 3).MatMul(g.Ones(ir.F32, 4, 2)).Relu()
	_, err := tensor.Data[float32](y)
	fmt.Println(err)
}

// Output:
// tensor: main.go:13: matmul: f32[2 3] times f32[4 2]; want [.. M K] and [.. K N]
