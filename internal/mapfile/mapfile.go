// Package mapfile maps files and gets memory outside the Go heap, for formats
// whose tensors are used where they lie.
package mapfile

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Mapping is a piece of memory got from the system: a mapped file, or anonymous.
// Bytes may not be used after Unmap.
type Mapping struct{ Bytes []byte }

// Unmap gives the memory back.
func (m Mapping) Unmap() error {
	if len(m.Bytes) == 0 {
		return nil
	}
	if err := unix.Munmap(m.Bytes); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}

// Open maps a regular file for reading. Opening does not block on a named
// pipe, and anything but a regular file (after links) is refused.
func Open(path string) (Mapping, error) {
	fd, err := openRetry(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return Mapping{}, fmt.Errorf("cannot open: %w", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return Mapping{}, fmt.Errorf("cannot open: %w", errors.Unwrap(err))
	case info.IsDir():
		return Mapping{}, errors.New("is a directory, want a regular file")
	case !info.Mode().IsRegular():
		return Mapping{}, errors.New("is not a regular file")
	case info.Size() == 0:
		return Mapping{}, nil // cannot be mapped; parsers call it too short
	case info.Size() > math.MaxInt:
		return Mapping{}, fmt.Errorf("file is %d bytes, more than can be mapped", info.Size())
	}
	data, err := unix.Mmap(fd, 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return Mapping{}, fmt.Errorf("cannot map %d bytes: %w", info.Size(), err)
	}
	return Mapping{data}, nil
}

// openRetry opens a path, again if a signal interrupts.
func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Memory returns zeroed memory outside the Go heap, so that a model of
// gigabytes neither doubles the collector's goal nor delays it. Large pages make
// its first touch several times faster.
func Memory(size int) (Mapping, error) {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return Mapping{}, fmt.Errorf("cannot get %d bytes of memory: %w", size, err)
	}
	// Only advice: without large pages all is the same, but slower.
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE)
	return Mapping{data}, nil
}
