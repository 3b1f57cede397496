package llvmc

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Code for this process is an ELF object whatever the system: where the system's own are
// not, another system's triple is used and what differs is named.
func TestHostTarget(t *testing.T) {
	for _, test := range []struct{ goos, goarch, triple, wantTriple, wantFeatures string }{
		{"linux", "amd64", "x86_64-pc-linux-gnu", "x86_64-pc-linux-gnu", "+a,+b"},
		{"linux", "arm64", "aarch64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "+a,+b"},
		{"darwin", "arm64", "arm64-apple-darwin24", "aarch64-unknown-linux-gnu", "+a,+b,+reserve-x18"},
		{"darwin", "amd64", "x86_64-apple-darwin24", "x86_64-unknown-linux-gnu", "+a,+b"},
	} {
		s, err := systemOf(test.goos)
		if err != nil {
			t.Fatal(err)
		}
		triple, features := s.hostTarget(test.goarch, test.triple, "+a,+b")
		if triple != test.wantTriple || features != test.wantFeatures {
			t.Errorf("%s/%s: %s %s, want %s %s", test.goos, test.goarch, triple, features, test.wantTriple, test.wantFeatures)
		}
	}
	if s := systems["darwin"]; true {
		if _, features := s.hostTarget("arm64", "", ""); features != "+reserve-x18" {
			t.Errorf("no other features: %q", features)
		}
	}
}

// The newest release is tried first, and any release last.
func TestLibraryNames(t *testing.T) {
	for goos, first := range map[string]string{"linux": "libLLVM.so.22.1", "darwin": "/opt/homebrew/opt/llvm@22/lib/libLLVM.dylib"} {
		s := systems[goos]
		names := s.libraryNames()
		if names[0] != first || !slices.Equal(names[len(names)-len(s.plain):], s.plain) {
			t.Errorf("%s: %s .. %s", goos, names[0], names[len(names)-1])
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.ContainsAny(name, "%!") }) {
			t.Errorf("%s: a pattern is left in %q", goos, names)
		}
	}
}

// A system that cannot run machine code yet has no LLVM, in one line that says why.
func TestSystemWithoutMachineCode(t *testing.T) {
	_, err := systemOf("windows")
	if !errors.Is(err, ErrNoLLVM) || !strings.Contains(err.Error(), "on windows in the interpreter only") {
		t.Errorf("got %v", err)
	}
}
