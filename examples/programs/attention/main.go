// Attention reads values by how well keys match, each place only what is before it.
package main

import (
	"fmt"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	q := g.Zeros(ir.F32, 1, 1, 3, 2)
	v := g.Arange(ir.F32, 0, 6, 1).Reshape(1, 1, 3, 2)
	fmt.Println(tensor.Data[float32](q.Attention(q, v, tensor.AttentionOptions{Causal: true})))
}

// Output:
// [0 1 1 2 2 3] <nil>
