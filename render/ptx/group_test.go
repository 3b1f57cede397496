package ptx

import (
	"strings"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/target"
)

// Products of warpgroups give what the interpreter gives: all sums of these are exact.
func TestGroupProducts(t *testing.T) {
	for i, g := range programtest.GroupProducts() {
		t.Run(g.Name(), func(t *testing.T) {
			buffers := g.Inputs()
			emulate(t, g.Program(), "sm_90a", Options{Persistent: i%2 == 1}, buffers, nil, uint64(i))
			if err := g.Check(buffers[2]); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same of programs as passes leave them: two sets of tiles, one filled while products run with the other.
func TestOptimisedGroupProducts(t *testing.T) {
	desc := describe(t, "sm_90a")
	without := *desc
	without.SM = program.CopySM - 1
	for i, g := range programtest.GroupProducts() {
		if text := optimisedGroup(t, g, desc, uint64(i)); !inOrder(text, "cp.async.wait_all", "fence.proxy.async", "bar.sync", "cp.async.cg", "wgmma.mma_async", "wgmma.wait_group", "bra") {
			t.Errorf("%s: copies do not begin before the products:\n%s", g.Name(), text)
		}
		if text := optimisedGroup(t, g, &without, uint64(i)); !inOrder(text, "bar.sync", "wgmma.mma_async", "st.shared", "wgmma.wait_group", "bra") {
			t.Errorf("%s: nothing is filled while products run:\n%s", g.Name(), text)
		}
	}
}

// optimisedGroup runs a program as passes for a target leave it, and gives the text of its loop.
func optimisedGroup(t *testing.T, g programtest.GroupProduct, desc *target.Desc, seed uint64) string {
	t.Helper()
	p, err := opt.Run(g.Program(), desc)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Render(p, describe(t, "sm_90a"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	buffers := g.Inputs()
	if err := run(p, k, buffers, nil, seed); err != nil {
		t.Fatalf("%s: %v\n%s", g.Name(), err, k.Text)
	}
	if err := g.Check(buffers[2]); err != nil {
		t.Errorf("%s: %v", g.Name(), err)
	}
	head := strings.Index(k.Text, "bar.sync")
	return k.Text[strings.LastIndex(k.Text[:head], ":\n"):]
}

// inOrder reports texts that follow one another.
func inOrder(text string, parts ...string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// Between the products of a loop, and at its end, no accumulator moves.
func TestGroupProductsMoveNothing(t *testing.T) {
	for _, sums := range []programtest.GroupSums{programtest.CarriedVector, programtest.CarriedScalars} {
		g := programtest.GroupProduct{Columns: 64, Elem: ir.BF16, Steps: 3, Sums: sums}
		k, err := Render(g.Program(), describe(t, "sm_90a"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, loop, _ := strings.Cut(k.Text, "wgmma.fence")
		loop, _, _ = strings.Cut(loop, "bra")
		moves := strings.Count(loop, "mov.b32") // one, of what all descriptors share
		if moves != 1 || strings.Count(loop, "wgmma.mma_async") != 4 || strings.Count(loop, "wgmma.wait_group") != 1 {
			t.Error(loop)
		}
	}
}

func TestGroupProductsElsewhere(t *testing.T) {
	g := programtest.GroupProduct{Columns: 64, Elem: ir.BF16, Steps: 3}
	for _, arch := range []string{"sm_80", "sm_90", "sm_100a"} {
		if _, err := Render(g.Program(), describe(t, arch), Options{}); err == nil || !strings.Contains(err.Error(), "has no wgmma") {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

// Accumulators that something else needs, or that another block made, are copied; what runs is waited for before.
func TestGroupProductsCopyAccumulators(t *testing.T) {
	b := program.NewBuilder("copies")
	out := b.Buffer(0, ir.F32, "out", 16, 128*4*4*3)
	b.Access(out, false, true)
	b.SetGrid(1)
	b.SetBlock(128)
	left := b.Alloca(ir.F16, program.SharedSpace, 64*64, program.GroupAlign)
	right := b.Alloca(ir.F16, program.SharedSpace, 64*64, program.GroupAlign)
	b.GridLoop(func(*program.Value) {
		thread := b.Cast(b.ThreadIndex(0), ir.I64)
		for _, to := range []*program.Value{left, right} {
			one := b.Float(program.Vector(ir.F16, 8), 1)
			for first := int64(0); first < 64*64; first += 128 * 8 {
				b.Store(b.PtrAdd(to, b.Add(b.Mul(thread, b.Index(8)), b.Index(first))), one, 16)
			}
		}
		b.Barrier()
		first := b.GroupMma(b.Float(program.Vector(ir.F32, 4), 0.5), left, right)
		second := b.GroupMma(first, left, right)
		third := b.GroupMma(b.Shuffle(first, first, 3, 2, 1, 0), left, right)
		fourth := b.For(b.Index(0), b.Index(2), b.Index(1), []*program.Value{third}, func(_ *program.Value, carried []*program.Value) []*program.Value {
			return []*program.Value{b.Add(b.GroupMma(second, left, right), carried[0])}
		})
		for i, v := range []*program.Value{second, third, fourth[0]} {
			b.Store(b.PtrAdd(out, b.Mul(b.Add(thread, b.Index(int64(128*i))), b.Index(4))), v, 16)
		}
	})
	p := b.Finish()
	buffers := map[int][]byte{0: unread(128 * 4 * 4 * 3)}
	emulate(t, p, "sm_90a", Options{}, buffers, nil, 1)
	for i := range 128 * 4 * 3 {
		if got, want := floatAt(buffers[0], i), []float32{32.5, 32.5, 32.5 + 2*48.5}[i/512]; got != want {
			t.Fatalf("lane %d: %g, want %g", i, got, want)
		}
	}
}
