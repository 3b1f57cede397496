package cuda

import (
	"errors"

	"tgc/runtime/nvidia"
)

// What a device through another way to the GPU would have too is package nvidia's,
// under the same names.
type (
	// Rendered is a program as source and how to launch it.
	Rendered = nvidia.Rendered
	// Renderer renders a program for a GPU.
	Renderer = nvidia.Renderer
	// Stats are figures of a kernel's machine code.
	Stats = nvidia.Stats
	// OutOfMemoryError is an allocation that did not fit.
	OutOfMemoryError = nvidia.OutOfMemoryError
	// FaultError is a kernel that ended the device's context.
	FaultError = nvidia.FaultError
)

const alignment = nvidia.Alignment

// Renderers.
var (
	RenderPTX  Renderer = nvidia.RenderPTX
	RenderCUDA Renderer = nvidia.RenderCUDA
)

// Errors of this package.
var (
	// ErrAbsent is wrapped where there is no driver, no GPU, or none of that
	// number.
	ErrAbsent = errors.New("no CUDA device here")
	// ErrOutOfMemory is wrapped by OutOfMemoryError.
	ErrOutOfMemory = nvidia.ErrOutOfMemory
	// ErrBroken is wrapped by everything that a device answers after a kernel
	// faulted: all contexts of the process on that GPU are lost. A new process
	// works.
	ErrBroken = nvidia.ErrBroken
)
