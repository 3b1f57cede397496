package driver

import (
	"fmt"
	"strings"

	"github.com/ebitengine/purego"

	"tgc/internal/sharedlibrary"
)

// Library is libcuda. Its methods are safe for concurrent use as far as the
// driver's functions are: all but those that change one graph.
type Library struct {
	path    string
	version int
	address [functionCount]uintptr
	symbol  [functionCount]string
	pool    scratchPool
}

var _ Driver = (*Library)(nil)

// Open finds, binds and initialises libcuda. cudaPath is $TGC_CUDA_PATH or
// empty. Without a library the error wraps ErrNoLibrary; with a library and no
// GPU its code is NoDevice.
func Open(cudaPath string) (*Library, error) {
	handle, path, err := openLibrary(candidates(cudaPath))
	if err != nil {
		return nil, err
	}
	l := &Library{path: path}
	var missing []string
	for f := range functions {
		if !l.bind(handle, function(f)) && !functions[f].optional {
			missing = append(missing, functions[f].symbols[0])
		}
	}
	if err := l.init(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: CUDA %d.%d: the driver lacks %s; want CUDA 12 or later",
			path, l.version/1000, l.version%1000/10, strings.Join(missing, ", "))
	}
	return l, nil
}

func (l *Library) bind(handle uintptr, f function) bool {
	for _, symbol := range functions[f].symbols {
		if address, err := sharedlibrary.Find(handle, symbol); err == nil && address != 0 {
			l.address[f], l.symbol[f] = address, symbol
			return true
		}
	}
	return false
}

func (l *Library) init() error {
	if l.address[fnInit] == 0 || l.address[fnDriverGetVersion] == 0 {
		return fmt.Errorf("%w: not the driver's library", ErrNoLibrary)
	}
	if err := l.call(fnInit, 0); err != nil {
		return err
	}
	version, err := l.outInt(fnDriverGetVersion)
	l.version = version
	return err
}

// Version is the CUDA version of the driver: 13000 is 13.0.
func (l *Library) Version() int { return l.version }

// Path is where the library was found.
func (l *Library) Path() string { return l.path }

// Symbols lists what each function was bound to, for diagnosis.
func (l *Library) Symbols() []string { return append([]string(nil), l.symbol[:]...) }

// call calls a function. Addresses among the arguments are scratch, pinned host
// memory or the driver's own.
func (l *Library) call(f function, args ...uintptr) error {
	if l.address[f] == 0 {
		return fmt.Errorf("cuda: the driver has no %s", functions[f].symbols[0])
	}
	result, _, _ := purego.SyscallN(l.address[f], args...)
	if code := Code(int32(result)); code != 0 {
		return l.failure(f, code)
	}
	return nil
}

// failure asks the driver for name and text of a code.
func (l *Library) failure(f function, code Code) error {
	return &Error{Call: l.symbol[f], Code: code, Name: l.describe(fnGetErrorName, code), Text: l.describe(fnGetErrorString, code)}
}

func (l *Library) describe(f function, code Code) string {
	s, err := l.pool.get(8)
	if err != nil || l.address[f] == 0 {
		return ""
	}
	defer l.pool.put(s)
	out := s.bytes(8)
	if result, _, _ := purego.SyscallN(l.address[f], uintptr(uint32(code)), out.addr()); int32(result) != 0 {
		return ""
	}
	return cString(uintptr(out.uint64()))
}

// out calls f(&result, args...) and returns the 8 bytes of the result.
func (l *Library) out(f function, args ...uintptr) (uint64, error) {
	s, err := l.pool.get(8)
	if err != nil {
		return 0, err
	}
	defer l.pool.put(s)
	result := s.bytes(8)
	if err := l.call(f, append([]uintptr{result.addr()}, args...)...); err != nil {
		return 0, err
	}
	return result.uint64(), nil
}

// outInt is out for a result of type int.
func (l *Library) outInt(f function, args ...uintptr) (int, error) {
	v, err := l.out(f, args...)
	return int(int32(uint32(v))), err
}
