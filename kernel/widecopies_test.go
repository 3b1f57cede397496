package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir/program"
	"tgc/target"
)

// What few lanes of bytes need in every copy is computed for the copies of a whole register together: the signs of eight times 32
// weights, whose four bytes each are lanes of one vector of 32, once.
func TestCopiesOfBytesFillARegister(t *testing.T) {
	b := newBuilder()
	p := lowerText(t, b, packedMatvec(b, "IQ2_XS", 4, 512, false), "VECTOR r0 32; UNROLL r0 8; FMA", target.ForCPU("haswell", nil, 1))
	text := program.Print(p)
	if n := strings.Count(text, "= popc"); n != 1 || !strings.Contains(text, ":u8x32 = popc") {
		t.Errorf("%d times the parities of seven signs, want those of 32 lanes once", n)
	}
}
