package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tgc/internal/sharedlibrary"
)

// ErrNoLibrary is wrapped by the error of Open where there is no libcuda.
var ErrNoLibrary = errors.New("no libcuda")

const libraryName = "libcuda.so.1"

// libraryDirs are the folders beside the dynamic linker's own: NixOS, WSL,
// container images, Jetson.
var libraryDirs = []string{
	"/run/opengl-driver/lib",
	"/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64",
	"/usr/lib/aarch64-linux-gnu/tegra",
	"/usr/lib/aarch64-linux-gnu/nvidia",
}

// pathFolders are where a folder named by $TGC_CUDA_PATH may hold the library.
// The stubs folder of a toolkit is not among them: that file only links.
var pathFolders = []string{"", "lib", "lib64", "compat", "lib64/compat"}

// candidates lists the files to try. TGC_CUDA_PATH may name the library or a
// folder; a folder without a library in it (a toolkit) changes nothing.
func candidates(cudaPath string) []string {
	var list []string
	switch info, err := os.Stat(cudaPath); {
	case cudaPath == "":
	case err == nil && info.IsDir():
		for _, folder := range pathFolders {
			if file := filepath.Join(cudaPath, folder, libraryName); fileExists(file) {
				list = append(list, file)
			}
		}
	case strings.Contains(filepath.Base(cudaPath), ".so"):
		return []string{cudaPath}
	}
	list = append(list, libraryName)
	for _, dir := range libraryDirs {
		if file := filepath.Join(dir, libraryName); fileExists(file) {
			list = append(list, file)
		}
	}
	return append(list, "libcuda.so")
}

func fileExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// openLibrary loads the first candidate that loads. A file that is there and
// does not load is part of the error.
func openLibrary(names []string) (handle uintptr, path string, err error) {
	var reasons []error
	for _, name := range names {
		handle, err := sharedlibrary.Open(name, sharedlibrary.Local)
		if err == nil {
			return handle, name, nil
		}
		if strings.Contains(name, "/") {
			reasons = append(reasons, err)
		}
	}
	err = fmt.Errorf("%w: tried %s; install NVIDIA's driver or set TGC_CUDA_PATH", ErrNoLibrary, strings.Join(names, ", "))
	return 0, "", errors.Join(append([]error{err}, reasons...)...)
}
