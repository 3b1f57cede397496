package nvrtc

import (
	"errors"
	"strings"
	"testing"
)

func open(t *testing.T) *Library {
	t.Helper()
	l, err := FromEnvironment()
	if errors.Is(err, ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A kernel compiles to PTX for its architecture, and nothing is contracted.
func TestCompile(t *testing.T) {
	l := open(t)
	const source = `extern "C" __global__ void k(float* p) { *p = p[1] * p[2] + p[3] / p[4]; }`
	for _, arch := range []string{"sm_75", "sm_87", "sm_90a"} {
		text, err := l.Compile(source, arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{".target " + arch[:5], ".visible .entry k(", "mul", "add", "div.rn.f32"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", arch, want, text)
			}
		}
		if strings.Contains(text, "fma") {
			t.Errorf("%s: contracted:\n%s", arch, text)
		}
	}
}

// An error holds what the compiler said.
func TestCompileError(t *testing.T) {
	_, err := open(t).Compile("__global__ void k() { wrong; }", "sm_80")
	if err == nil || !strings.Contains(err.Error(), `identifier "wrong" is undefined`) {
		t.Errorf("got %v", err)
	}
}

// Where there is no library, the error says what to do.
func TestAbsent(t *testing.T) {
	names := library.Candidates("/nowhere")
	if len(names) == 0 || strings.HasPrefix(names[0], "/nowhere") {
		t.Errorf("candidates %v", names)
	}
}
