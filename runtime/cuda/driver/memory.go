package driver

import (
	"fmt"
	"unsafe"
)

// MemInfo is the free and total memory of the current context's GPU in bytes.
func (l *Library) MemInfo() (free, total uint64, err error) {
	s, err := l.pool.get(16)
	if err != nil {
		return 0, 0, err
	}
	defer l.pool.put(s)
	f, t := s.bytes(8), s.bytes(8)
	if err := l.call(fnMemGetInfo, f.addr(), t.addr()); err != nil {
		return 0, 0, err
	}
	return f.uint64(), t.uint64(), nil
}

// MemAlloc takes device memory; its contents are undefined.
func (l *Library) MemAlloc(bytes uint64) (Ptr, error) {
	p, err := l.out(fnMemAlloc, uintptr(bytes))
	return Ptr(p), err
}

// MemFree gives device memory back.
func (l *Library) MemFree(p Ptr) error { return l.call(fnMemFree, uintptr(p)) }

// hostFlags is CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts.
const hostFlags = 1

// HostAlloc takes pinned host memory, which the GPU's copy engines reach.
func (l *Library) HostAlloc(bytes int) ([]byte, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("cuda: pinned memory of %d bytes", bytes)
	}
	p, err := l.out(fnMemHostAlloc, uintptr(bytes), hostFlags)
	if err != nil {
		return nil, err
	}
	return foreign(uintptr(p), bytes), nil
}

// HostFree gives pinned memory back.
func (l *Library) HostFree(b []byte) error { return l.call(fnMemFreeHost, address(b)) }

// CopyToDevice queues a copy out of pinned memory.
func (l *Library) CopyToDevice(to Ptr, from []byte, s Stream) error {
	return l.call(fnMemcpyHtoDAsync, uintptr(to), address(from), uintptr(len(from)), uintptr(s))
}

// CopyToHost queues a copy into pinned memory.
func (l *Library) CopyToHost(to []byte, from Ptr, s Stream) error {
	return l.call(fnMemcpyDtoHAsync, address(to), uintptr(from), uintptr(len(to)), uintptr(s))
}

// Fill queues setting every byte of a part of device memory.
func (l *Library) Fill(to Ptr, value byte, bytes uint64, s Stream) error {
	return l.call(fnMemsetD8Async, uintptr(to), uintptr(value), uintptr(bytes), uintptr(s))
}

// address is where a slice of pinned memory starts.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
