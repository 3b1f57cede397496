// Package cuda is the device that runs programs on an NVIDIA GPU through the
// driver's library, libcuda, which is found at run time (package driver; no
// cgo). Programs are rendered as PTX, assembled by the driver into machine code
// that the cache keeps, and recorded steps are CUDA graphs.
//
// A renderer prints a program and says how to launch it (Rendered): which
// parameters it takes, 8 bytes each, and the shape of its grid.
//
// Kernels of one launch are parallel branches of the graph, and every kernel of
// a launch waits for all of the launch before. Where a kernel waits by itself
// (WaitGrid) and both launches are single kernels, the edge is a programmatic
// one: the kernel may start early.
//
// All methods may be called from any goroutine: each locks its thread and makes
// the device's context current (Device.with).
//
// Start at device.go.
package cuda
