//go:build unix

package mapfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// openWithoutWaiting opens a path for reading, again if a signal interrupts; a named pipe
// that nobody writes does not block it.
func openWithoutWaiting(path string) (*os.File, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case unix.EINTR:
			continue
		}
		return nil, err
	}
}
