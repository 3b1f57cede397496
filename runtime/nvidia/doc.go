// Package nvidia is what the devices that run programs on NVIDIA GPUs share,
// whatever moves the launches to the GPU: rendering, the loading of machine code
// with its cache, memory in large blocks, the binding of calls to addresses and
// values, and the errors. Package cuda builds on it with the driver's library,
// package hcq with the hardware's own queue.
//
// Start at call.go.
package nvidia
