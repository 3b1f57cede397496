// Package tensor is the lazy API that programs and models are built with: every
// call adds nodes to a tensor graph (pipeline form 1); nothing is computed until
// an engine compiles the graph's results.
//
//	g := tensor.NewGraph()
//	x := g.Input("x", ir.F32, 4, 256)
//	w := g.Input("w", ir.F32, 64, 256)
//	y := x.Linear(w).Exp()
//	g.Output("y", y)
//	sink, err := g.Sink()
//
// Errors do not interrupt an expression. The graph keeps the first one, with
// the op, the shapes and the call site, as bufio.Scanner does; everything built
// on a bad tensor is bad; Sink and Err report it.
//
// Shapes are lists of Dim: numbers, or expressions over symbolic sizes (Var).
package tensor
