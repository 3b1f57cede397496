// Package driver binds libcuda, NVIDIA's driver library, without cgo.
//
// It is the lowest layer of runtime/cuda: the functions as a table of names
// (functions.go), calls with their argument blocks outside the Go heap
// (call.go, scratch.go), and one thin typed method per thing that the driver
// does. It knows no program and no runtime.Device. Driver is the interface that
// package cuda uses, so that an emulator can replace the library.
//
// A context belongs to a thread: whoever calls locks the goroutine to its
// thread and makes the context current first.
//
// Start at driver.go.
package driver
