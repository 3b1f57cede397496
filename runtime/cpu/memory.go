package cpu

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"tgc/runtime"
	"tgc/runtime/cpu/native"
)

// padding is the room after every allocation, in bytes. Programs may read it.
const padding = 64

// memory is host memory: allocated outside the Go heap, or imported.
type memory struct {
	data     []byte
	owned    *native.Memory // nil when imported
	readOnly bool
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
	return &memory{data: m.Bytes()[:size:size], owned: m}, nil
}

// Import reads host bytes where they are. They must outlive the memory.
func (d *Device) Import(_ context.Context, b []byte) (runtime.Memory, error) {
	return &memory{data: b, readOnly: true}, nil
}

func (m *memory) Size() int64  { return int64(len(m.data)) }
func (m *memory) Host() []byte { return m.data }

// Free unmaps allocated memory. No step that uses it may run afterwards.
func (m *memory) Free() {
	m.data = nil
	if m.owned != nil {
		_ = m.owned.Free() // unmapping our own mapping does not fail
	}
}

func (m *memory) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.data))) }

func (m *memory) Read(_ context.Context, offset int64, into []byte) error {
	if err := m.check("read", offset, len(into)); err != nil {
		return err
	}
	copy(into, m.data[offset:])
	return nil
}

func (m *memory) Write(_ context.Context, offset int64, from []byte) error {
	if m.readOnly {
		return errors.New("cpu: write: imported memory is read-only")
	}
	if err := m.check("write", offset, len(from)); err != nil {
		return err
	}
	copy(m.data[offset:], from)
	return nil
}

func (m *memory) check(what string, offset int64, n int) error {
	if offset < 0 || offset > m.Size() || int64(n) > m.Size()-offset {
		return fmt.Errorf("cpu: %s: %d bytes at %d of a buffer of %d", what, n, offset, m.Size())
	}
	return nil
}
