//go:build unix

package pages

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var protections = [...]int{
	None:        unix.PROT_NONE,
	Read:        unix.PROT_READ,
	ReadWrite:   unix.PROT_READ | unix.PROT_WRITE,
	ReadExecute: unix.PROT_READ | unix.PROT_EXEC,
}

// Reserve returns memory that may not be touched until it is protected otherwise.
// Until then, and until it is touched, it costs addresses only.
func Reserve(bytes int) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, bytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	return memory, nil
}

// Protect changes what may be done with whole pages of a mapping.
func Protect(memory []byte, to Protection) error { return unix.Mprotect(memory, protections[to]) }

// Unmap gives back what Reserve, Map or MapFile has returned, all of it.
func Unmap(memory []byte) error { return unix.Munmap(memory) }

// MapFile maps the first bytes of a file for reading.
func MapFile(file *os.File, bytes int) ([]byte, error) {
	return unix.Mmap(int(file.Fd()), 0, bytes, unix.PROT_READ, unix.MAP_SHARED)
}
