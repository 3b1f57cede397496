package interp_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/interp"
)

// reverse writes, per block of 64 threads, the threads' indices in reverse order
// through shared memory.
func reverse(barrier bool) *program.Program {
	b := program.NewBuilder("reverse")
	b.SetBlock(64)
	b.SetGrid(2)
	out := b.Buffer(0, ir.I32, "out", 16, 512)
	room := b.Alloca(ir.I32, program.SharedSpace, 64, 16)
	t := b.ThreadIndex(0)
	wide := b.Cast(t, ir.I64)
	b.GridLoop(func(unit *program.Value) {
		b.Store(b.PtrAdd(room, wide), t, 4)
		if barrier {
			b.Barrier()
		}
		v := b.Load(b.PtrAdd(room, b.Sub(b.Index(63), wide)), 1, 4)
		b.Store(b.PtrAdd(out, b.Add(b.Mul(unit, b.Index(64)), wide)), v, 4)
	})
	return b.Finish()
}

func TestBlockOfThreads(t *testing.T) {
	data := make([]byte, 512)
	if err := interp.RunProgram(reverse(true), []interp.Arg{{Bytes: data}}, 0, 2); err != nil {
		t.Fatal(err)
	}
	for i := range 128 {
		if got := binary.LittleEndian.Uint32(data[4*i:]); int(got) != 63-i%64 {
			t.Errorf("element %d is %d", i, got)
		}
	}
	err := interp.RunProgram(reverse(false), []interp.Arg{{Bytes: data}}, 0, 2)
	if err == nil || !strings.Contains(err.Error(), "without a barrier") {
		t.Errorf("no barrier: %v", err)
	}
}

// Loops of different lengths, and a sum over a warp by shuffles.
func TestThreadsDiverge(t *testing.T) {
	b := program.NewBuilder("diverge")
	b.SetBlock(32)
	b.SetGrid(1)
	out := b.Buffer(0, ir.I32, "out", 16, 128)
	tid := b.ThreadIndex(0)
	wide := b.Cast(tid, ir.I64)
	b.GridLoop(func(*program.Value) {
		sum := b.For(b.Index(0), wide, b.Index(1), []*program.Value{b.Int(program.Scalar(ir.I32), 0)}, func(i *program.Value, carried []*program.Value) []*program.Value {
			return []*program.Value{b.Alu(ir.OpAdd, carried[0], b.Cast(i, ir.I32))}
		})[0]
		for mask := int64(16); mask > 0; mask /= 2 {
			sum = b.Alu(ir.OpAdd, sum, b.ShuffleLane(sum, b.Int(program.Scalar(ir.I32), mask)))
		}
		b.If(b.Lt(wide, b.Index(31)), func() []*program.Value {
			b.Store(b.PtrAdd(out, wide), sum, 4)
			return nil
		}, nil)
	})
	data := make([]byte, 128)
	if err := interp.RunProgram(b.Finish(), []interp.Arg{{Bytes: data}}, 0, 1); err != nil {
		t.Fatal(err)
	}
	want := 0
	for n := range 32 {
		want += n * (n - 1) / 2
	}
	for i := range 31 {
		if got := binary.LittleEndian.Uint32(data[4*i:]); int(got) != want {
			t.Errorf("thread %d has %d, want %d", i, got, want)
		}
	}
	if binary.LittleEndian.Uint32(data[124:]) != 0 {
		t.Error("a masked thread stored")
	}
}
