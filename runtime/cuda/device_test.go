package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/cuda/internal/stub"
	"tgc/target"
)

// rig is a device under test: on the stub, on the emulator or on a GPU.
type rig struct {
	*Device
	stub     *stub.Stub // nil elsewhere
	emulated bool
}

// log is what the stub ran; elsewhere there is none.
func (r *rig) log() []string {
	if r.stub == nil {
		return nil
	}
	return r.stub.Log()
}

func onStub(t testing.TB, options Options, flags ...string) *rig {
	t.Helper()
	s := stub.Build(t, flags...)
	options.CUDAPath = s.Path
	d := start(t, options)
	t.Cleanup(func() {
		if live := s.Live(); live != "" && d.broken.Load() == nil {
			t.Errorf("left over: %s", live)
		}
	})
	t.Cleanup(func() { stop(t, d) }) // before the check above
	return &rig{Device: d, stub: s}
}

// gpu is the rig of tests that want a real one.
func gpu(t testing.TB, options Options) *rig {
	t.Helper()
	options.CUDAPath = os.Getenv("TGC_CUDA_PATH")
	d, err := New(withTestDefaults(options))
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, d) })
	return &rig{Device: d}
}

func withTestDefaults(options Options) Options {
	options.NoCache = options.CacheDir == ""
	if options.Renderer == nil {
		options.Renderer = renderTest
	}
	return options
}

