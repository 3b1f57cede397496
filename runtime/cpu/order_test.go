package cpu

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
)

// A launch begins when all calls of the one before have ended, also where a worker is
// free while another one still computes.
func TestLaunchesWaitForEachOther(t *testing.T) {
	slow := program.NewBuilder("slow")
	n, y := slow.Var("n"), slow.Buffer(0, ir.F32, "y", 4, 4)
	slow.SetGrid(1)
	slow.GridLoop(func(*program.Value) {
		one := slow.Float(program.Scalar(ir.F32), 1)
		half := slow.Float(program.Scalar(ir.F32), 0.5)
		sum := slow.For(slow.Index(0), n, slow.Index(1), []*program.Value{one}, func(_ *program.Value, carried []*program.Value) []*program.Value {
			return []*program.Value{slow.Add(slow.Mul(carried[0], half), one)}
		})
		slow.Store(y, sum[0], 4)
	})
	reads := program.NewBuilder("reads")
	from, to := reads.Buffer(0, ir.F32, "from", 4, 4), reads.Buffer(1, ir.F32, "to", 4, 256)
	reads.Access(from, true, false)
	reads.SetGrid(64)
	reads.GridLoop(func(unit *program.Value) { reads.Store(reads.PtrAdd(to, unit), reads.Load(from, 1, 4), 4) })
	d := newDevice(t, Options{Threads: 2})
	exec := load(t, d, slow.Finish(), reads.Finish())
	middle, out := alloc(t, d, 4), alloc(t, d, 256)
	r, err := d.Record(t.Context(), []runtime.Launch{
		{Calls: []runtime.Call{{Exec: exec[0], Slots: map[int]runtime.View{0: {Memory: middle}}}}},
		{Calls: []runtime.Call{{Exec: exec[1], Slots: map[int]runtime.View{0: {Memory: middle}, 1: {Memory: out}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	for range 3 {
		clear(middle.Host())
		if err := r.Run(t.Context(), map[string]int64{"n": 10_000_000}); err != nil {
			t.Fatal(err)
		}
		for unit := range 64 {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(out.Host()[4*unit:])); got != 2 {
				t.Fatalf("unit %d of the second launch read %g, want 2", unit, got)
			}
		}
	}
}

// What the cache holds belongs to a compiler: another one finds nothing there. An object
// that is damaged, or is none, is compiled again.
func TestObjectsOfAnotherCompiler(t *testing.T) {
	dir := t.TempDir()
	d := newDevice(t, Options{CacheDir: dir})
	exec := load(t, d, scaleProgram("cached", 3))
	source := exec[0].(*executable).source
	if _, hit := d.cache.Get(d.compiler.Fingerprint() + "\n" + source); !hit {
		t.Error("the object is not found by its compiler and its source")
	}
	if _, hit := d.cache.Get("\n" + source); hit {
		t.Error("the object is found without its compiler")
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, file[:len(file)/2], 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	load(t, newDevice(t, Options{CacheDir: dir}), scaleProgram("cached", 3))
	if err := d.cache.Put(d.compiler.Fingerprint()+"\n"+source, []byte("no object")); err != nil {
		t.Fatal(err)
	}
	load(t, newDevice(t, Options{CacheDir: dir}), scaleProgram("cached", 3))
}

// Workers take multiples of the units that a plan names: each unit stores which of its
// worker's it is.
func TestWorkersTakeChunks(t *testing.T) {
	d := newDevice(t, Options{Threads: 2})
	for chunk, want := range map[int][]uint32{1: {0, 1, 2, 0, 1, 2}, 4: {0, 1, 2, 3, 0, 1}, 8: {0, 1, 2, 3, 4, 5}} {
		b := program.NewBuilder("chunks")
		b.SetOptions(program.Options{program.Chunk: chunk})
		out := b.Buffer(0, ir.I32, "out", 4, 24)
		count := b.Alloca(ir.I32, program.LocalSpace, 1, 4)
		b.Store(count, b.Int(program.Scalar(ir.I32), 0), 4)
		b.SetGrid(6)
		b.GridLoop(func(unit *program.Value) {
			n := b.Load(count, 1, 4)
			b.Store(b.PtrAdd(out, unit), n, 4)
			b.Store(count, b.Add(n, b.Int(program.Scalar(ir.I32), 1)), 4)
		})
		exec, memory := load(t, d, b.Finish()), alloc(t, d, 24)
		r, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{{Exec: exec[0], Slots: map[int]runtime.View{0: {Memory: memory}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.Free()
		for i, n := range want {
			if got := binary.LittleEndian.Uint32(memory.Host()[4*i:]); got != n {
				t.Errorf("chunks of %d: unit %d is number %d of its worker, want %d", chunk, i, got, n)
			}
		}
	}
}

// The last units of a program that streams are taken by whichever worker is free: while one computes a
// long unit, the other does all that was not dealt out, each once. Each unit stores which of its worker's it is.
func TestWorkersShareUnits(t *testing.T) {
	const units, dealt, long = 64, 48, 20_000_000
	d := newDevice(t, Options{Threads: 2})
	b := program.NewBuilder("shared")
	n, out := b.Var("n"), b.Buffer(0, ir.I32, "out", 4, 4*units)
	count := b.Alloca(ir.I32, program.LocalSpace, 1, 4)
	b.Store(count, b.Int(program.Scalar(ir.I32), 0), 4)
	b.SetGrid(units)
	b.GridLoop(func(unit *program.Value) {
		at := b.PtrAdd(out, unit)
		b.Emit(program.Instr{Op: program.Prefetch, Args: []*program.Value{at}})
		turns := b.If(b.Alu(ir.OpCmpEq, unit, b.Index(0)), func() []*program.Value { return []*program.Value{n} }, func() []*program.Value { return []*program.Value{b.Index(1)} })
		half := b.Float(program.Scalar(ir.F32), 0.5)
		b.For(b.Index(0), turns[0], b.Index(1), []*program.Value{half}, func(_ *program.Value, carried []*program.Value) []*program.Value {
			return []*program.Value{b.Mul(carried[0], half)}
		})
		next := b.Add(b.Load(count, 1, 4), b.Int(program.Scalar(ir.I32), 1))
		b.Store(at, next, 4)
		b.Store(count, next, 4)
	})
	exec, memory := load(t, d, b.Finish()), alloc(t, d, 4*units)
	r, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{{Exec: exec[0], Slots: map[int]runtime.View{0: {Memory: memory}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	most := uint32(0)
	for range 10 { // the free worker may have no core for a while
		clear(memory.Host())
		if err := r.Run(t.Context(), map[string]int64{"n": long}); err != nil {
			t.Fatal(err)
		}
		seen := make(map[uint32]int)
		for unit := range units {
			got := binary.LittleEndian.Uint32(memory.Host()[4*unit:])
			if seen[got]++; got == 0 || seen[got] > 2 {
				t.Fatalf("unit %d is number %d of its worker, of which there are two", unit, got)
			}
			most = max(most, got)
		}
		if most == units-dealt/2 {
			return
		}
	}
	t.Errorf("the free worker did %d units at most, want %d", most, units-dealt/2)
}
