//go:build unix && !linux

package childprocess

import (
	"os"

	"golang.org/x/sys/unix"
)

func redirect(from, to int) error { return unix.Dup2(from, to) }

// Executable is the file of the running program.
func Executable() (string, error) { return os.Executable() }
