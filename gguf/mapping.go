package gguf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a piece of memory got from the system: a mapped file, or anonymous.
type mapping struct{ data []byte }

func (m mapping) unmap() error {
	if len(m.data) == 0 {
		return nil
	}
	if err := unix.Munmap(m.data); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}

// mapFile maps a regular file for reading. Opening does not block on a named
// pipe, and anything but a regular file (after links) is refused.
func mapFile(path string) (mapping, error) {
	fd, err := openRetry(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return mapping{}, fmt.Errorf("cannot open: %w", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return mapping{}, fmt.Errorf("cannot open: %w", errors.Unwrap(err))
	case info.IsDir():
		return mapping{}, errors.New("is a directory, want a regular file")
	case !info.Mode().IsRegular():
		return mapping{}, errors.New("is not a regular file")
	case info.Size() == 0:
		return mapping{}, nil // cannot be mapped; parse calls it too short
	case info.Size() > maxInt:
		return mapping{}, fmt.Errorf("file is %d bytes, more than can be mapped", info.Size())
	}
	data, err := unix.Mmap(fd, 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, fmt.Errorf("cannot map %d bytes: %w", info.Size(), err)
	}
	return mapping{data}, nil
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

// mapMemory returns zeroed memory outside the Go heap, so that a model of
// gigabytes neither doubles the collector's goal nor delays it. Large pages make
// its first touch several times faster.
func mapMemory(size int) (mapping, error) {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return mapping{}, fmt.Errorf("cannot get %d bytes of memory: %w", size, err)
	}
	// Only advice: without large pages all is the same, but slower.
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE)
	return mapping{data}, nil
}
