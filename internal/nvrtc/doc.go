// Package nvrtc compiles CUDA C to PTX with NVIDIA's runtime compiler, which
// needs no GPU and no headers. The library is opened when it is first asked
// for, without cgo; where it is absent the error wraps ErrNotFound.
package nvrtc
