package pages

import "golang.org/x/sys/unix"

// AdviseHuge asks for large pages. It is advice: kernels without them refuse it, and all
// is the same but slower.
func AdviseHuge(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
