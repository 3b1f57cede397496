// Package object maps ELF relocatable objects into executable memory: the
// last step of the CPU device's compile path, after LLVM (package llvmc) or
// the object cache and before the worker pool (package native).
//
// It is a linker for one self-contained object: sections are laid out in one
// anonymous mapping, relocated, and then protected (code read+execute,
// constants read-only, data read+write; never writable and executable at
// once). Objects are compiled as position independent code in the small code
// model, so every reference inside the mapping is in range, and references
// out of it go through the loader's own GOT and jump stubs. The only symbols
// an object may leave undefined are the memory functions of externs.go.
//
// Objects come from a cache on disk: every offset, size and index read from
// the file is checked, and a malformed object is an error, never a fault.
//
// On Linux a fresh anonymous page that mprotect makes executable is made
// coherent with the instruction cache by the kernel, so aarch64 needs no
// explicit flush here.
package object
