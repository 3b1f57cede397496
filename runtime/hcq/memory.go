package hcq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"tgc/runtime"
	"tgc/runtime/nvidia"
)

// memory is a part of the arena, which both sides see.
type memory struct {
	device   *Device
	base     uint64
	host     []byte
	readOnly bool
	freed    atomic.Bool
}

// maxAllocation bounds sizes so that rounding up cannot overflow: what the addresses of
// the GPU reach.
const maxAllocation = 1 << 40

// Alloc returns zeroed memory.
func (d *Device) Alloc(ctx context.Context, size int64) (runtime.Memory, error) {
	m, err := d.reserve(ctx, size)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Import copies host bytes; the memory is read-only.
func (d *Device) Import(ctx context.Context, b []byte) (runtime.Memory, error) {
	m, err := d.reserve(ctx, int64(len(b)))
	if err != nil {
		return nil, err
	}
	copy(m.host, b)
	m.readOnly = true
	return m, nil
}

// ImportSource has a source write straight into memory that the GPU sees.
func (d *Device) ImportSource(ctx context.Context, source runtime.Source) (runtime.Memory, error) {
	m, err := d.reserve(ctx, source.Size())
	if err != nil {
		return nil, err
	}
	for at := int64(0); at < source.Size() && err == nil; at += importPiece {
		if err = ctx.Err(); err != nil {
			err = context.Cause(ctx)
			break
		}
		_, err = source.ReadAt(m.host[at:min(at+importPiece, source.Size())], at)
	}
	if err != nil {
		m.Free()
		return nil, fmt.Errorf("hcq: import of %d bytes: %w", source.Size(), err)
	}
	m.readOnly = true
	return m, nil
}

// importPiece is how much is asked of a source at once, in bytes.
const importPiece = 16 << 20

func (d *Device) reserve(_ context.Context, size int64) (*memory, error) {
	if size < 0 || size > maxAllocation {
		return nil, fmt.Errorf("hcq: allocation of %d bytes", size)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	base, err := d.arena.Alloc(size)
	if err != nil {
		return nil, &nvidia.OutOfMemoryError{Device: d.Name(), Asked: size, Held: d.arena.Bytes(), Total: d.board.Info().MemoryBytes}
	}
	m := &memory{device: d, base: base}
	whole := d.hostOf(base, d.arena.Footprint(size))
	clear(whole)
	m.host = whole[:size:size]
	return m, nil
}

// hostOf is memory of the arena as the host sees it.
func (d *Device) hostOf(address uint64, size int64) []byte {
	for base, b := range d.blocks {
		if address >= base && address+uint64(size) <= base+uint64(len(b.Host)) {
			return b.Host[address-base : address-base+uint64(size)]
		}
	}
	return nil
}

// take and give are the arena's source.
func (d *Device) take(bytes int64) (uint64, error) {
	b, err := d.board.Alloc(bytes, UseData)
	if err != nil {
		return 0, err
	}
	d.blocks[b.Address] = b
	return b.Address, nil
}

func (d *Device) give(address uint64) error {
	b := d.blocks[address]
	delete(d.blocks, address)
	return d.board.Free(b)
}

// Usage is the memory in use.
type Usage struct {
	Allocations   int
	Bytes         int64 // of them, with padding
	ReservedBytes int64 // taken from the kernel
}

// Usage reports the memory in use: what leaks stays in it.
func (d *Device) Usage() Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Usage{d.arena.Live(), d.arena.Bytes(), d.arena.Reserved()}
}

// Size is the size asked for, in bytes.
func (m *memory) Size() int64 { return int64(len(m.host)) }

// IsReadOnly tells imported memory.
func (m *memory) IsReadOnly() bool { return m.readOnly }

// Address is where it lies for kernels.
func (m *memory) Address() uint64 { return m.base }

// Freed tells memory that was given back.
func (m *memory) Freed() bool { return m.freed.Load() }

// Host is nil: the host sees the bytes, but the GPU may be at work on them.
func (m *memory) Host() []byte { return nil }

// Free returns the memory, once the GPU has ended what may use it.
func (m *memory) Free() {
	if m.freed.Swap(true) {
		return
	}
	d := m.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if err := d.idle(context.Background()); err != nil {
		return // the GPU is gone, or may still write
	}
	d.freed = errors.Join(d.freed, d.arena.Release(m.base))
}

// Read copies bytes out, once what was submitted has ended.
func (m *memory) Read(ctx context.Context, offset int64, into []byte) error {
	return m.touch(ctx, "read", offset, len(into), func(part []byte) { copy(into, part) })
}

// Write copies bytes in, once what was submitted has ended.
func (m *memory) Write(ctx context.Context, offset int64, from []byte) error {
	if m.readOnly {
		return errors.New("hcq: write: imported memory is read-only")
	}
	return m.touch(ctx, "write", offset, len(from), func(part []byte) { copy(part, from) })
}

func (m *memory) touch(ctx context.Context, what string, offset int64, n int, f func([]byte)) error {
	if m.freed.Load() {
		return fmt.Errorf("hcq: %s: the memory has been freed", what)
	}
	if err := runtime.CheckSpan(m, what, offset, n); err != nil || n == 0 {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.device.mu.Lock()
	defer m.device.mu.Unlock()
	if err := m.device.idle(ctx); err != nil {
		return err
	}
	f(m.host[offset : offset+int64(n)])
	return nil
}
