package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/cpu/native"
	"tgc/runtime/interp"
)

// scaleProgram is y[i] = x[i] * n for rows*16 elements, one unit per 16.
func scaleProgram(name string, rows int64) *program.Program {
	b := program.NewBuilder(name)
	x := b.Buffer(0, ir.F32, "x", 32, rows*64)
	y := b.Buffer(1, ir.F32, "y", 64, rows*64)
	b.Access(x, true, false)
	b.Access(y, false, true)
	n := b.Cast(b.Var("n"), ir.F32)
	b.SetGrid(rows)
	b.GridLoop(func(unit *program.Value) {
		at := b.Mul(unit, b.Index(16))
		v := b.Load(b.PtrAdd(x, at), 16, 32)
		b.Store(b.PtrAdd(y, at), b.Mul(v, b.Broadcast(n, 16)), 64)
	})
	return b.Finish()
}

func load(t *testing.T, d runtime.Device, p ...*program.Program) []runtime.Executable {
	t.Helper()
	list, err := d.Load(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func alloc(t *testing.T, d runtime.Device, n int64) runtime.Memory {
	t.Helper()
	m, err := d.Alloc(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return m
}

// devices are both devices: they keep the same contract.
func devices(t *testing.T) map[string]runtime.Device {
	return map[string]runtime.Device{
		"cpu":     newDevice(t, Options{Threads: 2}),
		"interp":  interp.New(interp.Options{Debug: true}),
		"shuffle": interp.New(interp.Options{Debug: true, Shuffle: 7}),
	}
}

// A chain of launches over imported and allocated memory, run with changing
// values of a variable and profiled.
func TestRecordAndRun(t *testing.T) {
	const rows = 100
	for name, d := range devices(t) {
		t.Run(name, func(t *testing.T) {
			p := scaleProgram("scale", rows)
			exec := load(t, d, p, p)
			backing := make([]byte, rows*64+64)
			host := alignedTo(backing, 32)[:rows*64]
			for i := range rows * 16 {
				binary.LittleEndian.PutUint32(host[4*i:], math.Float32bits(float32(i)))
			}
			x, err := d.Import(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			middle, y := alloc(t, d, rows*64+128), alloc(t, d, rows*64)
			launches := []runtime.Launch{
				{Calls: []runtime.Call{{Exec: exec[0], Slots: map[int]runtime.View{0: {Memory: x}, 1: {Memory: middle, Offset: 128}}}}},
				{Calls: []runtime.Call{{Exec: exec[1], Slots: map[int]runtime.View{0: {Memory: middle, Offset: 128}, 1: {Memory: y}}}}},
			}
			r, err := d.Record(t.Context(), launches)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Free()
			for _, n := range []int64{2, -3} {
				if err := r.Run(t.Context(), map[string]int64{"n": n}); err != nil {
					t.Fatal(err)
				}
				for i := range rows * 16 {
					got := math.Float32frombits(binary.LittleEndian.Uint32(y.Host()[4*i:]))
					if want := float32(int64(i) * n * n); got != want {
						t.Fatalf("n=%d: y[%d] = %g, want %g", n, i, got, want)
					}
				}
			}
			times, err := r.Profile(t.Context(), map[string]int64{"n": 1})
			if err != nil || len(times) != 2 {
				t.Fatalf("profile: %v %v", times, err)
			}
			if err := r.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), `variable "n" has no value`) {
				t.Errorf("run without a variable: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Run(ctx, map[string]int64{"n": 1}); !errors.Is(err, context.Canceled) {
				t.Errorf("run with a cancelled context: %v", err)
			}
		})
	}
}

func alignedTo(b []byte, align uintptr) []byte {
	m := &memory{HostMemory: runtime.HostMemory{Data: b}}
	return b[(align-m.address()%align)%align:]
}

func TestRecordRefuses(t *testing.T) {
	for name, d := range devices(t) {
		t.Run(name, func(t *testing.T) {
			exec := load(t, d, scaleProgram("scale", 1))[0]
			good := alloc(t, d, 128)
			imported, err := d.Import(t.Context(), alignedTo(make([]byte, 256), 64)[:128])
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				want  string
				slots map[int]runtime.View
			}{
				{"slot 1: no buffer is bound", map[int]runtime.View{0: {Memory: good}}},
				{"64 bytes at offset 96 of a buffer of 128", map[int]runtime.View{0: {Memory: good, Offset: 96}, 1: {Memory: good}}},
				{"is not aligned to 32", map[int]runtime.View{0: {Memory: good, Offset: 16}, 1: {Memory: good}}},
				{"read-only", map[int]runtime.View{0: {Memory: good}, 1: {Memory: imported}}},
				{"another device", map[int]runtime.View{0: {}, 1: {Memory: good}}},
			} {
				_, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{{Exec: exec, Slots: c.slots}}}})
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "kernel scale") {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			if _, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{{}}}}); err == nil {
				t.Error("a call without executable is recorded")
			}
			empty, err := d.Record(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := empty.Run(t.Context(), nil); err != nil {
				t.Error(err)
			}
			empty.Free()
		})
	}
}

