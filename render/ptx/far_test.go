package ptx

import (
	"context"
	"strings"
	"testing"

	"tgc/internal/cudatools"
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

// An element before the one that a variable numbers is at an offset below 0, which ptxas takes behind a +.
func TestOffsetsBelow(t *testing.T) {
	b := program.NewBuilder("below")
	x := b.Buffer(0, ir.F32, "x", 4, 16)
	y := b.Buffer(1, ir.F32, "y", 4, 8)
	n := b.Var("n")
	b.Access(x, true, false)
	b.Access(y, false, true)
	b.SetGrid(2)
	b.SetBlock(1)
	b.GridLoop(func(unit *program.Value) {
		before := b.Alu(ir.OpAdd, b.Add(unit, n), b.Index(-1))
		b.Store(b.PtrAdd(y, unit), b.Load(b.PtrAdd(x, before), 1, 4), 4)
	})
	p, desc := b.Finish(), describe(t, "sm_90")
	k, err := Render(p, desc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(k.Text, "+-4]") {
		t.Errorf("no offset below 0:\n%s", k.Text)
	}
	out := make([]byte, 8)
	if err := run(p, k, map[int][]byte{0: floats(5, 7, 11, 13), 1: out}, map[string]int64{"n": 2}, 1); err != nil {
		t.Fatal(err)
	}
	if floatAt(out, 0) != 7 || floatAt(out, 1) != 11 {
		t.Errorf("got %g and %g, want 7 and 11", floatAt(out, 0), floatAt(out, 1))
	}
	if tools := cudatools.FromEnvironment(); tools.PtxasPath != "" {
		if _, err := tools.Ptxas(context.Background(), k.Text, "sm_90"); err != nil {
			t.Error(located(err, k.Text))
		}
	}
}
