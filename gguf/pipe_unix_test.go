//go:build unix

package gguf

import "golang.org/x/sys/unix"

// makePipe makes a named pipe.
func makePipe(path string) error { return unix.Mkfifo(path, 0o600) }
