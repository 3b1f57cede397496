package object

import (
	"unsafe"

	"github.com/ebitengine/purego"

	"tgc/internal/sharedlibrary"
)

// flushInstructions makes the processor forget what it knew of these addresses as code,
// which protecting them need not do on this system.
func flushInstructions(code []byte) error {
	invalidate, err := sharedlibrary.FindLoaded("sys_icache_invalidate")
	if err != nil {
		return err
	}
	purego.SyscallN(invalidate, uintptr(unsafe.Pointer(unsafe.SliceData(code))), uintptr(len(code)))
	return nil
}
