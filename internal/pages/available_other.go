//go:build !linux

package pages

// Available is unknown.
func Available() (bytes int64, ok bool) { return 0, false }
