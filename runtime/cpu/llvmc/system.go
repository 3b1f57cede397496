package llvmc

import (
	"fmt"
	"slices"
	"strings"
)

// system is what differs from one operating system to the next: where libLLVM lies, and how
// LLVM is made to write ELF objects, which is what package object loads.
type system struct {
	install   string   // how to get libLLVM
	versioned []string // names of a release, %d its number; newest release first, each in this order
	plain     []string // names of whatever release is there
	// elf are targets by architecture, where the system's own objects are of another format.
	elf map[string]elfTarget
}

// elfTarget is a triple of a system with ELF objects and the same calling convention, and
// features that make up for what differs.
type elfTarget struct{ triple, features string }

var systems = map[string]system{
	"linux": {
		install: "Debian: libllvm19",
		versioned: []string{
			"libLLVM.so.%d.1", "libLLVM-%d.so.1", "libLLVM-%d.so", "libLLVM.so.%d",
			"/usr/lib/llvm-%d/lib/libLLVM.so.1", "/usr/lib/llvm%d/lib/libLLVM.so",
		},
		plain: []string{"libLLVM.so", "/usr/local/lib/libLLVM.so"},
	},
	"darwin": {
		install: "brew install llvm",
		versioned: []string{
			"/opt/homebrew/opt/llvm@%d/lib/libLLVM.dylib", "/usr/local/opt/llvm@%d/lib/libLLVM.dylib",
			"/opt/local/libexec/llvm-%d/lib/libLLVM.dylib",
		},
		plain: []string{"/opt/homebrew/opt/llvm/lib/libLLVM.dylib", "/usr/local/opt/llvm/lib/libLLVM.dylib", "libLLVM.dylib"},
		elf: map[string]elfTarget{
			// Register x18 is the system's on Apple's chips: it may change at any time.
			"arm64": {"aarch64-unknown-linux-gnu", "+reserve-x18"},
			"amd64": {"x86_64-unknown-linux-gnu", ""},
		},
	},
}

// systemOf is the row of an operating system; one without a row has no machine code.
func systemOf(goos string) (system, error) {
	s, ok := systems[goos]
	if !ok {
		return s, fmt.Errorf("%w: kernels run as machine code on Linux and macOS, on %s in the interpreter only", ErrNoLLVM, goos)
	}
	return s, nil
}

// libraryNames are the file names of libLLVM in the order to try them: those of a release,
// newest first, then those of any.
func (s system) libraryNames() []string {
	var names []string
	for n := newestVersion; n >= oldestVersion; n-- {
		for _, pattern := range s.versioned {
			names = append(names, fmt.Sprintf(pattern, n))
		}
	}
	return append(names, s.plain...)
}

// hostTarget is the triple and the features of code that runs here, of those that LLVM
// found.
func (s system) hostTarget(goarch, triple, features string) (string, string) {
	elf, ok := s.elf[goarch]
	if !ok {
		return triple, features
	}
	both := slices.DeleteFunc([]string{features, elf.features}, func(list string) bool { return list == "" })
	return elf.triple, strings.Join(both, ",")
}
