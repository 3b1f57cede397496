// Package llvmc compiles LLVM IR text to relocatable objects: the CPU
// device's compile path between the renderer (package render/llvm) and the
// object loader (package object).
//
// libLLVM is found at run time and bound without cgo, versions 15 to 22. It
// runs in child processes, because LLVM answers IR that it cannot select with
// abort(): a dead child is an error that carries what LLVM said, and the next
// compile gets a fresh child. A child is the running program itself, started
// again with an environment variable set, which this package looks for when it
// is initialised: main does not run in a child, and need not know of it.
//
// Parent and child speak length-framed messages over the child's standard
// input and output (protocol.go). The parent never loads libLLVM: it stays
// small, and a warm start that finds all objects in a cache never pays for
// LLVM. Start at compiler.go; the child is child.go, the binding libllvm.go.
package llvmc
