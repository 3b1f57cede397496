package object

import (
	"fmt"
	"slices"

	"tgc/internal/sharedlibrary"
)

// externs are the functions an object may import: LLVM turns loops and
// aggregate copies into calls of them whatever the front end says. Anything
// else undefined (a libm call, an intrinsic this LLVM does not know) is a
// mistake upstream and must not be resolved by chance. fma is what LLVM makes
// of an f64 FMA on an x86 CPU that has none; the C library's is exact.
var externs = []string{"memset", "memcpy", "memmove", "fma"}

// libcNames are tried when the symbol is not in the program's own scope.
var libcNames = []string{"libc.so.6", "libc.so", "libm.so.6", "libm.so", "libSystem.B.dylib"}

// resolveExtern is the address of a function on the list.
func resolveExtern(name string) (uint64, error) {
	if !slices.Contains(externs, name) {
		return 0, fmt.Errorf("undefined symbol %q: only %v may be undefined", name, externs)
	}
	if addr, err := sharedlibrary.FindLoaded(name); err == nil {
		return uint64(addr), nil
	}
	for _, lib := range libcNames {
		handle, err := sharedlibrary.Open(lib, sharedlibrary.Local)
		if err != nil {
			continue
		}
		if addr, err := sharedlibrary.Find(handle, name); err == nil {
			return uint64(addr), nil
		}
	}
	return 0, fmt.Errorf("symbol %q is not in the C library", name)
}
