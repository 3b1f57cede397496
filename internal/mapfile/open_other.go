//go:build !unix

package mapfile

import (
	"errors"
	"os"
)

// openWithoutWaiting opens a path for reading.
func openWithoutWaiting(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is said by who asks
	}
	return file, nil
}
