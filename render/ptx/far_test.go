package ptx

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// An offset that is too large for an instruction is added to the address.
func TestFarOffsets(t *testing.T) {
	const far = 1<<20 + 3 // elements; the instruction's offsets end at 4 MiB
	b := program.NewBuilder("far")
	x := b.Buffer(0, ir.F32, "x", 4, 8<<20)
	y := b.Buffer(1, ir.F32, "y", 4, 8)
	b.Access(x, true, false)
	b.Access(y, false, true)
	b.SetGrid(1)
	b.SetBlock(1)
	b.GridLoop(func(*program.Value) {
		b.Store(y, b.Load(b.PtrAdd(x, b.Index(far)), 1, 4), 4)
		b.Store(b.PtrAdd(y, b.Index(1)), b.Load(b.PtrAdd(x, b.Index(far+1)), 1, 4), 4)
	})
	in, out := make([]byte, 8<<20), make([]byte, 8)
	copy(in[4*far:], floats(7, 11))
	emulate(t, b.Finish(), "sm_90", Options{}, map[int][]byte{0: in, 1: out}, nil, 1)
	if floatAt(out, 0) != 7 || floatAt(out, 1) != 11 {
		t.Errorf("got %g and %g, want 7 and 11", floatAt(out, 0), floatAt(out, 1))
	}
}
