package cuda

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package.
var (
	// ErrAbsent is wrapped where there is no driver, no GPU, or none of that
	// number.
	ErrAbsent = errors.New("no CUDA device here")
	// ErrOutOfMemory is wrapped by OutOfMemoryError.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrBroken is wrapped by everything that a device answers after a kernel
	// faulted: all contexts of the process on that GPU are lost. A new process
	// works.
	ErrBroken = errors.New("the device is lost after a fault")
)

// OutOfMemoryError is an allocation that did not fit; sizes are in bytes.
type OutOfMemoryError struct {
	Device string
	Asked  int64 // by the caller
	Held   int64 // by this device's live memory
	Free   int64 // on the GPU, for all processes
	Total  int64
}

func (e *OutOfMemoryError) Error() string {
	return fmt.Sprintf("%s: %v: asked for %s, free %s of %s, %s held by this program",
		e.Device, ErrOutOfMemory, megabytes(e.Asked), megabytes(e.Free), megabytes(e.Total), megabytes(e.Held))
}

func (e *OutOfMemoryError) Unwrap() error { return ErrOutOfMemory }

func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// FaultError is a kernel that ended the device's context: a bad address, an
// illegal instruction.
type FaultError struct {
	Kernel string // the one at fault; empty where it could not be found
	// Suspects are the kernels of the step where Kernel is empty.
	Suspects []string
	// Arguments describes what Kernel was called with.
	Arguments []string
	Err       error // the driver's
}

func (e *FaultError) Error() string {
	if e.Kernel == "" {
		return fmt.Sprintf("cuda: one of the kernels %s faulted: %v; with %s=1 the same run names it", strings.Join(shorten(e.Suspects), ", "), e.Err, serialVariable)
	}
	text := fmt.Sprintf("cuda: kernel %s faulted: %v", e.Kernel, e.Err)
	if len(e.Arguments) > 0 {
		text += " (" + strings.Join(e.Arguments, ", ") + ")"
	}
	return text
}

func (e *FaultError) Unwrap() error { return e.Err }

// FaultedKernel is the kernel at fault.
func (e *FaultError) FaultedKernel() string { return e.Kernel }

// shorten keeps the first names of a long list.
func shorten(names []string) []string {
	const most = 8
	if len(names) <= most {
		return names
	}
	return append(append([]string(nil), names[:most]...), fmt.Sprintf("and %d more", len(names)-most))
}
