package emulator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"unsafe"

	"tgc/runtime/cuda/driver"
)

// addressAlign is what the real driver aligns allocations to, in bytes. They
// are aligned to no more here.
const addressAlign = 256

// sortedKeys lists the keys of a map in order, so that nothing depends on the
// map's.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// MemInfo is the free and total memory.
func (d *Driver) MemInfo() (free, total uint64, err error) {
	err = d.in("cuMemGetInfo", func(c *gpuContext) error {
		total, free = uint64(c.limit), uint64(max(c.limit-c.memory.Used(), 0))
		return nil
	})
	return free, total, err
}

// MemAlloc takes memory that holds nothing yet.
func (d *Driver) MemAlloc(bytes uint64) (p driver.Ptr, err error) {
	err = d.in("cuMemAlloc", func(c *gpuContext) error {
		if free := c.limit - c.memory.Used(); bytes > uint64(max(free, 0)) {
			return refuse("cuMemAlloc", driver.OutOfMemory, "out of memory: %d bytes asked for, %d free", bytes, free)
		}
		address, err := c.memory.Alloc(int64(bytes), addressAlign)
		if err != nil {
			return refuse("cuMemAlloc", driver.OutOfMemory, "%v", err)
		}
		p = driver.Ptr(address)
		c.sizes[p] = bytes
		return nil
	})
	return p, err
}

// MemFree gives memory back after all work that may use it.
func (d *Driver) MemFree(p driver.Ptr) error {
	return d.in("cuMemFree", func(c *gpuContext) error {
		if err := c.drainAll(); err != nil {
			return err
		}
		if err := c.memory.Free(uint64(p)); err != nil {
			return refuse("cuMemFree", driver.InvalidValue, "%v", err)
		}
		delete(c.sizes, p)
		return nil
	})
}

// HostAlloc takes host memory that copies may name.
func (d *Driver) HostAlloc(bytes int) (b []byte, err error) {
	err = d.in("cuMemHostAlloc", func(c *gpuContext) error {
		if bytes <= 0 {
			return refuse("cuMemHostAlloc", driver.InvalidValue, "%d bytes", bytes)
		}
		b = make([]byte, bytes)
		c.pinned[unsafe.SliceData(b)] = true
		return nil
	})
	return b, err
}

// HostFree gives host memory back.
func (d *Driver) HostFree(b []byte) error {
	return d.in("cuMemFreeHost", func(c *gpuContext) error {
		if p := unsafe.SliceData(b); c.pinned[p] {
			delete(c.pinned, p)
			return nil
		}
		return refuse("cuMemFreeHost", driver.InvalidValue, "host memory that was not HostAlloc's")
	})
}

// CopyToDevice queues a copy; the bytes are those at the time when it runs.
func (d *Driver) CopyToDevice(to driver.Ptr, from []byte, s driver.Stream) error {
	return d.in("cuMemcpyHtoDAsync", func(c *gpuContext) error {
		return c.queue("cuMemcpyHtoDAsync", s, func(context.Context) error { return c.memory.Write(uint64(to), from) })
	})
}

// CopyToHost queues a copy of bytes, defined or not.
func (d *Driver) CopyToHost(to []byte, from driver.Ptr, s driver.Stream) error {
	return d.in("cuMemcpyDtoHAsync", func(c *gpuContext) error {
		return c.queue("cuMemcpyDtoHAsync", s, func(context.Context) error { return c.memory.Read(uint64(from), to) })
	})
}

// Fill queues setting bytes.
func (d *Driver) Fill(to driver.Ptr, value byte, bytes uint64, s driver.Stream) error {
	return d.in("cuMemsetD8Async", func(c *gpuContext) error {
		return c.queue("cuMemsetD8Async", s, func(context.Context) error { return c.memory.Fill(uint64(to), value, int(bytes)) })
	})
}

// Poison queues making bytes undefined: see driver.Checker.
func (d *Driver) Poison(p driver.Ptr, bytes uint64, s driver.Stream) error {
	return d.in("poison", func(c *gpuContext) error {
		return c.queue("poison", s, func(context.Context) error { return c.memory.Poison(uint64(p), int(bytes)) })
	})
}
