// Package stub builds a libcuda for tests: a small C library with the driver's
// symbols whose device memory is host memory and whose kernels are a handful of
// C functions chosen by name. It checks what callers pass (a current context,
// shapes, struct layouts) and writes every launch to a log, so that package
// cuda is tested down to the binary interface on machines without a GPU.
//
// It needs a C compiler; tests that use it skip where there is none.
package stub

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"tgc/internal/sharedlibrary"
)

//go:embed testdata/stub.c
var source []byte

// Stub is a built library.
type Stub struct {
	Path   string
	handle uintptr
	tb     testing.TB
}

// Build compiles the library; flags go to the compiler: -DOLD is a driver of
// version 12.0, -DNO_DEVICE one without a GPU. Every call makes a library of its
// own, with its own state.
func Build(tb testing.TB, flags ...string) *Stub {
	tb.Helper()
	library := filepath.Join(tb.TempDir(), "libcuda.so.1") // a file of its own has state of its own
	if err := os.WriteFile(library, compile(tb, flags), 0o700); err != nil {
		tb.Fatal(err)
	}
	handle, err := sharedlibrary.Open(library, sharedlibrary.Local)
	if err != nil {
		tb.Fatal(err)
	}
	return &Stub{Path: library, handle: handle, tb: tb}
}

// compiled are libraries by flags.
var compiled sync.Map

func compile(tb testing.TB, flags []string) []byte {
	tb.Helper()
	key := strings.Join(flags, " ")
	if library, ok := compiled.Load(key); ok {
		return library.([]byte)
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		if compiler, err = exec.LookPath("gcc"); err != nil {
			tb.Skip("no C compiler")
		}
	}
	dir := tb.TempDir()
	file, library := filepath.Join(dir, "stub.c"), filepath.Join(dir, "libcuda.so.1")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		tb.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-O1", "-w", "-o", library, file}, flags...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, out)
	}
	built, err := os.ReadFile(library)
	if err != nil {
		tb.Fatal(err)
	}
	compiled.Store(key, built)
	return built
}

func (s *Stub) call(symbol string, args ...uintptr) uintptr {
	s.tb.Helper()
	address, err := sharedlibrary.Find(s.handle, symbol)
	if err != nil {
		s.tb.Fatal(err)
	}
	result, _, _ := purego.SyscallN(address, args...)
	return result
}

// Fail makes the nth next call of a function return a code; n counts from 1.
func (s *Stub) Fail(function string, code, n int) {
	s.tb.Helper()
	name := append([]byte(function), 0)
	s.call("stub_fail", uintptr(unsafe.Pointer(&name[0])), uintptr(code), uintptr(n))
}

// Log returns and empties the log of launches, graph edges and the like.
func (s *Stub) Log() []string {
	s.tb.Helper()
	buffer := make([]byte, 1<<16)
	n := s.call("stub_log", uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
	return strings.FieldsFunc(string(buffer[:n]), func(r rune) bool { return r == '\n' })
}

// SetMemory sets the size of the device's memory in bytes.
func (s *Stub) SetMemory(bytes int64) {
	s.tb.Helper()
	s.call("stub_memory", uintptr(bytes))
}

// Live says what has not been given back: a line per kind of handle.
func (s *Stub) Live() string {
	s.tb.Helper()
	var counts [8]int64
	s.call("stub_live", uintptr(unsafe.Pointer(&counts)))
	var parts []string
	for i, kind := range []string{"contexts", "allocations", "pinned", "streams", "events", "modules", "graphs", "instances"} {
		if counts[i] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[i], kind))
		}
	}
	return strings.Join(parts, ", ")
}
