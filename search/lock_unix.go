//go:build unix

package search

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile keeps other processes from locking a file until it is closed here. It does not wait.
func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
