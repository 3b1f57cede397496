package nvidia

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package.
var (
	// ErrOutOfMemory is wrapped by OutOfMemoryError.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrBroken is wrapped by everything that a device answers after a kernel
	// faulted.
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

// BrokenError is what a faulted device answers.
type BrokenError struct {
	Device string
	Cause  error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s: %v: %v", e.Device, ErrBroken, e.Cause)
}
func (e *BrokenError) Unwrap() []error { return []error{ErrBroken, e.Cause} }

// FaultError is a kernel that ended the device's context: a bad address, an
// illegal instruction.
type FaultError struct {
	Runtime string // the package that met it: "cuda"
	Kernel  string // the one at fault; empty where it could not be found
	// Suspects are the kernels of the step where Kernel is empty.
	Suspects []string
	Hint     string // how to learn Kernel where it is empty
	// Arguments describes what Kernel was called with.
	Arguments []string
	Err       error // the driver's
}

func (e *FaultError) Error() string {
	if e.Kernel == "" {
		text := fmt.Sprintf("%s: one of the kernels %s faulted: %v", e.Runtime, strings.Join(shorten(e.Suspects), ", "), e.Err)
		if e.Hint != "" {
			text += "; " + e.Hint
		}
		return text
	}
	text := fmt.Sprintf("%s: kernel %s faulted: %v", e.Runtime, e.Kernel, e.Err)
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
