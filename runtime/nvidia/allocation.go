package nvidia

import (
	"errors"
	"fmt"
	"sync/atomic"

	"tgc/runtime"
)

// Allocation is a part of an arena: what a device's own type of memory is made of.
type Allocation[P ~uint64] struct {
	Base     P
	Bytes    int64 // asked for
	ReadOnly bool  // imported
	freed    atomic.Bool
}

// Size is the size asked for, in bytes.
func (a *Allocation[P]) Size() int64 { return a.Bytes }

// IsReadOnly tells imported memory.
func (a *Allocation[P]) IsReadOnly() bool { return a.ReadOnly }

// Address is where it lies for kernels.
func (a *Allocation[P]) Address() uint64 { return uint64(a.Base) }

// Freed tells memory that was given back.
func (a *Allocation[P]) Freed() bool { return a.freed.Load() }

// Host is nil: the host does not see the memory, or the GPU may be at work on it.
func (a *Allocation[P]) Host() []byte { return nil }

// End notes that the memory is given back; false if it was before.
func (a *Allocation[P]) End() bool { return !a.freed.Swap(true) }

// CheckRead reports bytes that cannot be read.
func (a *Allocation[P]) CheckRead(offset int64, n int) error { return a.check("read", offset, n) }

// CheckWrite reports bytes that cannot be written.
func (a *Allocation[P]) CheckWrite(offset int64, n int) error {
	if a.ReadOnly {
		return errors.New("write: imported memory is read-only")
	}
	return a.check("write", offset, n)
}

func (a *Allocation[P]) check(what string, offset int64, n int) error {
	if a.Freed() {
		return fmt.Errorf("%s: the memory has been freed", what)
	}
	return runtime.CheckSpan(a, what, offset, n)
}

// Usage is the memory in use of a device.
type Usage struct {
	Allocations   int
	Bytes         int64 // of them, with padding
	ReservedBytes int64 // taken from the driver
}

// Usage is what is in use of an arena: what leaks stays in it.
func (a *Arena[P]) Usage() Usage { return Usage{a.Live(), a.Bytes(), a.Reserved()} }

// Uses is the memory that a recording uses, and whether it is there itself.
type Uses[M Memory] struct {
	Memory []M
	Ended  bool
}

// Usable reports use after free, which on a GPU would be silent.
func (u *Uses[M]) Usable() error {
	if u.Ended {
		return errors.New("the recording has been freed")
	}
	for _, m := range u.Memory {
		if m.Freed() {
			return fmt.Errorf("a buffer of %d bytes has been freed that the step uses", m.Size())
		}
	}
	return nil
}
