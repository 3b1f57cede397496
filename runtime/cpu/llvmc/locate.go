package llvmc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebitengine/purego"
)

// Supported LLVM releases. Older ones lack opaque pointers; newer ones are
// tried under the unversioned name only.
const (
	oldestVersion = 15
	newestVersion = 22
)

// ErrNoLLVM is wrapped by errors of Start where no usable libLLVM is found.
var ErrNoLLVM = errors.New("no usable libLLVM")

// libraryNames are the file names of libLLVM in the order to try them: the
// names that distributions give to a release, newest first, then the
// unversioned one.
func libraryNames() []string {
	var names []string
	for n := newestVersion; n >= oldestVersion; n-- {
		for _, pattern := range []string{"libLLVM.so.%d.1", "libLLVM-%d.so.1", "libLLVM-%d.so", "libLLVM.so.%d", "/usr/lib/llvm-%d/lib/libLLVM.so.1", "/usr/lib/llvm%d/lib/libLLVM.so"} {
			names = append(names, fmt.Sprintf(pattern, n))
		}
	}
	return append(names, "libLLVM.so", "/usr/local/lib/libLLVM.so")
}

// openLibrary loads libLLVM: the file $TGC_LLVM names (a path, or a name for
// the dynamic linker) if it is set, else the first of libraryNames.
func openLibrary() (handle uintptr, name string, err error) {
	if path := os.Getenv("TGC_LLVM"); path != "" {
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			return 0, "", fmt.Errorf("%w: TGC_LLVM: %w", ErrNoLLVM, err)
		}
		return handle, path, nil
	}
	names := libraryNames()
	for _, name := range names {
		if strings.HasPrefix(name, "/") && !fileExists(name) {
			continue
		}
		if handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
			return handle, name, nil
		}
	}
	return 0, "", fmt.Errorf("%w: install LLVM %d to %d (Debian: libllvm19) or set TGC_LLVM to the library; tried %s to %s",
		ErrNoLLVM, oldestVersion, newestVersion, names[0], names[len(names)-1])
}

func fileExists(path string) bool {
	_, err := os.Stat(filepath.Clean(path))
	return err == nil
}
