package emu

import (
	"math/rand/v2"
	"testing"
)

const (
	spaceStart = 0x200000
	spaceEnd   = 0xffffe00000
)

// The addresses that a board gave, in its order.
func TestRecordedAddresses(t *testing.T) {
	s := newSpace(spaceStart, spaceEnd)
	for _, c := range []struct{ size, want uint64 }{
		{4 << 10, 0xffffa00000}, {4 << 10, 0xffffa01000}, {64 << 10, 0xffffa10000}, {1 << 20, 0xffffb00000}, {16 << 20, 0xfffe200000}, {64 << 20, 0xfff8200000},
	} {
		if got, ok := s.alloc(c.size); !ok || got != c.want {
			t.Errorf("%d bytes at %#x, want %#x", c.size, got, c.want)
		}
	}
	s = newSpace(spaceStart, spaceEnd)
	last := uint64(0)
	for range 8 {
		last, _ = s.alloc(512 << 20)
	}
	if last != 0xfe00200000 {
		t.Errorf("the eighth buffer of 512 MiB is at %#x", last)
	}
}

// Reserved ranges stay free of allocations; everything given back is one again.
func TestReserve(t *testing.T) {
	s := newSpace(spaceStart, spaceEnd)
	for _, base := range []uint64{0xfd00000000, 0xfe00000000} {
		if !s.reserve(base, 1<<30) {
			t.Fatalf("%#x cannot be reserved", base)
		}
		if s.reserve(base+4096, 4096) {
			t.Errorf("a part of %#x is reserved twice", base)
		}
	}
	if first, _ := s.alloc(4096); first != 0xfe40000000 {
		t.Errorf("the first buffer after the reservations is at %#x", first)
	}
	random := rand.New(rand.NewPCG(1, 2))
	live := make(map[uint64]uint64)
	for range 3000 {
		size := uint64(1) << (12 + random.IntN(20))
		at, ok := s.alloc(size - uint64(random.IntN(4000)))
		if !ok {
			t.Fatalf("no room for %d bytes", size)
		}
		for _, base := range []uint64{0xfd00000000, 0xfe00000000} {
			if at < base+1<<30 && base < at+size {
				t.Fatalf("%d bytes at %#x lie in a window", size, at)
			}
		}
		if (at-spaceStart)%size != 0 {
			t.Fatalf("%d bytes at %#x", size, at)
		}
		live[at] = size
		if len(live) > 40 {
			for at := range live {
				s.release(at)
				delete(live, at)
				break
			}
		}
	}
	for at := range live {
		s.release(at)
	}
	s.release(0xfe40000000)
	s.unreserve(0xfd00000000, 1<<30)
	s.unreserve(0xfe00000000, 1<<30)
	fresh := newSpace(spaceStart, spaceEnd)
	for order := range s.free {
		if len(s.free[order]) != len(fresh.free[order]) || len(fresh.free[order]) == 1 && s.free[order][0] != fresh.free[order][0] {
			t.Errorf("order %d: %x is free, want %x", order, s.free[order], fresh.free[order])
		}
	}
	if s.reserve(0x1000, 4096) || s.reserve(spaceEnd, 4096) || s.reserve(spaceStart, 100) {
		t.Error("reserved outside")
	}
}
