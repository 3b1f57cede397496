//go:build !unix

package gguf

import "errors"

// makePipe says that there are no named pipes among files.
func makePipe(string) error { return errors.ErrUnsupported }
