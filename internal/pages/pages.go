// Package pages gets memory from the operating system by the page, outside the Go
// heap: for weights, for code, and for what foreign functions are given. It is the
// only package that knows how each system calls that.
package pages

import "fmt"

// Protection is what may be done with pages.
type Protection int

// The protections in use. Nothing is writable and executable at once, which some
// systems refuse.
const (
	None Protection = iota
	Read
	ReadWrite
	ReadExecute
)

// Map returns zeroed memory that may be read and written.
func Map(bytes int) ([]byte, error) {
	memory, err := Reserve(bytes)
	if err != nil {
		return nil, err
	}
	if err := Protect(memory, ReadWrite); err != nil {
		_ = Unmap(memory) // the error of Protect is the one to report
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	return memory, nil
}
