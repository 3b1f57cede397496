// Package kernel is a port.Port on the kernel that runs: descriptors, requests, mapped
// memory, and a barrier. Nobody has run it on a Jetson yet.
package kernel

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Port asks the kernel.
type Port struct{}

// Open opens a node, which children do not inherit.
func (Port) Open(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_SYNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if fd > 0 {
		return fd, nil
	}
	// The kernel driver takes descriptor 0 for none.
	other, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 1)
	if closeErr := unix.Close(0); err == nil {
		err = closeErr
	}
	return other, err
}

// Close closes a descriptor.
func (Port) Close(fd int) error { return unix.Close(fd) }

// descriptors are requests that return one, with its place in the argument. What the
// kernel returns may be inherited by children, until that is changed.
var descriptors = map[uint32]int{
	0xc0084e0f: 0, // NVMAP_IOC_GET_FD
	0xc0404708: 4, // GPU_ALLOC_AS
	0xc0184709: 0, // GPU_OPEN_TSG
	0xc004470b: 0, // GPU_OPEN_CHANNEL
}

// Ioctl makes a request. The argument and what it points to stay where they are
// meanwhile; the address is taken out of the argument afterwards.
func (Port) Ioctl(fd int, number uint32, argument, pointee []byte, pointer int) error {
	if len(argument) == 0 || pointer >= 0 && (pointer+8 > len(argument) || len(pointee) == 0) {
		return unix.EINVAL
	}
	var pinned runtime.Pinner
	defer pinned.Unpin()
	pinned.Pin(unsafe.SliceData(argument))
	if pointer >= 0 {
		pinned.Pin(unsafe.SliceData(pointee))
		binary.NativeEndian.PutUint64(argument[pointer:], uint64(uintptr(unsafe.Pointer(unsafe.SliceData(pointee)))))
		defer clear(argument[pointer : pointer+8])
	}
	at, returns := descriptors[number]
	if returns { // no child is started between the request and the flag
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	err := request(fd, number, uintptr(unsafe.Pointer(unsafe.SliceData(argument))))
	if err == nil && returns && at+4 <= len(argument) {
		unix.CloseOnExec(int(int32(binary.NativeEndian.Uint32(argument[at:]))))
	}
	return err
}

// IoctlValue makes a request whose argument is a value.
func (Port) IoctlValue(fd int, number uint32, value uint64) error {
	return request(fd, number, uintptr(value))
}

// request makes a request, again where a signal has interrupted it.
func request(fd int, number uint32, argument uintptr) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(number), argument)
		switch e {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return e
	}
}

// Mmap maps memory of a descriptor.
func (Port) Mmap(fd, bytes int) ([]byte, error) {
	return unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// Munmap ends a mapping.
func (Port) Munmap(mapping []byte) error { return unix.Munmap(mapping) }

// Publish is a full barrier of the system: stores to memory of any kind are seen by
// devices before those after it.
func (Port) Publish() { barrier() }

// Doorbell stores a word in a mapping of a device.
func (Port) Doorbell(mapping []byte, offset int, value uint32) {
	if offset < 0 || offset%4 != 0 || offset+4 > len(mapping) {
		panic(fmt.Sprintf("tegra: a doorbell at %d of %d bytes", offset, len(mapping)))
	}
	(*atomic.Uint32)(unsafe.Pointer(&mapping[offset])).Store(value)
}
