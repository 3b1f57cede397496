package interp

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
)

// What a GPU would do without a word is refused, by the verifier or as it happens: the
// interpreter is the oracle of the tests of kernels.
func TestThreadsThatAreRefused(t *testing.T) {
	bound := func(b *program.Builder) *program.Value {
		return b.Lt(b.ThreadIndex(0), b.Int(program.Scalar(ir.I32), 32))
	}
	shared := func(b *program.Builder) (own, other *program.Value) {
		room, thread := b.Alloca(ir.F32, program.SharedSpace, 64, 16), b.Cast(b.ThreadIndex(0), ir.I64)
		return b.PtrAdd(room, thread), b.PtrAdd(room, b.Sub(b.Index(63), thread))
	}
	for _, c := range []struct {
		name, want string // "" is no error
		body       func(b *program.Builder, x *program.Value)
	}{
		{"a barrier that half of the threads come to", "want all threads of the block", func(b *program.Builder, _ *program.Value) {
			b.If(bound(b), func() []*program.Value { b.Barrier(); return nil }, nil)
		}},
		{"a value of a thread that does not take part", "want all threads of a warp", func(b *program.Builder, _ *program.Value) {
			b.If(b.Lt(b.ThreadIndex(0), b.Int(program.Scalar(ir.I32), 16)), func() []*program.Value {
				b.ShuffleLane(b.ThreadIndex(0), b.Int(program.Scalar(ir.I32), 16))
				return nil
			}, nil)
		}},
		{"a value of a thread of another warp", "thread 0 reads from thread 32", func(b *program.Builder, _ *program.Value) {
			b.ShuffleLane(b.ThreadIndex(0), b.Int(program.Scalar(ir.I32), 32))
		}},
		{"an element that another warp wrote", "without a barrier", func(b *program.Builder, _ *program.Value) {
			own, other := shared(b)
			b.Store(own, b.Float(program.Scalar(ir.F32), 1), 4)
			b.Emit(program.Instr{Op: program.SyncWarp})
			b.Load(other, 1, 4)
		}},
		{"an element that a neighbour wrote", "without a barrier", func(b *program.Builder, _ *program.Value) {
			own, _ := shared(b)
			b.Store(own, b.Float(program.Scalar(ir.F32), 1), 4)
			b.Load(b.PtrAdd(own, b.Cast(b.Alu(ir.OpXor, b.ThreadIndex(0), b.Int(program.Scalar(ir.I32), 1)), ir.I64)), 1, 4)
		}},
		{"an element that a neighbour wrote before its warp met", "", func(b *program.Builder, _ *program.Value) {
			room, thread := b.Alloca(ir.F32, program.SharedSpace, 64, 16), b.ThreadIndex(0)
			b.Store(b.PtrAdd(room, b.Cast(thread, ir.I64)), b.Float(program.Scalar(ir.F32), 1), 4)
			b.Emit(program.Instr{Op: program.SyncWarp})
			b.Load(b.PtrAdd(room, b.Cast(b.Alu(ir.OpXor, thread, b.Int(program.Scalar(ir.I32), 1)), ir.I64)), 1, 4)
		}},
		{"an element that all threads write", "without a barrier", func(b *program.Builder, _ *program.Value) {
			b.Store(b.Alloca(ir.F32, program.SharedSpace, 64, 16), b.Float(program.Scalar(ir.F32), 1), 4)
		}},
	} {
		b := program.NewBuilder("refused")
		b.SetBlock(64)
		b.SetGrid(1)
		x := b.Buffer(0, ir.F32, "x", 16, 256)
		b.GridLoop(func(*program.Value) { c.body(b, x) })
		err := RunProgram(b.Finish(), []Arg{{Bytes: make([]byte, 256)}}, 0, 1)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// One element past the end is outside, at every width, and a guarded load whose guard
// does not hold is its other value wherever it points. Any byte but 0 is true.
func TestEdgesOfMemory(t *testing.T) {
	const bytes = 16
	results := map[string]string{"guard": "\x07\x07\x02\x01\x01", "guards of lanes": "\x08\x05\x09\x07"}
	for _, c := range []struct {
		name string
		want string // of the error
		body func(b *program.Builder, x, y *program.Value)
	}{
		{"last element", "", func(b *program.Builder, x, _ *program.Value) { b.Load(b.PtrAdd(x, b.Index(15)), 1, 1) }},
		{"first element past the end", "outside of its 16 bytes", func(b *program.Builder, x, _ *program.Value) { b.Load(b.PtrAdd(x, b.Index(16)), 1, 1) }},
		{"last lane past the end", "outside of its 16 bytes", func(b *program.Builder, x, _ *program.Value) { b.Load(b.PtrAdd(x, b.Index(13)), 4, 1) }},
		{"guard", "", func(b *program.Builder, x, y *program.Value) {
			one, far := b.Int(program.Scalar(ir.U8), 7), b.PtrAdd(x, b.Index(1000))
			no := b.Lt(b.Index(1), b.Index(0))
			b.Store(y, b.Guarded(no, far, one, 1), 1)
			b.Store(b.PtrAdd(y, b.Index(1)), b.Guarded(no, x, one, 1), 1)
			b.Store(b.PtrAdd(y, b.Index(2)), b.Guarded(b.Lt(b.Index(0), b.Index(1)), x, one, 1), 1)
			b.Store(b.PtrAdd(y, b.Index(3)), b.Cast(b.Load(b.PtrCast(x, ir.Bool), 1, 1), ir.U8), 1)
			b.Store(b.PtrAdd(y, b.Index(4)), b.Cast(b.Guarded(b.Lt(b.Index(0), b.Index(1)), b.PtrCast(x, ir.Bool), no, 1), ir.U8), 1)
		}},
		{"guards of lanes", "", func(b *program.Builder, x, y *program.Value) {
			guard, other := b.IntLanes(ir.Bool, 1, 0, 1, 0), b.IntLanes(ir.U8, 4, 5, 6, 7)
			b.Store(y, b.Guarded(guard, b.PtrAdd(x, b.Index(13)), other, 1), 1)
		}},
		{"guard of a lane past the end", "outside of its 16 bytes", func(b *program.Builder, x, y *program.Value) {
			guard, other := b.IntLanes(ir.Bool, 1, 1, 1, 1), b.IntLanes(ir.U8, 4, 5, 6, 7)
			b.Store(y, b.Guarded(guard, b.PtrAdd(x, b.Index(13)), other, 1), 1)
		}},
	} {
		for _, threads := range []int64{0, 2} {
			b := program.NewBuilder("edges")
			if threads > 0 {
				b.SetBlock(threads)
			}
			b.SetGrid(1)
			x, y := b.Buffer(0, ir.U8, "x", 16, bytes), b.Buffer(1, ir.U8, "y", 16, bytes)
			b.GridLoop(func(*program.Value) { c.body(b, x, y) })
			in, out := []byte{2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 1, 9}, make([]byte, bytes)
			args := []Arg{{Bytes: in}, {Bytes: out}}
			p := b.Finish()
			err := RunProgram(p, args[:len(p.Params)], 0, 1)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %d threads: %v, want %q", c.name, threads, err, c.want)
			}
			if !strings.HasPrefix(string(out), results[c.name]) {
				t.Errorf("%s, %d threads: %q, want %q", c.name, threads, out, results[c.name])
			}
		}
	}
}

// A buffer that is too short, or does not start where the kernel says, is refused when
// the step is recorded.
func TestBuffersThatAreRefused(t *testing.T) {
	b := program.NewBuilder("copy")
	x := b.Buffer(0, ir.F32, "x", 16, 64)
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) { b.Store(x, b.Zero(program.Vector(ir.F32, 4)), 16) })
	d := New(Options{})
	exec, err := d.Load(t.Context(), []*program.Program{b.Finish()})
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(t.Context(), 128)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := d.Import(t.Context(), make([]byte, 128))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view runtime.View
		want string
	}{
		{runtime.View{Memory: m}, ""},
		{runtime.View{Memory: m, Offset: 64}, ""},
		{runtime.View{Memory: m, Offset: 80}, "64 bytes at offset 80 of a buffer of 128"},
		{runtime.View{Memory: m, Offset: -16}, "64 bytes at offset -16"},
		{runtime.View{Memory: m, Offset: 8}, "offset 8 is not aligned to 16"},
		{runtime.View{Memory: imported}, "read-only"},
	} {
		call := runtime.Call{Exec: exec[0], Slots: map[int]runtime.View{0: c.view}}
		_, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{call}}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("offset %d: %v, want %q", c.view.Offset, err, c.want)
		}
	}
}
