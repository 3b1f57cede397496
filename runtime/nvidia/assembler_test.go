package nvidia

import (
	"errors"
	"os"
	"strings"
	"testing"

	"tgc/internal/nvjitlink"
)

// The assemblers are found by name; a name that none has is refused with those that there are.
func TestFindAssembler(t *testing.T) {
	if _, err := FindAssembler("as", "", "sm_87"); err == nil || !strings.Contains(err.Error(), `"as": want ptxas or nvjitlink`) {
		t.Error(err)
	}
	a, err := FindAssembler("nvjitlink", os.Getenv("TGC_CUDA_PATH"), "sm_87")
	if errors.Is(err, nvjitlink.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if f := a.Fingerprint(); !strings.HasPrefix(f, "nvJitLink 1") || !strings.HasSuffix(f, " sm_87") {
		t.Error(f)
	}
}
