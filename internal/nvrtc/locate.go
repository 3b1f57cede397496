package nvrtc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/ebitengine/purego"
)

// ErrNotFound says that the library is not installed.
var ErrNotFound = errors.New("no libnvrtc")

// libraryPlaces are patterns of folders beside the dynamic linker's own.
var libraryPlaces = []string{
	"/usr/local/cuda/lib64",
	"/usr/local/cuda-*/lib64",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/opt/cuda/lib64",
	"/nix/store/*-cuda_nvrtc-*/lib",
}

// pathFolders are where a folder named by $TGC_CUDA_PATH may hold the library.
var pathFolders = []string{"", "lib64", "lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}

const (
	libraryPattern  = "libnvrtc.so*"
	builtinsPattern = "libnvrtc-builtins.so*"
)

// candidates lists the files to try: those of cudaPath, the linker's, those of
// the usual places; of several versions the last in order of names first.
func candidates(cudaPath string) []string {
	var list []string
	add := func(folder string) {
		found, err := filepath.Glob(filepath.Join(folder, libraryPattern))
		if err != nil {
			return // a folder's name that is no pattern holds nothing
		}
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
		for _, file := range found {
			if !strings.Contains(filepath.Base(file), ".alt.") {
				list = append(list, file)
			}
		}
	}
	if cudaPath != "" {
		for _, folder := range pathFolders {
			add(filepath.Join(cudaPath, folder))
		}
	}
	list = append(list, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2")
	for _, pattern := range libraryPlaces {
		add(pattern)
	}
	return list
}

// openLibrary loads the first candidate that loads, behind its builtins: the
// library asks the linker for them by name, which finds one that is loaded
// already wherever it lies.
func openLibrary(cudaPath string) (handle uintptr, path string, err error) {
	names := candidates(cudaPath)
	var reasons []error
	for _, name := range names {
		if strings.Contains(name, "/") {
			openBuiltins(filepath.Dir(name))
		}
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return handle, name, nil
		}
		if _, missing := os.Stat(name); missing == nil {
			reasons = append(reasons, err)
		}
	}
	err = fmt.Errorf("nvrtc: %w: install it (Debian: libnvrtc11.2) or set TGC_CUDA_PATH to a CUDA toolkit", ErrNotFound)
	return 0, "", errors.Join(append([]error{err}, reasons...)...)
}

func openBuiltins(folder string) {
	found, err := filepath.Glob(filepath.Join(folder, builtinsPattern))
	if err != nil {
		return
	}
	for _, file := range found {
		if _, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			continue // compiling will say what it lacks
		}
	}
}
