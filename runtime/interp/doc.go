// Package interp evaluates the compiler's forms: tensor graphs and kernels node by
// node, programs instruction by instruction. It is the reference that tests compare
// the passes and the other devices with, and a device that is always present.
//
// tensor_eval.go and kernel_eval.go read the two forms of the graph, program_eval.go
// runs a program (program_block.go as a block of threads, with races on shared memory
// checked), and device.go is the device.
package interp
