package nvjitlink

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

const kernel = `.version 7.4
.target sm_87
.address_size 64
.visible .entry set(.param .u64 to)
{
	.reg .b64 %d<2>; .reg .b32 %r<2>;
	ld.param.u64 %d0, [to];
	mov.u32 %r0, %tid.x;
	st.global.u32 [%d0], %r0;
	ret;
}
`

func TestAssemble(t *testing.T) {
	l, err := Open(os.Getenv("TGC_CUDA_PATH"))
	if errors.Is(err, ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cubin, err := l.Assemble(kernel, "sm_87")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(cubin, []byte("\x7fELF")) || !bytes.Contains(cubin, []byte(".text.set")) {
		t.Errorf("%d bytes of no machine code", len(cubin))
	}
	if !strings.HasPrefix(l.Version(), "nvJitLink 1") {
		t.Error(l.Version())
	}
	if _, err := l.Assemble(strings.Replace(kernel, "ret;", "nothing;", 1), "sm_87"); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v, want what the library says", err)
	}
	if _, err := l.Assemble(kernel, "sm_999"); err == nil {
		t.Error("an architecture that is not there")
	}
}

// Where the library is missing, or a file that is none, the error says so.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/libnvJitLink.so.12", []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(dir); err == nil && strings.HasPrefix(l.path, dir) {
		t.Errorf("opened %s", l.path)
	} else if err != nil && !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