func start(t testing.TB, options Options) *Device {
	t.Helper()
	d, err := New(withTestDefaults(options))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stop(t testing.TB, d *Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// emulatedBytes is the memory of the emulated GPU in tests.
const emulatedBytes = 256 << 20

func onEmulator(t testing.TB, options Options) *rig {
	t.Helper()
	drv, err := emulator.New(emulator.Options{MemoryBytes: emulatedBytes})
	check(t, err)
	options.Driver = drv
	d := start(t, options)
	t.Cleanup(func() {
		if live := drv.Live(); live != "" {
			t.Errorf("left over: %s", live)
		}
	})
	t.Cleanup(func() { stop(t, d) }) // before the check above
	return &rig{Device: d, emulated: true}
}

// both runs a test on the stub, on the emulator and, where there is one, on a
// GPU.
func both(t *testing.T, options Options, f func(t *testing.T, d *rig)) {
	t.Run("stub", func(t *testing.T) { f(t, onStub(t, options)) })
	t.Run("emulator", func(t *testing.T) { f(t, onEmulator(t, options)) })
	t.Run("gpu", func(t *testing.T) { f(t, gpu(t, options)) })
}

func load(t testing.TB, d runtime.Device, p ...*program.Program) []runtime.Executable {
	t.Helper()
	list, err := d.Load(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func alloc(t testing.TB, d runtime.Device, n int64) runtime.Memory {
	t.Helper()
	m, err := d.Alloc(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return m
}

func record(t testing.TB, d runtime.Device, launches ...runtime.Launch) *Recording {
	t.Helper()
	r, err := d.Record(t.Context(), launches)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Free)
	return r.(*Recording)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func floats(values ...float32) []byte {
	b := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return b
}

func counting(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i)
	}
	return out
}

func readFloats(t testing.TB, m runtime.Memory) []float32 {
	t.Helper()
	b := make([]byte, m.Size())
	check(t, m.Read(t.Context(), 0, b))
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// launch is one launch of calls of x -> y.
func launch(calls ...runtime.Call) runtime.Launch { return runtime.Launch{Calls: calls} }

func callOf(e runtime.Executable, x, y runtime.Memory) runtime.Call {
	return runtime.Call{Exec: e, Slots: map[int]runtime.View{0: {Memory: x}, 1: {Memory: y}}}
}

func TestDescribe(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		info, desc := d.Info(), d.Target()
		if d.Name() != "cuda:0" || info.Board == "" || info.Compute < 75 || info.CUDAVersion < 12000 || info.MemoryBytes < 1<<20 {
			t.Errorf("%s %+v", d.Name(), info)
		}
		if desc.WarpSize != 32 || desc.MaxThreads != 1024 || desc.Cost.Workers != info.Multiprocessors || desc.SharedBytes < 48<<10 {
			t.Errorf("%+v", desc)
		}
		t.Logf("%+v", info)
	})
	second := onStub(t, Options{Index: 1})
	if second.Name() != "cuda:1" || second.Target().Name != "ptx:sm_87" || second.Info().Board != "Stub GPU 1" {
		t.Errorf("%s is %s on %s", second.Name(), second.Target().Name, second.Info().Board)
	}
}

func TestAbsent(t *testing.T) {
	s := stub.Build(t)
	for _, options := range []Options{
		{CUDAPath: "/no/such/libcuda.so.1"},
		{CUDAPath: stub.Build(t, "-DNO_DEVICE").Path},
		{CUDAPath: s.Path, Index: 2},
		{CUDAPath: s.Path, Index: -1},
	} {
		if _, err := New(options); !errors.Is(err, ErrAbsent) {
			t.Errorf("%+v: %v, want ErrAbsent", options, err)
		}
	}
	s.Fail("cuStreamCreate", 999, 1)
	if _, err := New(Options{CUDAPath: s.Path}); err == nil || !strings.Contains(err.Error(), "cuda:0: cuStreamCreate") {
		t.Error(err)
	}
	if live := s.Live(); live != "" {
		t.Errorf("left over: %s", live)
	}
}

// Memory is zeroed, padded, aligned; reads and writes of any size and place come
// back.
func TestMemory(t *testing.T) {
	var progress int64
	var mu sync.Mutex
	options := Options{Progress: func(n int64) { mu.Lock(); progress += n; mu.Unlock() }}
	both(t, options, func(t *testing.T, d *rig) {
		progress = 0
		for _, n := range []int64{0, 1, 63, 4096, slotBytes + 1, 5*slotBytes + 77} {
			m := alloc(t, d, n)
			got := make([]byte, n)
			check(t, m.Read(t.Context(), 0, got))
			if bytes.Trim(got, "\x00") != nil && len(bytes.Trim(got, "\x00")) > 0 {
				t.Errorf("%d bytes are not zeroed", n)
			}
			if m.(*memory).Base%alignment != 0 || m.Size() != n || m.Host() != nil {
				t.Errorf("%d bytes at %#x", m.Size(), m.(*memory).Base)
			}
			if n < 4096 {
				continue
			}
			from := make([]byte, n-100)
			for i := range from {
				from[i] = byte(i * 7)
			}
			check(t, m.Write(t.Context(), 33, from))
			check(t, m.Read(t.Context(), 0, got))
			if !bytes.Equal(got[33:33+len(from)], from) || got[32] != 0 || got[33+len(from)] != 0 {
				t.Errorf("%d bytes came back otherwise", n)
			}
			copied, err := d.Import(t.Context(), from)
			check(t, err)
			check(t, copied.Read(t.Context(), 0, got[:len(from)]))
			if !bytes.Equal(got[:len(from)], from) {
				t.Errorf("%d imported bytes came back otherwise", len(from))
			}
			copied.Free()
		}
		if progress < 12*slotBytes {
			t.Errorf("progress told of %d bytes", progress)
		}
		small := alloc(t, d, 100)
		for _, err := range []error{small.Read(t.Context(), 90, make([]byte, 11)), small.Write(t.Context(), -1, make([]byte, 1)), small.Read(t.Context(), 101, nil)} {
			if err == nil || !strings.Contains(err.Error(), "of a buffer of 100") {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := small.Write(ctx, 0, make([]byte, 10)); !errors.Is(err, context.Canceled) {
			t.Errorf("write with a cancelled context: %v", err)
		}
		if _, err := d.Alloc(t.Context(), -1); err == nil {
			t.Error("an allocation of -1 bytes")
		}
	})
}

// Small writes are queued, more of them than the ring has room for; a later one does
// not overtake them, nor does a read.
func TestSmallWrites(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		want := make([]byte, 3*inboxBytes)
		m := alloc(t, d, int64(len(want)))
		for round := range byte(2) {
			for at := 0; at < len(want); at += smallBytes - 7 {
				piece := want[at:min(at+smallBytes-7, len(want))]
				for i := range piece {
					piece[i] = byte(at/8) + byte(i) + round
				}
				check(t, m.Write(t.Context(), int64(at), piece))
			}
		}
		got := make([]byte, len(want))
		check(t, m.Read(t.Context(), 0, got))
		if !bytes.Equal(got, want) {
			t.Error("the bytes came back otherwise")
		}
	})
}

// A variable that was set by a call of Run that fails has its value in the next one.
func TestRunAfterMissingVariable(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		other := scaleProgram("scale", 2)
		for i := range other.Params {
			if other.Params[i].Kind == program.ParamVar {
				other.Params[i].Name = "m"
			}
		}
		exec := load(t, d, scaleProgram("scale", 2), other)
		x, y, z := alloc(t, d, 128), alloc(t, d, 128), alloc(t, d, 128)
		check(t, x.Write(t.Context(), 0, floats(counting(32)...)))
		r := record(t, d, launch(callOf(exec[0], x, y)), launch(callOf(exec[1], y, z)))
		check(t, r.Run(t.Context(), map[string]int64{"n": 2, "m": 3}))
		if err := r.Run(t.Context(), map[string]int64{"n": 5}); err == nil || !strings.Contains(err.Error(), `variable "m" has no value`) {
			t.Fatalf("run without a variable: %v", err)
		}
		check(t, r.Run(t.Context(), map[string]int64{"n": 5, "m": 3}))
		if got := readFloats(t, z)[4]; got != 4*5*3 {
			t.Errorf("got %g, want %d", got, 4*5*3)
		}
	})
}

