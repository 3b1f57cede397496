package opt

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// shared is a part whose block of n threads fills an array in shared memory,
// meets at a barrier if it is told to, and stores each thread's neighbour.
func sharedPart(n, blocks int64, barrier bool) *program.Program {
	b := program.NewBuilder("part")
	out := b.Buffer(0, ir.I32, "out", 64, 4*n*blocks)
	b.Access(out, false, true)
	b.SetGrid(blocks)
	b.SetBlock(n)
	unit, body := b.BeginGrid()
	tile := b.Alloca(ir.I32, program.SharedSpace, n, 16)
	tid := b.ThreadIndex(0)
	b.Store(b.PtrAdd(tile, b.Cast(tid, ir.I64)), tid, 4)
	if barrier {
		b.Barrier()
	}
	v := b.Load(b.PtrAdd(tile, b.Cast(tid, ir.I64)), 1, 4)
	at := b.Add(b.Mul(unit, b.Index(n)), b.Cast(tid, ir.I64))
	b.Store(b.PtrAdd(out, at), v, 4)
	b.EndGrid(body)
	return b.Finish()
}

func TestMergeGridsShape(t *testing.T) {
	p := MergeGrids("two", []*program.Program{sharedPart(128, 3, true), sharedPart(128, 5, true), sharedPart(32, 2, false)}, []int{1, 1, 1})
	if err := program.VerifyGPU(p); err != nil {
		t.Fatal(err)
	}
	if p.Units() != 10 || p.Block[0] != 128 || len(p.Params) != 3 || p.Params[2].Slot != 2 {
		t.Errorf("grid %v, block %v, %d parameters", p.Grid, p.Block, len(p.Params))
	}
	// A block runs one part: the arrays of the parts share a place, except that
	// of idle threads' branch, which is where not all threads go.
	if got := program.SharedBytes(p); got != 512 {
		t.Errorf("%d bytes of shared memory, want 512", got)
	}
}

// The threads of a narrow part wait for each other and not for idle ones; the barriers of the widest are those of its blocks.
func TestMergeGridsOfDifferentWidths(t *testing.T) {
	p := MergeGrids("two", []*program.Program{sharedPart(128, 3, true), sharedPart(32, 2, true)}, []int{1, 1})
	if err := program.VerifyGPU(p); err != nil {
		t.Fatal(err)
	}
	var waits []int64
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.Barrier {
			waits = append(waits, in.Int)
		}
	})
	if !slices.Equal(waits, []int64{0, 32}) {
		t.Errorf("barriers of the first %d threads, want all and 32", waits)
	}
}

// Idle threads would miss what a narrow part waits for in its cluster, and what is no whole warp has no barrier of its own.
func TestMergeGridsRefusesMissedBarriers(t *testing.T) {
	wide := sharedPart(256, 8, true)
	for name, narrow := range map[string]*program.Program{"a cluster": clusterPart(4, 8), "half a warp": sharedPart(16, 2, true)} {
		p := MergeGrids("bad", []*program.Program{wide, narrow}, []int{1, 1})
		if err := program.VerifyGPU(p); err == nil {
			t.Errorf("%s was accepted, which idle threads miss", name)
		}
	}
}

// clusterPart is a part whose blocks form clusters, each of which arrives.
func clusterPart(cluster, blocks int64) *program.Program {
	b := program.NewBuilder("part")
	b.SetGrid(blocks)
	b.SetBlock(128)
	b.SetCluster(cluster)
	_, body := b.BeginGrid()
	b.Emit(program.Instr{Op: program.ClusterArrive})
	b.EndGrid(body)
	return b.Finish()
}

// Parts begin at whole clusters, and those of one size may be merged.
func TestMergeGridsOfClusters(t *testing.T) {
	p := MergeGrids("two", []*program.Program{sharedPart(128, 3, true), clusterPart(4, 8), sharedPart(128, 5, true)}, []int{1, 0, 1})
	if err := program.VerifyGPU(p); err != nil {
		t.Fatal(err)
	}
	if p.Units() != 4+8+8 || p.Cluster != 4 {
		t.Errorf("%d blocks in clusters of %d", p.Units(), p.Cluster)
	}
	if p := MergeGrids("bad", []*program.Program{clusterPart(2, 8), clusterPart(4, 8)}, []int{0, 0}); p != nil {
		t.Error("clusters of two sizes")
	}
}
