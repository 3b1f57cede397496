package interp_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/interp"
)

// exchange has the blocks of clusters of two give each other their numbers, through the shared
// memory of the other one, with some of the instructions left out.
func exchange(without string) *program.Program {
	b := program.NewBuilder("exchange")
	b.SetBlock(32)
	b.SetGrid(4)
	b.SetCluster(2)
	out := b.Buffer(0, ir.I32, "out", 16, 512)
	room := b.Alloca(ir.I32, program.SharedSpace, 32, 16)
	t := b.Cast(b.ThreadIndex(0), ir.I64)
	emit := func(name string, op program.Op) {
		if name != without {
			b.Emit(program.Instr{Op: op})
		}
	}
	b.GridLoop(func(unit *program.Value) {
		emit("first arrive", program.ClusterArrive)
		emit("first wait", program.ClusterWait)
		if without == "store after a load" {
			b.Load(b.PtrAdd(room, t), 1, 4)
		}
		other := b.Alu(ir.OpXor, b.FloorMod(unit, b.Index(2)), b.Index(1))
		b.Store(b.PeerPtr(b.PtrAdd(room, t), other), b.Cast(unit, ir.I32), 4)
		emit("arrive", program.ClusterArrive)
		emit("wait", program.ClusterWait)
		v := b.Load(b.PtrAdd(room, t), 1, 4)
		b.Store(b.PtrAdd(out, b.Add(b.Mul(unit, b.Index(32)), t)), v, 4)
	})
	return b.Finish()
}

// What happens to work on a GPU, most times, is found.
func TestClusters(t *testing.T) {
	for without, want := range map[string]string{
		"nothing":            "",
		"first arrive":       "waits and has not arrived",
		"first wait":         "may not have begun",
		"arrive":             "waits and has not arrived",
		"wait":               "without a barrier",
		"store after a load": "without a barrier",
	} {
		data := make([]byte, 512)
		err := interp.RunProgram(exchange(without), []interp.Arg{{Bytes: data}}, 0, 4)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("without %s: %v, want %q", without, err, want)
		}
		for i := range 128 {
			if got := binary.LittleEndian.Uint32(data[4*i:]); want == "" && int(got) != i/32^1 {
				t.Errorf("element %d is %d", i, got)
			}
		}
	}
}

// A block that others still read may not end.
func TestClusterEnds(t *testing.T) {
	for _, wait := range []bool{true, false} {
		b := program.NewBuilder("early")
		b.SetBlock(32)
		b.SetGrid(2)
		b.SetCluster(2)
		room := b.Alloca(ir.I32, program.SharedSpace, 32, 16)
		thread := b.Cast(b.ThreadIndex(0), ir.I64)
		both := func(op program.Op) { b.Emit(program.Instr{Op: op}) }
		b.GridLoop(func(unit *program.Value) {
			b.Store(b.PtrAdd(room, thread), b.ThreadIndex(0), 4)
			both(program.ClusterArrive)
			both(program.ClusterWait)
			b.Load(b.PeerPtr(b.PtrAdd(room, thread), b.Sub(b.Index(1), unit)), 1, 4)
			if wait {
				both(program.ClusterArrive)
				both(program.ClusterWait)
			}
		})
		err := interp.RunProgram(b.Finish(), nil, 0, 2)
		if wait && err != nil || !wait && (err == nil || !strings.Contains(err.Error(), "may end before others")) {
			t.Errorf("wait %t: %v", wait, err)
		}
	}
}
