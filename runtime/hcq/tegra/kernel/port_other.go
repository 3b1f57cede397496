//go:build !linux

// Package kernel is a port.Port on the kernel that runs, which is no Jetson's here: only
// Linux has that driver.
package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

// Port finds no node to open; nothing else of it can be asked then.
type Port struct{}

// Open says that there is no such node.
func (Port) Open(path string) (int, error) {
	return -1, fmt.Errorf("%s on %s: %w", path, runtime.GOOS, fs.ErrNotExist)
}

// Close has nothing to close.
func (Port) Close(int) error { return errors.ErrUnsupported }

// Ioctl has nobody to ask.
func (Port) Ioctl(int, uint32, []byte, []byte, int) error { return errors.ErrUnsupported }

// IoctlValue has nobody to ask.
func (Port) IoctlValue(int, uint32, uint64) error { return errors.ErrUnsupported }

// Mmap has nothing to map.
func (Port) Mmap(int, int) ([]byte, error) { return nil, errors.ErrUnsupported }

// Munmap has nothing to unmap.
func (Port) Munmap([]byte) error { return errors.ErrUnsupported }

// Publish does nothing: nobody listens.
func (Port) Publish() {}

// Doorbell has no device to wake.
func (Port) Doorbell([]byte, int, uint32) {}
