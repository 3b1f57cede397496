package emu

import (
	"math/bits"
	"slices"
)

// space is the kernel driver's allocator of GPU addresses: a buddy allocator whose
// blocks are aligned relative to its start. Free blocks of an order are a stack.
type space struct {
	start, end uint64
	free       [orders][]uint64 // by order, offsets from start
	taken      map[uint64]int   // order of a block that is in use, by offset
}

const (
	pageBytes = 4096
	orders    = 29 // up to 1 TiB
)

func blockBytes(order int) uint64 { return pageBytes << order }

// newSpace cuts the range from the bottom into the largest blocks that fit.
func newSpace(start, end uint64) *space {
	s := &space{start: start, end: end, taken: make(map[uint64]int)}
	at := uint64(0)
	for left := end - start; left >= pageBytes; {
		order := bits.Len64(left/pageBytes) - 1
		s.push(order, at)
		at += blockBytes(order)
		left -= blockBytes(order)
	}
	return s
}

func (s *space) push(order int, offset uint64) { s.free[order] = append(s.free[order], offset) }

// orderFor is the least order with a number of bytes.
func orderFor(size uint64) int {
	pages := (size + pageBytes - 1) / pageBytes
	return bits.Len64(max(pages, 1) - 1)
}

// alloc takes the top of the smallest order that has a block, and splits it, keeping the
// left half.
func (s *space) alloc(size uint64) (address uint64, ok bool) {
	want := orderFor(size)
	for order := want; order < orders; order++ {
		n := len(s.free[order])
		if n == 0 {
			continue
		}
		offset := s.free[order][n-1]
		s.free[order] = s.free[order][:n-1]
		for ; order > want; order-- {
			s.push(order-1, offset+blockBytes(order-1))
		}
		s.taken[offset] = want
		return s.start + offset, true
	}
	return 0, false
}

// release gives a block back, joined with its buddies that are free.
func (s *space) release(address uint64) {
	offset := address - s.start
	order, ok := s.taken[offset]
	if !ok {
		return
	}
	delete(s.taken, offset)
	s.give(order, offset)
}

func (s *space) give(order int, offset uint64) {
	for order < orders-1 {
		buddy := offset ^ blockBytes(order)
		i := slices.Index(s.free[order], buddy)
		if i < 0 {
			break
		}
		s.free[order] = slices.Delete(s.free[order], i, i+1)
		offset = min(offset, buddy)
		order++
	}
	s.push(order, offset)
}

// reserve takes a fixed range; false if a part of it is in use or outside.
func (s *space) reserve(address, size uint64) bool {
	if address < s.start || address+size > s.end || address%pageBytes != 0 || size%pageBytes != 0 || size == 0 {
		return false
	}
	from, to := address-s.start, address-s.start+size
	free := uint64(0)
	for order := range s.free {
		for _, offset := range s.free[order] {
			low, high := max(offset, from), min(offset+blockBytes(order), to)
			if low < high {
				free += high - low
			}
		}
	}
	if free != size {
		return false
	}
	for order := orders - 1; order >= 0; order-- {
		for i := 0; i < len(s.free[order]); {
			offset := s.free[order][i]
			low, high := max(offset, from), min(offset+blockBytes(order), to)
			if low >= high {
				i++
				continue
			}
			s.free[order] = slices.Delete(s.free[order], i, i+1)
			if high-low == blockBytes(order) {
				s.taken[offset] = order
				continue
			}
			s.push(order-1, offset)
			s.push(order-1, offset+blockBytes(order-1))
		}
	}
	return true
}

// unreserve gives the blocks of a fixed range back.
func (s *space) unreserve(address, size uint64) {
	for offset := address - s.start; offset < address-s.start+size; {
		order, ok := s.taken[offset]
		if !ok {
			return
		}
		delete(s.taken, offset)
		s.give(order, offset)
		offset += blockBytes(order)
	}
}
