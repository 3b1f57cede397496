package filelock

import (
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// Lock keeps other processes from locking a file until it is closed here. It does not wait.
// What it locks is a byte that no file reaches: Windows keeps others from reading locked bytes.
func Lock(file *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	far := &windows.Overlapped{OffsetHigh: math.MaxInt32}
	return windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, far)
}
