package nvrtc

import (
	"errors"
	"fmt"
	"path/filepath"

	"tgc/internal/cudalib"
	"tgc/internal/sharedlibrary"
)

// ErrNotFound says that the library is not installed.
var ErrNotFound = errors.New("no libnvrtc")

var library = cudalib.Library{
	Pattern: "libnvrtc.so*", Names: []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}, Store: "/nix/store/*-cuda_nvrtc-*/lib",
}

const builtinsPattern = "libnvrtc-builtins.so*"

// openLibrary loads the library after its builtins: it asks the linker for them by name,
// which finds what is loaded already wherever it lies.
func openLibrary(cudaPath string) (handle uintptr, path string, err error) {
	handle, path, err = library.Open(cudaPath, openBuiltins)
	if err != nil {
		err = fmt.Errorf("nvrtc: %w: install it (Debian: libnvrtc11.2) or set TGC_CUDA_PATH to a CUDA toolkit: %w", ErrNotFound, err)
	}
	return handle, path, err
}

func openBuiltins(folder string) {
	found, err := filepath.Glob(filepath.Join(folder, builtinsPattern))
	if err != nil {
		return
	}
	for _, file := range found {
		if _, err := sharedlibrary.Open(file, sharedlibrary.Global); err != nil {
			continue // compiling will say what it lacks
		}
	}
}
