package program

import (
	"strings"
	"testing"

	"tgc/ir"
)

// gpuProgram holds every instruction and attribute that only GPUs have.
const gpuProgram = `program "gpu"
param %0:*f32 buffer slot 0 name "x" align 16 bytes 4096 read
param %1:*u32 buffer slot 1 name "y" align 16 bytes 4096 read write
param %2:i64 var name "n" lo 1 hi 4096
grid 2
block 2 32
cluster 2
%3:i32 = const 16
%4:u32 = const 1
%5:f32x4 = const 0
%6:f16x8 = const 0
%7:f16x4 = const 0
%8:*f32@shared = alloca count 64 align 16
gridloop %9:i64 {
  launchnext
  clusterarrive
  waitgrid
  barrier
  %10:i32 = threadindex lane 1
  %11:f32 = load %0 align 4 cache stream
  %12:f32 = shufflelane %11 %3
  %13:f32x4 = mma %5 %6 %7
  %14:u32 = atomic add %1 %4 align 4
  fence
  syncwarp
  store %1 %14 align 4 cache l2
  %15:*f32@peer = peerptr %8 %9
  clusterwait
  store %15 %12 align 4
}
`

// firstThreads is a program in whose branch the first 64 of 128 threads are.
const firstThreads = `program "first"
grid 1
block 128
%0:i32 = const 64
gridloop %1:i64 {
  %2:i32 = threadindex lane 0
  %3:bool = cmplt %2 %0
  if %3 {
    barrier threads 64
    yield
  } else {
    yield
  }
  barrier
}
`

func TestGPUTextForm(t *testing.T) { roundTrip(t, gpuProgram) }

// roundTrip wants a program that VerifyGPU takes, and its text again.
func roundTrip(t *testing.T, text string) {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyGPU(p); err != nil {
		t.Fatal(err)
	}
	if got := Print(p); got != text {
		t.Errorf("round trip:\n%s", got)
	}
}

// Threads wait for all that are there, and for no others: which are the first threads of a block, or all.
func TestUniformityOfFirstThreads(t *testing.T) {
	roundTrip(t, firstThreads)
	const missed, partly = "all threads of a warp, want all threads of the block", "want whole warps and not all"
	for _, c := range []struct{ name, from, to, want string }{
		{"all are waited for", "barrier threads 64", "barrier", missed},
		{"fewer are waited for", "barrier threads 64", "barrier threads 32", missed},
		{"some are waited for by all", "  barrier\n}", "  barrier threads 64\n}", missed},
		{"the others wait", "  } else {\n", "  } else {\n    barrier threads 64\n", missed},
		{"a cluster", "barrier threads 64", "clusterwait", missed},
		{"the first of a row of threads", "block 128", "block 2 64", "`barrier threads 64` stands"},
		{"half a warp", "threads 64", "threads 16", partly},
		{"more than a block has", "threads 64", "threads 256", partly},
		{"a number below 0", "threads 64", "threads -32", partly},
	} {
		text := strings.Replace(firstThreads, c.from, c.to, 1)
		p, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := VerifyGPU(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Fragments are whole 32-bit words, and their types name one shape.
func TestMmaShapes(t *testing.T) {
	for i := range MmaShapes {
		s := &MmaShapes[i]
		acc, a, b := s.Types()
		if MmaOf(acc, a, b) != s {
			t.Errorf("%s: its types name another shape", s.Name)
		}
		for _, v := range []Type{a, b} {
			if v.Lanes*v.Elem.Size()%4 != 0 {
				t.Errorf("%s: a fragment %s", s.Name, v)
			}
		}
	}
	if MmaOf(Vector(ir.F32, 4), Vector(ir.F32, 8), Vector(ir.F32, 4)) != nil {
		t.Error("a shape of f32")
	}
}

// A loop whose carried value becomes different in each thread only in its
// second round makes a barrier under its condition illegal.
func TestUniformityOfCarriedValues(t *testing.T) {
	b := NewBuilder("carried")
	b.SetGrid(1)
	b.SetBlock(64)
	b.GridLoop(func(*Value) {
		zero := b.Int(Scalar(ir.I32), 0)
		tid := b.ThreadIndex(0)
		b.For(b.Index(0), b.Index(3), b.Index(1), []*Value{zero, zero}, func(_ *Value, carried []*Value) []*Value {
			b.If(b.Eq(carried[0], zero), func() []*Value { b.Barrier(); return nil }, nil)
			return []*Value{carried[1], tid}
		})
	})
	if err := VerifyGPU(b.Finish()); err == nil || !strings.Contains(err.Error(), "`barrier` stands where control flow is that of one thread") {
		t.Error(err)
	}
}

// All blocks of a cluster arrive at its barrier, or none: which do may depend on the number of
// the cluster, not on that of the block in it.
func TestUniformityInClusters(t *testing.T) {
	arrive := Instr{Op: ClusterArrive}
	for _, c := range []struct {
		name, want string
		cond       func(b *Builder, unit *Value) *Value
		in         Instr
	}{
		{"every second cluster", "", func(b *Builder, unit *Value) *Value {
			return b.Lt(b.FloorMod(b.FloorDiv(unit, b.Index(4)), b.Index(2)), b.Index(1))
		}, arrive},
		{"the first clusters", "", func(b *Builder, unit *Value) *Value { return b.Lt(unit, b.Index(8)) }, arrive},
		{"the clusters of a second part", "", func(b *Builder, unit *Value) *Value {
			return b.Lt(b.Alu(ir.OpMax, b.Sub(unit, b.Index(8)), b.Index(0)), b.Index(4))
		}, arrive},
		{"the first block", "all threads of the block, want all threads of the cluster", func(b *Builder, unit *Value) *Value {
			return b.Lt(b.FloorMod(unit, b.Index(4)), b.Index(1))
		}, arrive},
		{"half of a cluster", "want all threads of the cluster", func(b *Builder, unit *Value) *Value { return b.Lt(unit, b.Index(6)) }, arrive},
		{"clusters of an odd part", "want all threads of the cluster", func(b *Builder, unit *Value) *Value {
			return b.Lt(b.Sub(unit, b.Index(2)), b.Index(8))
		}, arrive},
		{"the first block waits", "", func(b *Builder, unit *Value) *Value {
			return b.Lt(b.FloorMod(unit, b.Index(4)), b.Index(1))
		}, Instr{Op: ClusterWait}},
		{"half of a block waits", "one thread, want all threads of the block", func(b *Builder, _ *Value) *Value {
			return b.Lt(b.ThreadIndex(0), b.Int(Scalar(ir.I32), 16))
		}, Instr{Op: ClusterWait}},
	} {
		b := NewBuilder("cluster")
		b.SetGrid(16)
		b.SetBlock(32)
		b.SetCluster(4)
		b.GridLoop(func(unit *Value) {
			b.If(c.cond(b, unit), func() []*Value { b.Emit(c.in); return nil }, nil)
		})
		if err := VerifyGPU(b.Finish()); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
