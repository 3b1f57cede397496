// Package interp evaluates every form of the compiler in Go, exactly and slowly:
// what other devices and passes are compared with.
//
//   - EvalTensor computes a tensor graph op by op (tensor_eval.go).
//   - EvalKernel walks a kernel's expressions for every point of its stores
//     (kernel_eval.go), and finds reads out of bounds.
//   - Compile makes a linear program a list of steps; a machine runs one thread of
//     it, a block all threads of a GPU's block in step, with the accesses of each
//     between two barriers compared (program_*.go).
//   - Device is the runtime device that runs programs so.
package interp