// What is allocated and freed does not grow; a freed buffer is an error, not
// another's bytes.
func TestMemoryReturns(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		for range 50 {
			var list []runtime.Memory
			for _, n := range []int64{10, 1 << 20, 9 << 20, 300} {
				m, err := d.Alloc(t.Context(), n)
				check(t, err)
				list = append(list, m)
			}
			for _, m := range list {
				m.Free()
				m.Free()
			}
		}
		if u := d.Usage(); u != (Usage{}) {
			t.Errorf("%+v is in use", u)
		}
		m := alloc(t, d, 64)
		r := record(t, d, launch(callOf(load(t, d, scaleProgram("scale", 1))[0], m, m)))
		m.Free()
		if err := r.Run(t.Context(), map[string]int64{"n": 1}); err == nil || !strings.Contains(err.Error(), "has been freed") {
			t.Error(err)
		}
		if err := m.Read(t.Context(), 0, make([]byte, 1)); err == nil {
			t.Error("read after free")
		}
	})
}

func TestOutOfMemory(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		if d.stub != nil {
			d.stub.SetMemory(40 << 20)
		}
		keep := alloc(t, d, 1<<20)
		_, err := d.Alloc(t.Context(), 1<<44)
		var full *OutOfMemoryError
		if !errors.As(err, &full) || !errors.Is(err, ErrOutOfMemory) || full.Asked != 1<<44 || full.Total < full.Free || full.Held != d.arena.Footprint(1<<20) {
			t.Fatalf("%v", err)
		}
		t.Log(err)
		again := alloc(t, d, 1<<20) // the device goes on working
		check(t, again.Write(t.Context(), 0, []byte{1}))
		check(t, keep.Write(t.Context(), 0, []byte{1}))
		if d.stub == nil {
			return
		}
		// A block of the arena does not fit any more, the allocation does.
		alloc(t, d, 7<<20)
		d.stub.SetMemory(45 << 20)
		alloc(t, d, 7<<20)
		alloc(t, d, 7<<20)
		alloc(t, d, 7<<20)
		alloc(t, d, 6<<20)
		if _, err := d.Alloc(t.Context(), 20<<20); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "asked for 20.0 MiB, free") {
			t.Error(err)
		}
	})
}

