package driver

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"tgc/internal/pages"
)

// scratchBytes is the size of a pooled argument block: enough for the
// parameters of any kernel (4 KB of values and as much of addresses) and for
// hundreds of edges.
const scratchBytes = 32 << 10

// scratch is memory outside the Go heap that holds the arguments and results of
// one call. The driver gets addresses as integers, which neither keep Go memory
// alive nor follow a stack that moves.
type scratch struct {
	mapping []byte
	used    int
}

// scratchPool keeps blocks of scratchBytes for reuse.
type scratchPool struct {
	mu   sync.Mutex
	free []*scratch
}

// get returns a block with room for at least n bytes.
func (p *scratchPool) get(n int) (*scratch, error) {
	if n <= scratchBytes {
		p.mu.Lock()
		if last := len(p.free) - 1; last >= 0 {
			s := p.free[last]
			p.free = p.free[:last]
			p.mu.Unlock()
			return s, nil
		}
		p.mu.Unlock()
		n = scratchBytes
	}
	mapping, err := pages.Map(n)
	if err != nil {
		return nil, fmt.Errorf("cuda: argument block of %d bytes: %w", n, err)
	}
	return &scratch{mapping: mapping}, nil
}

func (p *scratchPool) put(s *scratch) {
	if len(s.mapping) > scratchBytes {
		_ = pages.Unmap(s.mapping) // unmapping our own mapping does not fail
		return
	}
	s.used = 0
	p.mu.Lock()
	p.free = append(p.free, s)
	p.mu.Unlock()
}

// slot is a zeroed part of a block.
type slot []byte

func (b slot) addr() uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData([]byte(b))))
}
func (b slot) put32(at int, v uint32)  { binary.NativeEndian.PutUint32(b[at:], v) }
func (b slot) put64(at int, v uint64)  { binary.NativeEndian.PutUint64(b[at:], v) }
func (b slot) putAddr(at int, to slot) { b.put64(at, uint64(to.addr())) }
func (b slot) uint64() uint64          { return binary.NativeEndian.Uint64(b) }
func words[T ~uintptr | ~uint64](s *scratch, values []T) slot {
	b := s.bytes(8 * len(values))
	for i, v := range values {
		b.put64(8*i, uint64(v))
	}
	return b
}

// bytes takes n zeroed bytes, aligned to 8.
func (s *scratch) bytes(n int) slot {
	size := (n + 7) &^ 7
	if s.used+size > len(s.mapping) {
		panic(fmt.Sprintf("cuda: argument block of %d bytes is too small for %d more", len(s.mapping), size))
	}
	b := s.mapping[s.used : s.used+max(n, 1)]
	s.used += max(size, 8)
	clear(b)
	return b
}

// text takes a copy of a string with a zero byte after it.
func (s *scratch) text(v string) slot {
	b := s.bytes(len(v) + 1)
	copy(b, v)
	return b
}

// cString reads a zero-terminated string that the driver owns.
func cString(address uintptr) string {
	if address == 0 {
		return ""
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&address)) // memory of the driver: no Go object
	var n int
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// foreign is a view of n bytes of the driver's memory.
func foreign(address uintptr, n int) []byte {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	return unsafe.Slice((*byte)(p), n)
}

// untilZero is the text in a buffer up to its first zero byte.
func untilZero(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
