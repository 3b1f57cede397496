package cuda

import (
	"fmt"
	"slices"

	"tgc/runtime/cuda/driver"
)

const (
	// alignment of every allocation, in bytes: what the driver itself gives,
	// enough for any vector access and for whole cache lines.
	alignment = 256
	// padding is the least room after an allocation; programs may read it.
	padding = 64
	// blockBytes is what the arena takes from the driver at once, a multiple of
	// its 2 MiB pages. Models have hundreds of small tensors.
	blockBytes = 32 << 20
	// largeBytes is the size from which an allocation gets a block of its own.
	largeBytes = blockBytes / 4
)

// span is a free part of a block.
type span struct{ offset, size int64 }

// block is memory taken from the driver.
type block struct {
	base driver.Ptr
	size int64
	free []span // by offset, never adjacent
}

// whole reports whether nothing of a block is in use.
func (b *block) whole() bool { return len(b.free) == 1 && b.free[0].size == b.size }

// arena hands out parts of large blocks. It is not safe for concurrent use.
type arena struct {
	take   func(bytes int64) (driver.Ptr, error)
	give   func(driver.Ptr) error
	blocks []*block
	live   map[driver.Ptr]int64 // size by address
	bytes  int64                // sum over live
	// apart makes every allocation the driver's own, to the byte: an emulator then
	// sees accesses outside of it.
	apart bool
}

func newArena(take func(int64) (driver.Ptr, error), give func(driver.Ptr) error, apart bool) *arena {
	return &arena{take: take, give: give, live: make(map[driver.Ptr]int64), apart: apart}
}

// footprint is what an allocation of n bytes occupies.
func (a *arena) footprint(n int64) int64 {
	if a.apart {
		return n + padding
	}
	return (n + padding + alignment - 1) / alignment * alignment
}

// alloc returns the address of n bytes.
func (a *arena) alloc(n int64) (driver.Ptr, error) {
	size := a.footprint(n)
	if size < largeBytes && !a.apart {
		for _, b := range a.blocks {
			if p, ok := b.cut(size); ok {
				return a.keep(p, size), nil
			}
		}
		if b, err := a.grow(blockBytes); err == nil {
			p, _ := b.cut(size)
			return a.keep(p, size), nil
		} // else what is left may do for this alone
	}
	b, err := a.grow(size)
	if err != nil {
		return 0, err
	}
	p, _ := b.cut(size)
	return a.keep(p, size), nil
}

func (a *arena) keep(p driver.Ptr, size int64) driver.Ptr {
	a.live[p] = size
	a.bytes += size
	return p
}

func (a *arena) grow(size int64) (*block, error) {
	base, err := a.take(size)
	if err != nil {
		return nil, err
	}
	b := &block{base: base, size: size, free: []span{{0, size}}}
	a.blocks = append(a.blocks, b)
	return b, nil
}

// cut takes size bytes from the first free span that has them.
func (b *block) cut(size int64) (driver.Ptr, bool) {
	for i, s := range b.free {
		switch {
		case s.size < size:
			continue
		case s.size == size:
			b.free = slices.Delete(b.free, i, i+1)
		default:
			b.free[i] = span{s.offset + size, s.size - size}
		}
		return b.base + driver.Ptr(s.offset), true
	}
	return 0, false
}

// release returns an allocation, and its block to the driver when it was the
// last one in it.
func (a *arena) release(p driver.Ptr) error {
	size, ok := a.live[p]
	if !ok {
		return fmt.Errorf("cuda: free of %#x, which is not allocated", uint64(p))
	}
	delete(a.live, p)
	a.bytes -= size
	i := slices.IndexFunc(a.blocks, func(b *block) bool { return p >= b.base && p < b.base+driver.Ptr(b.size) })
	b := a.blocks[i]
	b.join(span{int64(p - b.base), size})
	if !b.whole() {
		return nil
	}
	a.blocks = slices.Delete(a.blocks, i, i+1)
	return a.give(b.base)
}

// join puts a span back among the free ones.
func (b *block) join(s span) {
	i, _ := slices.BinarySearchFunc(b.free, s.offset, func(f span, at int64) int { return int(min(max(f.offset-at, -1), 1)) })
	b.free = slices.Insert(b.free, i, s)
	if i+1 < len(b.free) && b.free[i].offset+b.free[i].size == b.free[i+1].offset {
		b.free[i].size += b.free[i+1].size
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].offset+b.free[i-1].size == b.free[i].offset {
		b.free[i-1].size += b.free[i].size
		b.free = slices.Delete(b.free, i, i+1)
	}
}
