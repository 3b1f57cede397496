package hcq

import (
	"context"
	"errors"
	"fmt"

	"tgc/runtime"
	"tgc/runtime/nvidia"
)

// memory is a part of the arena, which both sides see.
type memory struct {
	nvidia.Allocation[uint64]
	device *Device
	host   []byte
	// What may be under way that uses it: recorded steps, each of which knows its last run,
	// and copies, of which this is the last one's value of the timeline. The device's lock.
	steps  map[*Recording]bool
	copied uint64
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
	m.ReadOnly = true
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
	m.ReadOnly = true
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
	m := &memory{device: d, steps: make(map[*Recording]bool)}
	m.Base, m.Bytes = base, size
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
type Usage = nvidia.Usage

// Usage reports the memory in use: what leaks stays in it.
func (d *Device) Usage() Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arena.Usage()
}

// Free returns the memory, once the GPU has ended what may use it.
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
	if err := d.idle(context.Background()); err != nil {
		return // the GPU is gone, or may still write
	}
	d.freed = errors.Join(d.freed, d.arena.Release(m.Base))
}

// Read copies bytes out, once what was submitted has ended.
func (m *memory) Read(ctx context.Context, offset int64, into []byte) error {
	return m.touch(ctx, m.CheckRead, offset, len(into), func() error {
		if err := m.device.ended(ctx); err != nil {
			return err
		}
		copy(into, m.host[offset:])
		return nil
	})
}

// Write copies bytes in, after what was submitted and before what will be. The CPU does it
// at once where nothing under way uses the memory; else the copy queue does, from a piece of
// staging, and nobody waits.
func (m *memory) Write(ctx context.Context, offset int64, from []byte) error {
	return m.touch(ctx, m.CheckWrite, offset, len(from), func() error {
		d := m.device
		switch {
		case d.quiet(m):
		case len(from) <= mostStaged:
			return d.upload(m, offset, from)
		default:
			if err := d.ended(ctx); err != nil {
				return err
			}
		}
		copy(m.host[offset:], from)
		return nil
	})
}

// touch calls a function with the lock held, of n bytes that are there.
func (m *memory) touch(ctx context.Context, check func(offset int64, n int) error, offset int64, n int, f func() error) error {
	if err := check(offset, n); err != nil {
		return fmt.Errorf("hcq: %w", err)
	}
	if n == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.device.mu.Lock()
	defer m.device.mu.Unlock()
	if err := m.device.usable(); err != nil {
		return err
	}
	return m.device.noteFault(f(), nil)
}
