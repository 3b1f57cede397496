//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock keeps other processes from locking a file until it is closed here. It does not wait.
func Lock(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
