// Package tensor is the lazy API that programs and models are built with: every
// call adds nodes to a tensor graph (pipeline form 1); nothing is computed until
// results are wanted, which compiles the whole graph at once.
//
// Values go in with FromSlice and come out with Data; Realize computes all its
// arguments as one graph:
//
//	g := tensor.NewGraph() // On(dev) takes a device; without it, devices.Default
//	x := tensor.FromSlice(g, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
//	p, best := x.Softmax(1), x.Argmax(1)
//	if err := tensor.Realize(ctx, p, best); err != nil { ... }
//	values, err := tensor.Data[float32](p)
//
// Work that is repeated is a Function: compiled once, with its memory, and run
// again and again on what Set and Write put into its inputs:
//
//	g := tensor.NewGraph()
//	x := g.Input("x", ir.F32, 4, 256)
//	w := g.Input("w", ir.F32, 64, 256)
//	g.Output("y", x.Linear(w).Relu())
//	f, err := tensor.Compile(ctx, g, dev, engine.Config{})
//
// Operands are broadcast by numpy's rule and promoted to one dtype by PyTorch's.
// f16 and bf16 are computed and accumulated in f32 and rounded once per method.
// Options that end a list of parameters may be left out.
//
// NaN, infinities, the sign of zero, wrapping integers and empty tensors follow
// IEEE 754 and PyTorch; TestOpVectors holds every method to recorded answers.
// Derivatives come from package grad.
//
// Errors do not interrupt an expression. The graph keeps the first one, with
// the op, the shapes and the call site, as bufio.Scanner does; everything built
// on a bad tensor is bad; Err, Sink, Realize and Compile report it.
//
// Shapes are lists of Dim: numbers, or expressions over symbolic sizes (Var). InputDims
// declares inputs of symbolic shape; results have the size of the run.
//
// A Graph and its tensors belong to one goroutine at a time, and so does Realize; any
// number of graphs can be built and compiled at once, on one device too. A Function may be
// called from several goroutines, which take turns.
//
// Where to look: elementwise.go, math.go, activation.go and quotient.go for
// functions of elements, reduce.go and scan.go for folds, create.go and random.go for
// tensors out of nothing, search.go for what depends on order, movement.go and its
// neighbours for rearranging, values.go, realize.go and function.go for running.
package tensor
