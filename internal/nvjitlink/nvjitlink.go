// Package nvjitlink makes machine code of PTX with NVIDIA's linker library, which needs
// neither a GPU nor a driver: for where the toolkit's ptxas is missing. The library is
// opened without cgo; where it is absent the error wraps ErrNotFound.
package nvjitlink

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"tgc/internal/cudalib"
	"tgc/internal/sharedlibrary"
)

// ErrNotFound says that the library is not installed.
var ErrNotFound = errors.New("no libnvJitLink")

var library = cudalib.Library{
	Pattern: "libnvJitLink.so*", Names: []string{"libnvJitLink.so.13", "libnvJitLink.so.12"}, Store: "/nix/store/*-libnvjitlink-*/lib",
}

// Library is an open libnvJitLink. Its methods are safe for concurrent use; one text is
// assembled at a time.
type Library struct {
	mu      sync.Mutex
	path    string
	version string // of the functions: "12_4"

	create   func(handle *uintptr, count uint32, options *uintptr) int32
	destroy  func(handle *uintptr) int32
	add      func(handle uintptr, kind int32, data *byte, size uint64, name string) int32
	complete func(handle uintptr) int32
	size     func(handle uintptr, size *uint64) int32
	cubin    func(handle uintptr, into *byte) int32
	logSize  func(handle uintptr, size *uint64) int32
	log      func(handle uintptr, into *byte) int32
}

// Functions carry the version of the toolkit in their names, each library those of its
// own version and of earlier ones.
const (
	newestMajor, oldestMajor = 13, 12
	newestMinor              = 20
)

// Open finds and binds the library. cudaPath is a toolkit's root, a folder with the
// library, or empty.
func Open(cudaPath string) (*Library, error) {
	handle, path, err := library.Open(cudaPath, nil)
	if err != nil {
		return nil, fmt.Errorf("nvjitlink: %w: %w", ErrNotFound, err)
	}
	l := &Library{path: path, version: newest(handle)}
	if l.version == "" {
		return nil, fmt.Errorf("nvjitlink: %s has functions of no version from %d.0 to %d.%d", path, oldestMajor, newestMajor, newestMinor)
	}
	functions := make(map[string]any)
	for name, to := range map[string]any{
		"Create": &l.create, "Destroy": &l.destroy, "AddData": &l.add, "Complete": &l.complete, "GetLinkedCubinSize": &l.size,
		"GetLinkedCubin": &l.cubin, "GetErrorLogSize": &l.logSize, "GetErrorLog": &l.log,
	} {
		functions[symbol(name, l.version)] = to
	}
	if err := cudalib.Bind(handle, path, functions); err != nil {
		return nil, fmt.Errorf("nvjitlink: %w", err)
	}
	return l, nil
}

func symbol(function, version string) string { return "__nvJitLink" + function + "_" + version }

// newest is the newest version whose functions a library has.
func newest(handle uintptr) string {
	for major := newestMajor; major >= oldestMajor; major-- {
		for minor := newestMinor; minor >= 0; minor-- {
			version := fmt.Sprintf("%d_%d", major, minor)
			if _, err := sharedlibrary.Find(handle, symbol("Create", version)); err == nil {
				return version
			}
		}
	}
	return ""
}

// Version names the library for keys of caches: its functions' version and its file's
// name, which has the release.
func (l *Library) Version() string {
	file := l.path
	if resolved, err := filepath.EvalSymlinks(l.path); err == nil {
		file = resolved
	}
	return fmt.Sprintf("nvJitLink %s %s", strings.ReplaceAll(l.version, "_", "."), filepath.Base(file))
}

// inputPTX is a kind of input.
const inputPTX = 2

// Assemble makes a cubin of PTX for an architecture, "sm_87". The error holds what the
// library said.
func (l *Library) Assemble(ptx, arch string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var handle uintptr
	options := cudalib.NewStrings([]string{"-arch=" + arch})
	code := l.create(&handle, uint32(len(options.Pointers)), &options.Pointers[0])
	options.Keep()
	if code != 0 {
		return nil, l.failure("nvJitLinkCreate", code, 0)
	}
	defer l.destroy(&handle)
	text := append([]byte(ptx), 0)
	if code := l.add(handle, inputPTX, &text[0], uint64(len(text)), "kernel.ptx"); code != 0 {
		return nil, l.failure("nvJitLinkAddData", code, handle)
	}
	if code := l.complete(handle); code != 0 {
		return nil, l.failure("nvJitLinkComplete", code, handle)
	}
	var n uint64
	if code := l.size(handle, &n); code != 0 || n == 0 {
		return nil, l.failure("nvJitLinkGetLinkedCubinSize", code, handle)
	}
	cubin := make([]byte, n)
	if code := l.cubin(handle, &cubin[0]); code != 0 {
		return nil, l.failure("nvJitLinkGetLinkedCubin", code, handle)
	}
	return cubin, nil
}

// results are the names of what functions return.
var results = map[int32]string{
	1: "unrecognised option", 2: "missing architecture", 3: "invalid input", 4: "error of the PTX compiler", 5: "error of NVVM", 6: "internal error",
	7: "thread pool", 8: "unrecognised input", 9: "error while finalising",
}

func (l *Library) failure(call string, code int32, handle uintptr) error {
	err := fmt.Errorf("nvjitlink: %s: %d %s", call, code, results[code])
	if handle == 0 {
		return err
	}
	log := cudalib.Text(func(n *uint64) int32 { return l.logSize(handle, n) }, func(to *byte) int32 { return l.log(handle, to) })
	if log = strings.TrimSpace(log); log != "" {
		err = fmt.Errorf("%w\n%s", err, log)
	}
	return err
}
