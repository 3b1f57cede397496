//go:build !darwin

package object

// flushInstructions does nothing: protecting pages as code makes the processor look again,
// on x86 always and on others by what the kernel does then.
func flushInstructions([]byte) error { return nil }
