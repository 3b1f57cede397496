package nvidia

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// Alignment of every allocation, in bytes: what the driver itself gives,
	// enough for any vector access and for whole cache lines.
	Alignment = 256
	// padding is the least room after an allocation; programs may read it.
	padding = 64
	// BlockBytes is what an arena takes from the driver at once unless it is told
	// otherwise, a multiple of its 2 MiB pages. Models have hundreds of small tensors.
	BlockBytes = 32 << 20
	// largePart is the part of a block from which on an allocation gets one of its own.
	largePart = 4
)

// span is a free part of a block.
type span struct{ offset, size int64 }

// block is memory taken from the driver below.
type block[P ~uint64] struct {
	base P
	size int64
	free []span // by offset, never adjacent
}

// whole reports whether nothing of a block is in use.
func (b *block[P]) whole() bool { return len(b.free) == 1 && b.free[0].size == b.size }

// Arena hands out parts of large blocks of device memory, at addresses of type P.
// It is not safe for concurrent use.
type Arena[P ~uint64] struct {
	take   func(bytes int64) (P, error)
	give   func(P) error
	blocks []*block[P]
	live   map[P]int64 // size by address
	bytes  int64       // sum over live
	block  int64       // bytes taken at once
	// apart makes every allocation the driver's own, to the byte: an emulator then
	// sees accesses outside of it.
	apart bool
}

// NewArena makes an arena of memory that take takes in multiples of bytes and give
// gives back, block bytes at once. An arena apart takes every allocation by itself, to
// the byte.
func NewArena[P ~uint64](take func(int64) (P, error), give func(P) error, block int64, apart bool) *Arena[P] {
	return &Arena[P]{take: take, give: give, live: make(map[P]int64), block: block, apart: apart}
}

// Footprint is what an allocation of n bytes occupies.
func (a *Arena[P]) Footprint(n int64) int64 {
	if a.apart {
		return n + padding
	}
	return (n + padding + Alignment - 1) / Alignment * Alignment
}

// Live is the number of allocations.
func (a *Arena[P]) Live() int { return len(a.live) }

// Bytes is what the live allocations occupy.
func (a *Arena[P]) Bytes() int64 { return a.bytes }

// Reserved is what is taken.
func (a *Arena[P]) Reserved() int64 {
	var n int64
	for _, b := range a.blocks {
		n += b.size
	}
	return n
}

// Close gives back all that is taken, whatever is live.
func (a *Arena[P]) Close() error {
	var errs []error
	for _, b := range a.blocks {
		errs = append(errs, a.give(b.base))
	}
	a.blocks = nil
	return errors.Join(errs...)
}

// Alloc returns the address of n bytes.
func (a *Arena[P]) Alloc(n int64) (P, error) {
	size := a.Footprint(n)
	if size < a.block/largePart && !a.apart {
		for _, b := range a.blocks {
			if p, ok := b.cut(size); ok {
				return a.keep(p, size), nil
			}
		}
		if b, err := a.grow(a.block); err == nil {
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

func (a *Arena[P]) keep(p P, size int64) P {
	a.live[p] = size
	a.bytes += size
	return p
}

func (a *Arena[P]) grow(size int64) (*block[P], error) {
	base, err := a.take(size)
	if err != nil {
		return nil, err
	}
	b := &block[P]{base: base, size: size, free: []span{{0, size}}}
	a.blocks = append(a.blocks, b)
	return b, nil
}

// cut takes size bytes from the first free span that has them.
func (b *block[P]) cut(size int64) (P, bool) {
	for i, s := range b.free {
		switch {
		case s.size < size:
			continue
		case s.size == size:
			b.free = slices.Delete(b.free, i, i+1)
		default:
			b.free[i] = span{s.offset + size, s.size - size}
		}
		return b.base + P(s.offset), true
	}
	return 0, false
}

// Release returns an allocation, and its block to the driver when it was the
// last one in it.
func (a *Arena[P]) Release(p P) error {
	size, ok := a.live[p]
	if !ok {
		return fmt.Errorf("nvidia: free of %#x, which is not allocated", uint64(p))
	}
	delete(a.live, p)
	a.bytes -= size
	i := slices.IndexFunc(a.blocks, func(b *block[P]) bool { return p >= b.base && p < b.base+P(b.size) })
	b := a.blocks[i]
	b.join(span{int64(p - b.base), size})
	if !b.whole() {
		return nil
	}
	a.blocks = slices.Delete(a.blocks, i, i+1)
	return a.give(b.base)
}

// join puts a span back among the free ones.
func (b *block[P]) join(s span) {
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
