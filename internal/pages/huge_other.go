//go:build !linux

package pages

// AdviseHuge asks for large pages, which this system gives by itself or not at all.
func AdviseHuge([]byte) {}
