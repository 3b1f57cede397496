// Package runtime is the interface between the engine and a device: memory,
// compiled programs, and steps captured once and replayed.
//
// The devices are the packages below it: interp (pure Go, always present), cpu
// (LLVM), cuda (NVIDIA GPUs, real or emulated), hcq (their hardware queue, emulated).
// Package devices opens them by name.
// Import it as tgcruntime where the standard library's is needed too.
package runtime

import (
	"context"
	"fmt"
	"io"
	"time"

	"tgc/ir/program"
	"tgc/target"
)

// Memory is a buffer on a device. Host is its bytes where the host can see
// them (CPU, interpreter), else nil.
type Memory interface {
	Size() int64
	Host() []byte
	Read(ctx context.Context, offset int64, into []byte) error
	Write(ctx context.Context, offset int64, from []byte) error
	Free()
}

// Executable is a compiled program.
type Executable interface {
	Program() *program.Program
	// Source is what the renderer printed, for dumps; it may be empty.
	Source() string
}

// Stats are figures of a kernel's machine code.
type Stats struct {
	Registers   int // of a thread
	LocalBytes  int // of a thread: stack and spilled registers
	SharedBytes int // of a block, static and dynamic
}

// Warning says that a kernel spills registers, which is legal and slow; empty where it
// does not.
func (s Stats) Warning(kernel string) string {
	if s.LocalBytes == 0 {
		return ""
	}
	return fmt.Sprintf("kernel %s: %d registers and %d bytes of stack a thread: spilled registers are slow", kernel, s.Registers, s.LocalBytes)
}

// Measured is an Executable whose machine code has figures.
type Measured interface {
	Executable
	Stats() Stats
}

// View is a part of a Memory: an argument of a call.
type View struct {
	Memory Memory
	Offset int64 // bytes
}

// Call is one kernel with its arguments, by PARAM slot.
type Call struct {
	Exec  Executable
	Slots map[int]View
}

// Launch is a set of independent calls that start together: one barrier.
type Launch struct{ Calls []Call }

// Recording is a captured step. Run replays it with the values of the
// host-bound VARs; it returns when the step is done.
type Recording interface {
	Run(ctx context.Context, vars map[string]int64) error
	// Profile runs the step once and reports the time of every call, in order.
	Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error)
	Free()
}

// Queue is a Recording whose runs can be queued, so that the device goes from
// one to the next without the host.
type Queue interface {
	// Start queues a run after those started before. It copies vars.
	Start(ctx context.Context, vars map[string]int64) error
	// Wait waits for all runs that were started.
	Wait() error
}

// Repeater is a Recording that can be made several runs long, for a host that
// would start as many anyway.
type Repeater interface {
	// Repeat records n runs with the same variables, one after the other.
	Repeat(ctx context.Context, n int) (Recording, error)
}

// Chainer is a Recording that can time calls of the step as the step runs them.
type Chainer interface {
	// Chain runs some calls, by their numbers in what Profile returns, one after
	// the other and all of them n times, and returns the time of one. What
	// the step computes is lost.
	Chain(ctx context.Context, vars map[string]int64, calls []int, times int) (time.Duration, error)
}

// KernelFault is implemented by an error of a step that knows the kernel which
// made it.
type KernelFault interface {
	error
	// FaultedKernel is the name of its program; empty where it is not known.
	FaultedKernel() string
}

// Scratcher is a Device with memory for what lives within a step: a step that
// reads such memory before it has written it makes a mistake, which a device may
// report.
type Scratcher interface {
	AllocScratch(ctx context.Context, bytes int64) (Memory, error)
}

// WholeAllocator is a Device with better memory (larger pages) for what is used
// whole than for what may be touched in a few places only, as a cache sized for
// the longest sequence is.
type WholeAllocator interface {
	AllocWhole(ctx context.Context, bytes int64) (Memory, error)
}

// AllocWhole allocates memory that will be used whole.
func AllocWhole(ctx context.Context, dev Device, bytes int64) (Memory, error) {
	if d, ok := dev.(WholeAllocator); ok {
		return d.AllocWhole(ctx, bytes)
	}
	return dev.Alloc(ctx, bytes)
}

// Copier is a Memory that takes bytes of another memory of its device without the host:
// after what was submitted before, and before what is submitted later.
type Copier interface {
	CopyFrom(ctx context.Context, offset int64, from Memory, fromOffset, bytes int64) error
}

// Copy copies bytes from one memory to another of the same device.
func Copy(ctx context.Context, to Memory, offset int64, from Memory, fromOffset, bytes int64) error {
	if c, ok := to.(Copier); ok {
		return c.CopyFrom(ctx, offset, from, fromOffset, bytes)
	}
	raw := make([]byte, bytes)
	if err := from.Read(ctx, fromOffset, raw); err != nil {
		return err
	}
	return to.Write(ctx, offset, raw)
}

// Source is where the bytes of a memory come from: ReadAt may be called from
// several goroutines.
type Source interface {
	io.ReaderAt
	Size() int64
}

// SourceImporter is a Device that copies what it imports, and can do so while
// later pieces are still being made.
type SourceImporter interface {
	ImportSource(ctx context.Context, source Source) (Memory, error)
}

// ImportSource makes read-only memory of what a source has.
func ImportSource(ctx context.Context, dev Device, source Source) (Memory, error) {
	if d, ok := dev.(SourceImporter); ok {
		return d.ImportSource(ctx, source)
	}
	whole := make([]byte, source.Size())
	if _, err := source.ReadAt(whole, 0); err != nil {
		return nil, err
	}
	return dev.Import(ctx, whole)
}

// Device runs programs. Its methods may be called from several goroutines, but for Close,
// after which nothing of the device may be in use.
type Device interface {
	Name() string
	Target() *target.Desc
	// Alloc returns zeroed memory, aligned to 64 bytes and padded at the end.
	Alloc(ctx context.Context, bytes int64) (Memory, error)
	// Import makes memory of host bytes without a copy where the device can
	// (b must outlive it), read-only.
	Import(ctx context.Context, b []byte) (Memory, error)
	// Load compiles programs (in parallel) and makes them ready to call.
	Load(ctx context.Context, programs []*program.Program) ([]Executable, error)
	// Record captures launches for replay.
	Record(ctx context.Context, launches []Launch) (Recording, error)
	Close() error
}
