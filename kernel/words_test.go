package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

// Signed bytes of words become floats with their sign: beside the activations nothing is staged. Moved up by 128 they
// would need the sums of the activations, too, which times 128 round more than the products do.
func TestSignedBytesOfWords(t *testing.T) {
	for name, want := range map[string]int{"Q8_0": 1, "Q6_K": 2} {
		chosen, err := plan.Parse("VECTOR s0 16; PACK r0 1; FMA")
		if err != nil {
			t.Fatal(err)
		}
		b := &builder{Arena: ir.NewArena()}
		p, err := kernel.Lower(b.Arena, packedMatvec(b, name, 32, 512, false), chosen, target.ForCPU("znver5", nil, 1).WithRecords(packed.MostRecordBits))
		if err != nil {
			t.Fatal(err)
		}
		staged := 0
		p.Body.Each(func(in *program.Instr) {
			if in.Op == program.Alloca {
				staged++
			}
		})
		if staged != want {
			t.Errorf("%s: %d arrays are staged, want %d", name, staged, want)
		}
	}
}
