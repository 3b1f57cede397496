package ptx

import (
	"regexp"
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// Before its wait a kernel loads only what nobody writes, and after it the grid before
// may have written what this program only reads: such loads take the way of constant
// memory only where the program says that nobody writes there.
func TestReadOnlyLoadsAroundTheWait(t *testing.T) {
	b := program.NewBuilder("around")
	x := b.Buffer(0, ir.F32, "x", 16, 64)
	y := b.Buffer(1, ir.F32, "y", 16, 64)
	b.Access(x, true, false)
	b.Access(y, true, true)
	b.SetGrid(1)
	b.SetBlock(1)
	b.GridLoop(func(*program.Value) {
		first := b.Load(x, 1, 4)
		b.Emit(program.Instr{Op: program.WaitGrid})
		sum := b.Add(first, b.Load(b.PtrAdd(x, b.Index(1)), 1, 4))
		sum = b.Add(sum, b.LoadCached(b.PtrAdd(x, b.Index(2)), 1, 4, program.CacheConst))
		sum = b.Add(sum, b.LoadCached(b.PtrAdd(x, b.Index(3)), 1, 4, program.CacheStream))
		sum = b.Add(sum, b.LoadCached(b.PtrAdd(x, b.Index(4)), 1, 4, program.CacheL2))
		sum = b.Add(sum, b.LoadCached(b.PtrAdd(y, b.Index(5)), 1, 4, program.CacheConst))
		sum = b.Add(sum, b.LoadCached(b.PtrAdd(y, b.Index(6)), 1, 4, program.CacheStream))
		b.Store(y, sum, 4)
	})
	k, err := Render(b.Finish(), describe(t, "sm_90"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`ld\.global[.:_a-zA-Z0-9]*\.(?:b|u|s|f)32`).FindAllString(k.Text, -1)
	want := []string{"ld.global.nc.b32", "ld.global.b32", "ld.global.nc.b32", "ld.global.nc.L1::no_allocate.b32", "ld.global.cg.b32",
		"ld.global.b32", "ld.global.L1::no_allocate.b32"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q\n%s", got, want, k.Text)
	}
}