// A chain of launches with parallel calls, changing variables, a profile, and
// nothing sent to the device that has not changed.
func TestRecordAndRun(t *testing.T) {
	for name, options := range map[string]Options{"graph": {}, "serial": {Serial: true}} {
		t.Run(name, func(t *testing.T) {
			both(t, options, func(t *testing.T, d *rig) {
				const rows = 100
				p := scaleProgram("scale", rows)
				exec := load(t, d, p, p, scaleProgram("scale_fixed", rows))
				if exec[0] != exec[1] {
					t.Error("one program was loaded twice")
				}
				x, err := d.Import(t.Context(), floats(counting(rows*16)...))
				check(t, err)
				t.Cleanup(x.Free)
				var out [4]runtime.Memory
				for i := range out {
					out[i] = alloc(t, d, rows*64)
				}
				middle := alloc(t, d, rows*64+256)
				shifted := runtime.View{Memory: middle, Offset: 256}
				r := record(t, d,
					launch(runtime.Call{Exec: exec[0], Slots: map[int]runtime.View{0: {Memory: x}, 1: shifted}}, callOf(exec[0], x, out[0])),
					runtime.Launch{},
					launch(runtime.Call{Exec: exec[1], Slots: map[int]runtime.View{0: shifted, 1: {Memory: out[1]}}}, callOf(exec[0], out[0], out[2])),
					launch(callOf(exec[2], out[2], out[3])),
				)
				for _, n := range []int64{2, -3, -3, 5} {
					d.log()
					check(t, r.Run(t.Context(), map[string]int64{"n": n}))
					for i, power := range []float64{1, 2, 2, 3} {
						for at, got := range readFloats(t, out[i]) {
							if want := float32(at) * float32(math.Pow(float64(n), power)); got != want {
								t.Fatalf("n=%d: out %d [%d] = %g, want %g", n, i, at, got, want)
							}
						}
					}
				}
				times, err := r.Profile(t.Context(), map[string]int64{"n": 6})
				if err != nil || len(times) != 5 {
					t.Fatalf("profile: %v %v", times, err)
				}
				t.Log(times)
				if got := readFloats(t, out[3])[3]; got != 3*6*6*6 {
					t.Errorf("the profiled step gave %g", got)
				}
				_, err = r.Profile(t.Context(), map[string]int64{"n": 7})
				check(t, err)
				if got := readFloats(t, out[3])[3]; got != 3*7*7*7 {
					t.Errorf("the step profiled again gave %g", got)
				}
				check(t, r.Run(t.Context(), map[string]int64{"n": 7}))
				if got := readFloats(t, out[3])[3]; got != 3*7*7*7 {
					t.Errorf("the step after the profile gave %g", got)
				}
				chain(t, r, out[3])
				for range 3 {
					check(t, r.Start(t.Context(), map[string]int64{"n": 2}))
				}
				check(t, r.Wait())
				if got := readFloats(t, out[1])[5]; got != 20 {
					t.Errorf("queued steps gave %g", got)
				}
				if err := r.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), `variable "n" has no value`) {
					t.Errorf("run without a variable: %v", err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := r.Run(ctx, map[string]int64{"n": 1}); !errors.Is(err, context.Canceled) {
					t.Errorf("run with a cancelled context: %v", err)
				}
				r.Free()
				if err := r.Run(t.Context(), map[string]int64{"n": 1}); err == nil {
					t.Error("a freed recording runs")
				}
			})
		})
	}
}

// Nodes and edges of a recorded step, as the driver sees them.
func TestGraphShape(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		index int
		want  []string
	}{
		{"early", nil, 0, []string{"edge 0 1 full", "edge 0 2 full", "edge 1 3 full", "edge 2 3 full", "edge 3 4 full", "edge 3 5 full", "edge 4 6 full", "edge 5 6 full", "edge 6 7 programmatic",
			"edge 7 8 full", "edge 7 9 full", "edge 8 10 full", "edge 9 10 full"}},
		{"older driver", []string{"-DOLD"}, 0, []string{"edge 6 7 full", "edge 7 8 full", "edge 7 9 full", "edge 8 10 full", "edge 9 10 full"}},
		{"older architecture", nil, 1, []string{"edge 6 7 full", "edge 7 8 full", "edge 7 9 full", "edge 8 10 full", "edge 9 10 full"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := onStub(t, Options{Index: c.index}, c.flags...)
			exec := load(t, d, scaleProgram("scale", 2), scaleProgram("scale_early", 2), scaleProgram("scale_empty", 0))
			m := alloc(t, d, 128)
			one, early, none := callOf(exec[0], m, m), callOf(exec[1], m, m), callOf(exec[2], m, m)
			d.log()
			r := record(t, d, launch(one), launch(early, none, early), launch(one, one), launch(one), launch(early), launch(one, one), launch(early))
			log := d.log()
			log = log[len(log)-len(c.want):] // the last edges
			if !reflect.DeepEqual(log, c.want) {
				t.Errorf("%q, want %q", log, c.want)
			}
			check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
			d.log()
			check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
			if log := d.log(); slices.ContainsFunc(log, func(s string) bool { return strings.HasPrefix(s, "set") }) || len(log) != 10 {
				t.Errorf("an unchanged step sets parameters or runs otherwise: %q", log)
			}
		})
	}
}

