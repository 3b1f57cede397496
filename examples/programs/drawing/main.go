// Drawing describes a graph for Graphviz.
package main

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/tensor"
)

func main() {
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 4).Exp().Sum())
	dot, err := g.DOT()
	fmt.Println(strings.HasPrefix(dot, "digraph"), strings.Contains(dot, "->"), err)
}

// Output:
// true true <nil>
