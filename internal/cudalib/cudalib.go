// Package cudalib opens libraries of a CUDA toolkit without cgo: it knows where they lie,
// and passes strings to them. It opens no GPU.
package cudalib

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"tgc/internal/sharedlibrary"
)

// Library is what to look for.
type Library struct {
	Pattern string   // of its file: "libnvrtc.so*"
	Names   []string // that the dynamic linker may know, the best first
	Store   string   // pattern of a folder of the Nix store that has it
}

// places are patterns of folders beside the dynamic linker's own.
var places = []string{
	"/usr/local/cuda/lib64",
	"/usr/local/cuda-*/lib64",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/opt/cuda/lib64",
}

// pathFolders are where a folder named by $TGC_CUDA_PATH may hold a library.
var pathFolders = []string{"", "lib64", "lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}

// Candidates lists the files to try: those of cudaPath, the linker's, those of the usual
// places; of several versions the last in order of names first.
func (l Library) Candidates(cudaPath string) []string {
	var list []string
	add := func(folder string) {
		found, err := filepath.Glob(filepath.Join(folder, l.Pattern))
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
	list = append(list, l.Names...)
	for _, folder := range places {
		add(folder)
	}
	if l.Store != "" {
		add(l.Store)
	}
	return list
}

// ErrNotFound says that no file that was tried is there and loads.
var ErrNotFound = errors.New("no such library")

// Open loads the first candidate that loads. Before, where not nil, is told the folder of
// each ahead of it.
func (l Library) Open(cudaPath string, before func(folder string)) (handle uintptr, path string, err error) {
	reasons := []error{ErrNotFound}
	for _, name := range l.Candidates(cudaPath) {
		if before != nil && strings.Contains(name, "/") {
			before(filepath.Dir(name))
		}
		handle, err := sharedlibrary.Open(name, sharedlibrary.Local)
		if err == nil {
			return handle, name, nil
		}
		if _, missing := os.Stat(name); missing == nil {
			reasons = append(reasons, err)
		}
	}
	return 0, "", errors.Join(reasons...)
}

// Bind makes Go functions of a library's.
func Bind(handle uintptr, path string, functions map[string]any) error {
	for name, to := range functions {
		address, err := sharedlibrary.Find(handle, name)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		purego.RegisterFunc(to, address)
	}
	return nil
}

// Strings is an array of zero-terminated strings in pinned Go memory.
type Strings struct {
	Pointers []uintptr
	pinner   runtime.Pinner
}

// NewStrings makes the array.
func NewStrings(list []string) *Strings {
	s := &Strings{Pointers: make([]uintptr, len(list))}
	for i, text := range list {
		bytes := append([]byte(text), 0)
		s.pinner.Pin(&bytes[0])
		s.Pointers[i] = uintptr(unsafe.Pointer(&bytes[0]))
	}
	return s
}

// Keep ends the pinning: what was pointed to was alive until here.
func (s *Strings) Keep() { s.pinner.Unpin() }

// Text is what a pair of functions of a library has to say, of which one tells the size;
// empty where there is nothing.
func Text(size func(*uint64) int32, get func(*byte) int32) string {
	var n uint64
	if code := size(&n); code != 0 || n == 0 {
		return ""
	}
	text := make([]byte, n)
	if code := get(&text[0]); code != 0 {
		return ""
	}
	return strings.TrimRight(string(text), "\x00")
}