// TestRepeat: several runs are one graph, each behind the other, the first kernel
// as early as any; a new value reaches the kernels of all runs.
func TestRepeat(t *testing.T) {
	d := onStub(t, Options{})
	exec := load(t, d, scaleProgram("scale_early", 2))
	constant := scaleProgram("scale_constant_early", 2)
	for i := range constant.Params {
		constant.Params[i].Constant = constant.Params[i].Kind == program.ParamBuffer && !constant.Params[i].Write
	}
	ahead := load(t, d, constant)
	m := alloc(t, d, 128)
	r := record(t, d, launch(callOf(exec[0], m, m)), launch(callOf(exec[0], m, m)))
	d.log()
	three, err := r.Repeat(t.Context(), 3)
	check(t, err)
	defer three.Free()
	want := []string{"edge 0 1 programmatic", "edge 1 2 programmatic", "edge 2 3 programmatic", "edge 3 4 programmatic", "edge 4 5 programmatic"}
	if log := d.log(); !reflect.DeepEqual(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	short, err := record(t, d, launch(callOf(exec[0], m, m))).Repeat(t.Context(), 3)
	check(t, err)
	defer short.Free()
	if log := d.log(); !reflect.DeepEqual(log, want[:2]) {
		t.Errorf("%q of a step of one launch, want %q", log, want[:2])
	}
	pair := record(t, d, launch(callOf(ahead[0], m, m)), launch(callOf(exec[0], m, m)))
	d.log()
	apart, err := pair.Repeat(t.Context(), 3)
	check(t, err)
	defer apart.Free()
	want = []string{"edge 0 1 programmatic", "edge 1 2 full", "edge 2 3 programmatic", "edge 3 4 full", "edge 4 5 programmatic"}
	if log := d.log(); !reflect.DeepEqual(slices.DeleteFunc(log, func(s string) bool { return !strings.HasPrefix(s, "edge") }), want) {
		t.Errorf("%q of kernels that read ahead what the run writes, want %q", log, want)
	}
	other := alloc(t, d, 128)
	same, err := record(t, d, launch(callOf(ahead[0], other, m))).Repeat(t.Context(), 2)
	check(t, err)
	defer same.Free()
	if log, want := d.log(), []string{"edge 0 1 programmatic"}; !reflect.DeepEqual(log, want) {
		t.Errorf("%q of kernels that read ahead what no kernel writes, want %q", log, want)
	}
	for _, c := range []struct {
		n        int64
		set, run int
	}{{1, 6, 6}, {1, 0, 6}, {2, 6, 6}} {
		check(t, three.Run(t.Context(), map[string]int64{"n": c.n}))
		log := d.log()
		set := slices.DeleteFunc(slices.Clone(log), func(s string) bool { return !strings.HasPrefix(s, "set") })
		if len(set) != c.set || len(log) != c.set+c.run {
			t.Errorf("n = %d: %q, want %d parameters set and %d runs", c.n, log, c.set, c.run)
		}
	}
}

func TestRecordRefuses(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		exec := load(t, d, scaleProgram("scale", 1))[0]
		good := alloc(t, d, 128)
		imported, err := d.Import(t.Context(), make([]byte, 128))
		check(t, err)
		t.Cleanup(imported.Free)
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
		empty := record(t, d)
		check(t, empty.Run(t.Context(), nil))
		if times, err := empty.Profile(t.Context(), nil); err != nil || times != nil {
			t.Error(times, err)
		}
	})
}