// A kernel that leaves its buffers is an error that names it, and the device
// goes on working.
func TestFaultNamesKernel(t *testing.T) {
	b := program.NewBuilder("wild")
	x := b.Buffer(0, ir.F32, "x", 64, 64)
	b.SetGrid(4)
	b.GridLoop(func(*program.Value) {
		b.Store(b.PtrAdd(x, b.Index(1<<40)), b.Zero(program.Scalar(ir.F32)), 4)
	})
	p := b.Finish()
	for name, d := range devices(t) {
		t.Run(name, func(t *testing.T) {
			exec := load(t, d, p)[0]
			call := runtime.Call{Exec: exec, Slots: map[int]runtime.View{0: {Memory: alloc(t, d, 64)}}}
			r, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{call}}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Free()
			for range 2 {
				if err := r.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "wild") {
					t.Fatal(err)
				}
			}
			var fault *native.FaultError
			if err := r.Run(t.Context(), nil); name == "cpu" && !errors.As(err, &fault) {
				t.Errorf("%v is no FaultError", err)
			}
		})
	}
}

// Objects come from the cache the second time: equal programs need no LLVM.
func TestObjectCache(t *testing.T) {
	dir := t.TempDir()
	first := newDevice(t, Options{CacheDir: dir})
	load(t, first, scaleProgram("cached", 3))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("cache holds %d files: %v", len(files), err)
	}
	second := newDevice(t, Options{CacheDir: dir})
	if err := second.compiler.Close(); err != nil {
		t.Fatal(err)
	}
	load(t, second, scaleProgram("cached", 3))
	if _, err := second.Load(t.Context(), []*program.Program{scaleProgram("new", 3)}); err == nil {
		t.Error("a new program was compiled without a compiler")
	}
}

// Reads and writes stay inside of the memory.
func TestMemoryBounds(t *testing.T) {
	for name, d := range devices(t) {
		m := alloc(t, d, 100)
		for _, c := range []struct {
			offset int64
			n      int
		}{{90, 11}, {101, 0}, {-1, 1}, {math.MaxInt64, 2}} {
			for what, err := range map[string]error{"read": m.Read(t.Context(), c.offset, make([]byte, c.n)), "write": m.Write(t.Context(), c.offset, make([]byte, c.n))} {
				if err == nil || !strings.Contains(err.Error(), "of a buffer of 100") {
					t.Errorf("%s: %s of %d bytes at %d: %v", name, what, c.n, c.offset, err)
				}
			}
		}
		want := []byte("ten bytes.")
		got := make([]byte, len(want))
		if err := errors.Join(m.Write(t.Context(), 90, want), m.Read(t.Context(), 90, got)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %q came back as %q: %v", name, want, got, err)
		}
	}
}

func TestLoadReportsTheProgram(t *testing.T) {
	bad := program.NewBuilder("unfinished").Finish()
	for name, d := range devices(t) {
		if _, err := d.Load(t.Context(), []*program.Program{scaleProgram("fine", 1), bad}); err == nil || !strings.Contains(err.Error(), "unfinished") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
