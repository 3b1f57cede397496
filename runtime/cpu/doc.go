// Package cpu is the device that runs programs as machine code: programs are
// rendered as LLVM IR (render/llvm), compiled in child processes (llvmc) or
// taken from the object cache, mapped (object), and played by native workers
// (native).
//
// New fails with an error that wraps ErrNoLLVM where there is no libLLVM: package
// interp is then the device to use.
//
// Results do not depend on the number of threads: a work unit runs on one
// worker, and no order between units matters to a program.
//
// Start at device.go.
package cpu