// chain runs the last call of TestRecordAndRun's step alone, with another n for the
// step that follows, and asks for chains that are none.
func chain(t *testing.T, r *Recording, last runtime.Memory) {
	t.Helper()
	if took, err := r.Chain(t.Context(), map[string]int64{"n": 3}, []int{3, 4}, 3); err != nil || took < 0 {
		t.Fatalf("chain: %v %v", took, err)
	}
	if got := readFloats(t, last)[3]; got != 3*7*3*3 { // of the first product that the run at 7 left
		t.Errorf("the chained calls gave %g", got)
	}
	check(t, r.Run(t.Context(), map[string]int64{"n": 3}))
	if got := readFloats(t, last)[3]; got != 3*3*3*3 {
		t.Errorf("the step after the chain gave %g", got)
	}
	for _, calls := range [][]int{nil, {5}, {-1}} {
		if _, err := r.Chain(t.Context(), map[string]int64{"n": 3}, calls, 1); err == nil || !strings.Contains(err.Error(), "chain") {
			t.Errorf("a chain of %v: %v", calls, err)
		}
	}
}

// A fault names the kernel and what it was called with where it can, else all
// that ran; the device then answers with an error that says so.
func TestFault(t *testing.T) {
	for name, options := range map[string]Options{"graph": {}, "serial": {Serial: true}} {
		t.Run(name, func(t *testing.T) {
			t.Run("stub", func(t *testing.T) { fault(t, onStub(t, options)) })
			t.Run("emulator", func(t *testing.T) { fault(t, onEmulator(t, options)) })
			t.Run("gpu", func(t *testing.T) {
				if os.Getenv(faultProcess) == "" {
					inOwnProcess(t)
					return
				}
				fault(t, gpu(t, options))
			})
		})
	}
}

// faultProcess marks a process whose GPU contexts may be lost.
const faultProcess = "TGC_TEST_FAULT"

// inOwnProcess runs the calling test alone: a fault takes all contexts of a
// process with it.
func inOwnProcess(t *testing.T) {
	t.Helper()
	_ = gpu(t, Options{}) // skips without one
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	c := exec.Command(os.Args[0], "-test.run", pattern, "-test.v")
	c.Env = append(os.Environ(), faultProcess+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func fault(t *testing.T, d *rig) {
	exec := load(t, d, scaleProgram("scale", 4), scaleProgram("wild_one", 4))
	x, y := alloc(t, d, 256), alloc(t, d, 256)
	r := record(t, d, launch(callOf(exec[0], x, y)), launch(callOf(exec[0], x, y), callOf(exec[1], y, x)), launch(callOf(exec[0], x, y)))
	alone := record(t, d, launch(callOf(exec[1], y, x)))
	vars := map[string]int64{"n": 3}
	err := r.Run(t.Context(), vars)
	var fault *FaultError
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "CUDA_ERROR_ILLEGAL_ADDRESS") {
		t.Fatal(err)
	}
	t.Log(err)
	switch {
	case (d.options.Serial || d.emulated) && (fault.Kernel != "wild_one" || !strings.Contains(err.Error(), "n = 3")):
		t.Errorf("%v, want the kernel and its arguments", err)
	case !d.options.Serial && !d.emulated && (!reflect.DeepEqual(fault.Suspects, []string{"scale", "wild_one"}) || !strings.Contains(err.Error(), "TGC_CUDA_SERIAL=1")):
		t.Errorf("%v, want both kernels", err)
	}
	_, allocErr := d.Alloc(t.Context(), 64)
	for _, err := range []error{r.Run(t.Context(), vars), alone.Run(t.Context(), vars), allocErr, y.Read(t.Context(), 0, make([]byte, 4))} {
		if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "wild_one") {
			t.Errorf("%v, want ErrBroken and the kernel", err)
		}
	}
}

