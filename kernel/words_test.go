package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"tgc/ir/program"
	"tgc/packed"
	"tgc/target"
)

// Signed bytes of words become floats with their sign: beside the activations nothing is staged. Moved up by 128 they
// would need the sums of the activations, too, which times 128 round more than the products do.
func TestSignedBytesOfWords(t *testing.T) {
	for name, want := range map[string]int{"Q8_0": 1, "Q6_K": 2} {
		if staged := instructions(lowerRecords(t, name, "VECTOR s0 16; PACK r0 1; FMA"), program.Alloca); staged != want {
			t.Errorf("%s: %d arrays are staged, want %d", name, staged, want)
		}
	}
}

// Masks that the mask of a byte makes needless are left out; bits of two fields are chosen between by one mask and its
// complement, which is one instruction of three operands.
func TestMasksOfWords(t *testing.T) {
	for name, want := range map[string]int{"Q4_0": 32, "Q6_K": 32 + 2*8} { // of 32 weights; Q6_K joins eight words
		text := program.Print(lowerRecords(t, name, "VECTOR s0 16; PACK r0 1; FMA"))
		if n := strings.Count(text, ":i32x16 = and"); n != want {
			t.Errorf("%s: %d masks of words, want %d", name, n, want)
		}
		if name == "Q6_K" && !strings.Contains(text, fmt.Sprint(0xf0f0f0f0-1<<32)) {
			t.Errorf("%s: no complement of 0x0f0f0f0f", name)
		}
	}
}

// The body that fills a panel of interleaved rows has all 32 points of a group, whose scale is then made once.
func TestGroupsOfPanels(t *testing.T) {
	for _, name := range []string{"Q8_0", "Q4_K", "IQ4_XS"} {
		b := newBuilder()
		p := lowerText(t, b, packedMatmul(b, name, 8, 32, 512), "STAGE s1; VECTOR s1 16; UPCAST s0 4; ROLL s0; FMA", target.ForCPU("znver5", nil, 1).WithRecords(packed.MostRecordBits))
		if n := instructions(p, program.Store); n != 32+4 {
			t.Errorf("%s: %d stores, want those of 32 points and of four results", name, n)
		}
	}
}

// lowerRecords lowers a product of 32 interleaved rows of 512 weights.
func lowerRecords(t *testing.T, format, plan string) *program.Program {
	t.Helper()
	b := newBuilder()
	return lowerText(t, b, packedMatvec(b, format, 32, 512, false), plan, target.ForCPU("znver5", nil, 1).WithRecords(packed.MostRecordBits))
}

// instructions counts those of one kind.
func instructions(p *program.Program, op program.Op) (n int) {
	p.Body.Each(func(in *program.Instr) {
		if in.Op == op {
			n++
		}
	})
	return n
}
