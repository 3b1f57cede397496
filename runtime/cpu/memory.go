package cpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"tgc/runtime"
	"tgc/runtime/cpu/native"
)

// padding is the room after every allocation, in bytes: a vector of floats. Programs may read it.
const padding = 128

// memory is host memory: allocated outside the Go heap, or imported.
type memory struct {
	runtime.HostMemory
	owned *native.Memory // nil when imported
}

// Alloc returns zeroed memory, page-aligned. Pages become resident when they
// are touched: a cache of the longest context costs what is used of it.
func (d *Device) Alloc(_ context.Context, size int64) (runtime.Memory, error) {
	return allocate(size, native.AllocSparse)
}

// AllocWhole is Alloc with large pages: see runtime.WholeAllocator. One Zen 5
// core sums the columns of 64 MB at 40 GB/s instead of 33.
func (d *Device) AllocWhole(_ context.Context, size int64) (runtime.Memory, error) {
	return allocate(size, native.Alloc)
}

// AllocScratch is for temporaries, which lie side by side and are written whole.
func (d *Device) AllocScratch(ctx context.Context, size int64) (runtime.Memory, error) {
	return d.AllocWhole(ctx, size)
}

func allocate(size int64, pages func(int64) (*native.Memory, error)) (runtime.Memory, error) {
	if size < 0 {
		return nil, fmt.Errorf("cpu: allocation of %d bytes", size)
	}
	m, err := pages(size + padding)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return &memory{runtime.HostMemory{Data: m.Bytes()[:size:size]}, m}, nil
}

// Import reads host bytes where they are. They must outlive the memory.
func (d *Device) Import(_ context.Context, b []byte) (runtime.Memory, error) {
	return &memory{HostMemory: runtime.HostMemory{Data: b, ReadOnly: true}}, nil
}

// ImportSource makes read-only memory of large pages of what a source has.
func (d *Device) ImportSource(ctx context.Context, source runtime.Source) (runtime.Memory, error) {
	m, err := d.AllocWhole(ctx, source.Size())
	if err != nil {
		return nil, err
	}
	held := m.(*memory)
	if _, err := source.ReadAt(held.Data, 0); err != nil && !errors.Is(err, io.EOF) {
		m.Free()
		return nil, err
	}
	held.ReadOnly = true
	return m, nil
}

// Free unmaps allocated memory. No step that uses it may run afterwards.
func (m *memory) Free() {
	m.Data = nil
	if m.owned != nil {
		_ = m.owned.Free() // unmapping our own mapping does not fail
	}
}

func (m *memory) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.Data))) }
