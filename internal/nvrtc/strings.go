package nvrtc

import (
	"runtime"
	"unsafe"
)

// cStrings is an array of zero-terminated strings in pinned Go memory.
type cStrings struct {
	pointers []uintptr
	pinner   runtime.Pinner
}

func newStrings(list []string) *cStrings {
	s := &cStrings{pointers: make([]uintptr, len(list))}
	for i, text := range list {
		bytes := append([]byte(text), 0)
		s.pinner.Pin(&bytes[0])
		s.pointers[i] = uintptr(unsafe.Pointer(&bytes[0]))
	}
	return s
}

// keep ends the pinning: what was pointed to was alive until here.
func (s *cStrings) keep() { s.pinner.Unpin() }
