package llvmc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"tgc/internal/sharedlibrary"
)

// Supported LLVM releases. Older ones lack opaque pointers; newer ones are
// tried under the unversioned name only.
const (
	oldestVersion = 15
	newestVersion = 22
)

// ErrNoLLVM is wrapped by errors of Start where no usable libLLVM is found.
var ErrNoLLVM = errors.New("no usable libLLVM")

// openLibrary loads libLLVM: the file $TGC_LLVM names (a path, or a name for
// the dynamic linker) if it is set, else the first of those of its system.
func openLibrary() (handle uintptr, name string, err error) {
	if path := os.Getenv("TGC_LLVM"); path != "" {
		handle, err := sharedlibrary.Open(path, sharedlibrary.Local)
		if err != nil {
			return 0, "", fmt.Errorf("%w: TGC_LLVM: %w", ErrNoLLVM, err)
		}
		return handle, path, nil
	}
	here, err := systemOf(runtime.GOOS)
	if err != nil {
		return 0, "", err
	}
	names := here.libraryNames()
	for _, name := range names {
		if strings.HasPrefix(name, "/") && !fileExists(name) {
			continue
		}
		if handle, err := sharedlibrary.Open(name, sharedlibrary.Local); err == nil {
			return handle, name, nil
		}
	}
	return 0, "", fmt.Errorf("%w: install LLVM %d to %d (%s) or set TGC_LLVM to the library; tried %s to %s",
		ErrNoLLVM, oldestVersion, newestVersion, here.install, names[0], names[len(names)-1])
}

func fileExists(path string) bool {
	_, err := os.Stat(filepath.Clean(path))
	return err == nil
}
