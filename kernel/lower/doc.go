// Package lower writes the program of a shaped kernel.
//
// Before: a shape.Kernel. After: a program.Program, not yet optimised.
//
//	lower.go     the prologue, the grid loop; lowering.go what the parts share
//	scope.go     coordinates, and the stack of open loops
//	expr.go      expressions to SSA values, each in the outermost loop it can stand in;
//	             values.go arithmetic on vectors, static.go what is known while lowering
//	wide.go      slow factors as vectors, contraction to fma
//	reduce.go    loops with carried accumulators; tuple.go the same for tuples
//	memory.go    loads and fields: patterns of lane addresses; store.go, stage.go
//	threads.go   the threads of a block; combine.go what they compute together
//	matrix.go    matrix instructions
//	prefetch.go  streamed buffers
package lower
