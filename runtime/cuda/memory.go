package cuda

import (
	"context"
	"errors"
	"fmt"

	"tgc/runtime"
	"tgc/runtime/cuda/driver"
	"tgc/runtime/nvidia"
)

// memory is a part of the arena.
type memory struct {
	nvidia.Allocation[driver.Ptr]
	device  *Device
	scratch bool // poisoned ahead of every step
}

// Usage is the device memory in use by this device.
type Usage = nvidia.Usage

// Usage reports the memory in use: what leaks stays in it.
func (d *Device) Usage() Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arena.Usage()
}

// Alloc returns zeroed device memory. Where there is not enough the error is an
// *OutOfMemoryError.
func (d *Device) Alloc(_ context.Context, size int64) (runtime.Memory, error) {
	m, err := d.reserve(size)
	if err != nil {
		return nil, err
	}
	if err := d.zero(m, 0, d.arena.Footprint(size)); err != nil {
		m.Free()
		return nil, fmt.Errorf("cuda: %w", err)
	}
	return m, nil
}

// Import copies host bytes to the device; the memory is read-only.
func (d *Device) Import(ctx context.Context, b []byte) (runtime.Memory, error) {
	return d.ImportSource(ctx, hostBytes(b))
}

// hostBytes is a source of bytes that are there.
type hostBytes []byte

func (b hostBytes) Size() int64 { return int64(len(b)) }

func (b hostBytes) ReadAt(p []byte, offset int64) (int, error) {
	return copy(p, b[offset:]), nil
}

// ImportSource copies what a source has to the device, several pieces at a time:
// each is made in a pinned buffer. The memory is read-only.
func (d *Device) ImportSource(ctx context.Context, source runtime.Source) (runtime.Memory, error) {
	size := source.Size()
	m, err := d.reserve(size)
	if err != nil {
		return nil, err
	}
	m.ReadOnly = true
	whole := size / alignment * alignment
	err = d.zero(m, whole, d.arena.Footprint(m.Bytes)-whole) // the padding; the bytes land on top
	if err == nil {
		err = d.staging.upload(ctx, m.Base, source)
	}
	if err != nil {
		m.Free()
		return nil, fmt.Errorf("cuda: import of %d bytes: %w", size, err)
	}
	return m, nil
}

// AllocScratch returns memory for values that live within a step. Contents of an
// earlier step mean nothing; under an emulator reading them is an error.
func (d *Device) AllocScratch(ctx context.Context, size int64) (runtime.Memory, error) {
	m, err := d.Alloc(ctx, size)
	if err != nil {
		return nil, err
	}
	_, checks := d.checker()
	m.(*memory).scratch = checks
	return m, nil
}

// zero clears a part of a memory's footprint and waits for it.
func (d *Device) zero(m *memory, offset, bytes int64) error {
	return d.with(func() error {
		if err := d.drv.Fill(m.Base+driver.Ptr(offset), 0, uint64(bytes), d.stream); err != nil {
			return err
		}
		return d.drv.StreamSynchronize(d.stream)
	})
}

// maxAllocation bounds sizes so that rounding up cannot overflow.
const maxAllocation = 1 << 46

func (d *Device) reserve(size int64) (*memory, error) {
	if size < 0 || size > maxAllocation {
		return nil, fmt.Errorf("cuda: allocation of %d bytes", size)
	}
	m := &memory{device: d}
	m.Bytes = size
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.with(func() error {
		var err error
		if m.Base, err = d.arena.Alloc(size); driver.CodeOf(err) == driver.OutOfMemory {
			err = d.outOfMemory(size)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// outOfMemory describes a failed allocation.
func (d *Device) outOfMemory(size int64) error {
	free, total, err := d.drv.MemInfo()
	if err != nil {
		return errors.Join(ErrOutOfMemory, err)
	}
	return &OutOfMemoryError{Device: d.Name(), Asked: size, Held: d.arena.Bytes(), Free: int64(free), Total: int64(total)}
}

// take is the arena's source.
func (d *Device) take(bytes int64) (driver.Ptr, error) { return d.drv.MemAlloc(uint64(bytes)) }

// Free returns the memory. No step that uses it may run afterwards; one that
// does is an error.
func (m *memory) Free() {
	if !m.End() {
		return
	}
	d := m.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	// A refusal means that the context is gone and the memory with it.
	_ = d.with(func() error { return d.arena.Release(m.Base) })
}

// Read copies device bytes to the host.
func (m *memory) Read(ctx context.Context, offset int64, into []byte) error {
	if err := m.CheckRead(offset, len(into)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if len(into) == 0 {
		return nil
	}
	if err := m.device.staging.download(ctx, into, m.Base+driver.Ptr(offset)); err != nil {
		return fmt.Errorf("cuda: read of %d bytes: %w", len(into), err)
	}
	return nil
}

// Write copies host bytes to the device.
func (m *memory) Write(ctx context.Context, offset int64, from []byte) error {
	if err := m.CheckWrite(offset, len(from)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if len(from) == 0 {
		return nil
	}
	if err := m.device.staging.upload(ctx, m.Base+driver.Ptr(offset), hostBytes(from)); err != nil {
		return fmt.Errorf("cuda: write of %d bytes: %w", len(from), err)
	}
	return nil
}
