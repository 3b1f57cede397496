package nvrtc

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"tgc/internal/cudalib"
)

// Library is an open libnvrtc. Its methods are safe for concurrent use;
// compilations run one after the other.
type Library struct {
	mu    sync.Mutex
	path  string
	major int
	minor int

	version     func(major, minor *int32) int32
	errorString func(code int32) string
	create      func(program *uintptr, source, name string, headers int32, texts, names unsafe.Pointer) int32
	destroy     func(program *uintptr) int32
	compile     func(program uintptr, count int32, options *uintptr) int32
	logSize     func(program uintptr, size *uint64) int32
	log         func(program uintptr, into *byte) int32
	ptxSize     func(program uintptr, size *uint64) int32
	ptx         func(program uintptr, into *byte) int32
}

// Open finds and binds the library. cudaPath is a toolkit's root, a folder with
// the library, or empty.
func Open(cudaPath string) (*Library, error) {
	handle, path, err := openLibrary(cudaPath)
	if err != nil {
		return nil, err
	}
	l := &Library{path: path}
	if err := cudalib.Bind(handle, path, map[string]any{
		"nvrtcVersion": &l.version, "nvrtcGetErrorString": &l.errorString, "nvrtcCreateProgram": &l.create, "nvrtcDestroyProgram": &l.destroy,
		"nvrtcCompileProgram": &l.compile, "nvrtcGetProgramLogSize": &l.logSize, "nvrtcGetProgramLog": &l.log, "nvrtcGetPTXSize": &l.ptxSize,
		"nvrtcGetPTX": &l.ptx,
	}); err != nil {
		return nil, fmt.Errorf("nvrtc: %w", err)
	}
	var major, minor int32
	if code := l.version(&major, &minor); code != 0 {
		return nil, l.failure("nvrtcVersion", code, "")
	}
	l.major, l.minor = int(major), int(minor)
	return l, nil
}

// FromEnvironment is Open with what TGC_CUDA_PATH says.
func FromEnvironment() (*Library, error) { return Open(os.Getenv("TGC_CUDA_PATH")) }

// Version names the compiler for keys of caches: "nvrtc 11.8".
func (l *Library) Version() string { return fmt.Sprintf("nvrtc %d.%d", l.major, l.minor) }

// Path is where the library was found.
func (l *Library) Path() string { return l.path }

// specialFrom is the first version that knows the "a" forms of architectures.
const specialFrom = 12

// options are what every compilation gets: nothing is contracted, and neither
// flushed nor approximated, beyond what the text says.
var options = []string{"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++14"}

// Compile makes PTX of CUDA C for an architecture, "sm_90a". An "a" form that
// the version does not know is compiled for the plain one. The error holds what
// the compiler said.
func (l *Library) Compile(source, arch string) (string, error) {
	arch = strings.Replace(arch, "sm_", "compute_", 1)
	if l.major < specialFrom {
		arch = strings.TrimSuffix(arch, "a")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var program uintptr
	if code := l.create(&program, source, "kernel.cu", 0, nil, nil); code != 0 {
		return "", l.failure("nvrtcCreateProgram", code, "")
	}
	defer l.destroy(&program)
	list := cudalib.NewStrings(append([]string{"--gpu-architecture=" + arch}, options...))
	code := l.compile(program, int32(len(list.Pointers)), &list.Pointers[0])
	list.Keep()
	if code != 0 {
		return "", l.failure("nvrtcCompileProgram", code, l.read(program, l.logSize, l.log))
	}
	return l.read(program, l.ptxSize, l.ptx), nil
}

// read gets a text by its two functions; empty where there is none.
func (l *Library) read(program uintptr, size func(uintptr, *uint64) int32, get func(uintptr, *byte) int32) string {
	return cudalib.Text(func(n *uint64) int32 { return size(program, n) }, func(to *byte) int32 { return get(program, to) })
}

func (l *Library) failure(call string, code int32, log string) error {
	err := fmt.Errorf("nvrtc: %s: %s (%d)", call, l.errorString(code), code)
	if log = strings.TrimSpace(log); log != "" {
		err = fmt.Errorf("%w\n%s", err, log)
	}
	return err
}