// Machine code comes from the cache the second time, and the assembler's words
// are part of its errors.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	var warnings []string
	first := onStub(t, Options{CacheDir: dir, Warn: func(m string) { warnings = append(warnings, m) }})
	first.log()
	exec := load(t, first, scaleProgram("scale", 1), scaleProgram("spills", 1), scaleProgram("scale", 2))
	if log := first.log(); len(log) != 2 {
		t.Errorf("equal texts: %q", log)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "kernel spills: 32 registers and 48 bytes") {
		t.Errorf("%q", warnings)
	}
	if e := exec[1].(*Executable); e.Stats() != (Stats{Registers: 32, LocalBytes: 48}) || !strings.Contains(e.Source(), ".entry spills(") || e.Program().Name != "spills" {
		t.Errorf("%+v", e.Stats())
	}
	second := onStub(t, Options{CacheDir: dir})
	second.log()
	load(t, second, scaleProgram("scale", 1))
	if log := second.log(); len(log) != 0 {
		t.Errorf("a warm start assembles: %q", log)
	}
	_, err := second.Load(t.Context(), []*program.Program{scaleProgram("scale", 1), scaleProgram("syntax", 1)})
	if err == nil || !strings.Contains(err.Error(), "kernel syntax") || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_PTX") || !strings.Contains(err.Error(), "Parsing error near 'SYNTAX'") {
		t.Error(err)
	}
	if _, err := second.Load(t.Context(), []*program.Program{scaleProgram("unknown", 1)}); err == nil {
		t.Error("a program that does not render was loaded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := second.Load(ctx, []*program.Program{scaleProgram("scale", 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("load with a cancelled context: %v", err)
	}
}

// Shared memory beyond 48 KB is asked for at launch.
func TestDynamicShared(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		d.log()
		exec := load(t, d, scaleProgram("shared", 3))[0]
		m := alloc(t, d, 256)
		r := record(t, d, launch(callOf(exec, m, m)))
		check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
		if s := exec.(*Executable).Stats(); s.SharedBytes != dynamicShared {
			t.Errorf("%+v", s)
		}
		if log := strings.Join(d.log(), "\n"); d.stub != nil && !strings.Contains(log, "dynamic shared 66560") || d.stub != nil && !strings.Contains(log, "shared 66560") {
			t.Error(log)
		}
	})
}

// The driver takes a division of the first cache in hundredths of the most shared memory, here 228 KB of sm_90 or 164 of sm_87.
func TestCarveout(t *testing.T) {
	d := onStub(t, Options{Renderer: func(p *program.Program, desc *target.Desc) (*Rendered, error) {
		r, err := renderTest(p, desc)
		r.Carveout = 16
		return r, err
	}})
	exec := load(t, d, scaleProgram("scale", 1))[0]
	m := alloc(t, d, 256)
	check(t, record(t, d, launch(callOf(exec, m, m))).Run(t.Context(), map[string]int64{"n": 1}))
	want := fmt.Sprintf("carveout scale %d", 100*16/slices.Max(d.desc.Carveouts))
	if log := strings.Join(d.log(), "\n"); !strings.Contains(log, want) {
		t.Errorf("%s, want %s", log, want)
	}
}

// The probes end with figures; on a GPU they are plausible ones.
func TestMeasure(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		if d.emulated {
			t.Skip("an emulator has no speed")
		}
		read, err := d.MeasureRead(t.Context())
		check(t, err)
		fma, err := d.MeasureFMA(t.Context())
		check(t, err)
		t.Logf("%.0f GB/s, %.0f GFLOP/s", read, fma)
		if d.stub == nil && (read < 10 || fma < 100) {
			t.Errorf("%.0f GB/s, %.0f GFLOP/s", read, fma)
		}
		if u := d.Usage(); u != (Usage{}) {
			t.Errorf("%+v is in use", u)
		}
	})
}

// Thousands of steps leave nothing behind on the host or the device.
func TestSteps(t *testing.T) {
	both(t, Options{}, func(t *testing.T, d *rig) {
		exec := load(t, d, scaleProgram("scale", 8), scaleProgram("scale_early", 8))
		m := alloc(t, d, 512)
		var launches []runtime.Launch
		for range 40 {
			launches = append(launches, launch(callOf(exec[1], m, m)))
		}
		r := record(t, d, launches...)
		steps := time.Duration(2000)
		if d.emulated {
			steps = 20
		}
		before, start := d.Usage(), time.Now()
		for i := range steps {
			check(t, r.Run(t.Context(), map[string]int64{"n": int64(i % 2)}))
			d.log()
		}
		elapsed := time.Since(start)
		same := time.Now()
		for range steps {
			check(t, r.Run(t.Context(), map[string]int64{"n": 1}))
			d.log()
		}
		t.Logf("a step of 40 kernels: %v with all parameters changed, %v without", elapsed/steps, time.Since(same)/steps)
		if d.Usage() != before {
			t.Errorf("%+v, was %+v", d.Usage(), before)
		}
	})
}
