package interp

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
)

// In debug runs a write into the room behind a buffer is found, although the
// memory exists.
func TestCanary(t *testing.T) {
	b := program.NewBuilder("spill")
	x := b.Buffer(0, ir.F32, "x", 64, 32)
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) { b.Store(x, b.Zero(program.Vector(ir.F32, 16)), 64) })
	d := New(Options{Debug: true})
	exec, err := d.Load(t.Context(), []*program.Program{b.Finish()})
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(t.Context(), 32)
	if err != nil {
		t.Fatal(err)
	}
	call := runtime.Call{Exec: exec[0], Slots: map[int]runtime.View{0: {Memory: m}}}
	r, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{call}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "kernel spill wrote behind a buffer of 32 bytes") {
		t.Fatal(err)
	}
}

// Stack memory that was never written reads as NaN in debug runs.
func TestUndefinedStack(t *testing.T) {
	b := program.NewBuilder("undefined")
	y := b.Buffer(0, ir.F32, "y", 64, 64)
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) {
		b.Store(y, b.Load(b.Alloca(ir.F32, program.LocalSpace, 16, 64), 16, 64), 64)
	})
	out := make([]byte, 64)
	if err := RunProgram(b.Finish(), []Arg{{Bytes: out}}, 0, 1); err != nil {
		t.Fatal(err)
	}
	for i, v := range out {
		if v != 0xff {
			t.Fatalf("byte %d is %#x, want 0xff", i, v)
		}
	}
}

// Values carried around a loop may change places.
func TestCarriedValuesSwap(t *testing.T) {
	b := program.NewBuilder("swap")
	y := b.Buffer(0, ir.I64, "y", 64, 16)
	n := b.Var("n")
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) {
		r := b.For(b.Index(0), n, b.Index(1), []*program.Value{b.Index(1), b.Index(2)},
			func(_ *program.Value, c []*program.Value) []*program.Value { return []*program.Value{c[1], c[0]} })
		b.Store(y, r[0], 8)
		b.Store(b.PtrAdd(y, b.Index(1)), r[1], 8)
	})
	p := b.Finish()
	for n, want := range map[int64]byte{0: 1, 1: 2, 2: 1, 3: 2} {
		out := make([]byte, 16)
		if err := RunProgram(p, []Arg{{Bytes: out}, {Int64: n}}, 0, 1); err != nil {
			t.Fatal(err)
		}
		if out[0] != want || out[8] != 3-want {
			t.Errorf("n=%d: %d %d, want %d first", n, out[0], out[8], want)
		}
	}
}
