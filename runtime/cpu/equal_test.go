package cpu

import (
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/interp"
)

func newDevice(t testing.TB, options Options) *Device {
	t.Helper()
	options.NoCache = options.CacheDir == ""
	d, err := New(t.Context(), options)
	if errors.Is(err, ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// runOn runs a program on a device over copies of the buffers, by slot, and
// returns their contents afterwards.
func runOn(t testing.TB, d runtime.Device, exec runtime.Executable, buffers map[int][]byte, vars map[string]int64) map[int][]byte {
	t.Helper()
	ctx := t.Context()
	call := runtime.Call{Exec: exec, Slots: make(map[int]runtime.View)}
	for slot, b := range buffers {
		m, err := d.Alloc(ctx, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		if err := m.Write(ctx, 0, b); err != nil {
			t.Fatal(err)
		}
		call.Slots[slot] = runtime.View{Memory: m}
	}
	r, err := d.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	if err := r.Run(ctx, vars); err != nil {
		t.Fatalf("%v\n%s", err, program.Print(exec.Program()))
	}
	out := make(map[int][]byte)
	for slot, b := range buffers {
		out[slot] = make([]byte, len(b))
		if err := call.Slots[slot].Memory.Read(ctx, 0, out[slot]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Random programs over all dtypes, ops and lane counts give the same bits on
// the CPU and in the interpreter, NaN payloads excepted.
func TestRandomProgramsEqualInterpreter(t *testing.T) { randomPrograms(t, Options{}) }

// The same on CPUs of other levels: without AVX-512, and without FMA and F16C.
func TestRandomProgramsOnOlderCPUs(t *testing.T) {
	for _, name := range []string{"x86-64-v3", "x86-64-v2"} {
		t.Run(name, func(t *testing.T) {
			if goruntime.GOARCH != "amd64" {
				t.Skip("x86 only")
			}
			options := Options{CPU: name, Features: llvmc.NoFeatures}
			randomPrograms(t, options)
			elementwise(t, options)
		})
	}
}

// expanded are programs in the instructions that the device has.
func expanded(d *Device, programs []*program.Program) []*program.Program {
	out := make([]*program.Program, len(programs))
	for i, p := range programs {
		out[i] = opt.Expand(p, d.Target())
	}
	return out
}

func randomPrograms(t *testing.T, options Options) {
	d := newDevice(t, options)
	reference := interp.New(interp.Options{Debug: true})
	n := 60
	if testing.Short() {
		n = 30
	}
	var programs []*program.Program
	var stores [][]programtest.Stored
	for seed := range n {
		p, s := programtest.Generate(uint64(seed), 40)
		if err := program.Verify(p); err != nil {
			t.Fatalf("%v\n%s", err, program.Print(p))
		}
		programs, stores = append(programs, p), append(stores, s)
	}
	compiled, err := d.Load(t.Context(), expanded(d, programs))
	if err != nil {
		t.Fatal(err)
	}
	interpreted, err := reference.Load(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range programs {
		r := rand.New(rand.NewPCG(uint64(i), 6))
		buffers, vars := programtest.Inputs(r), map[string]int64{"n": r.Int64N(5)}
		got := runOn(t, d, compiled[i], buffers, vars)[programtest.OutputSlot]
		want := runOn(t, reference, interpreted[i], buffers, vars)[programtest.OutputSlot]
		for _, s := range stores[i] {
			for unit := range int64(2) {
				at := unit*programtest.OutputBytes/2 + s.Offset
				end := at + int64(s.Value.Type.Lanes*s.Value.Type.Elem.Size())
				if lane, same := programtest.SameLanes(s.Value.Type.Elem, got[at:end], want[at:end]); !same {
					t.Fatalf("program %d unit %d %s:%s lane %d: cpu %x, interpreter %x\n%s", i, unit, s.Value, s.Value.Type, lane,
						got[at:end], want[at:end], program.Print(p))
				}
			}
		}
	}
}

// Every elementwise op on every dtype gives what ir.EvalScalar gives.
func TestElementwiseAgainstEvalScalar(t *testing.T) { elementwise(t, Options{}) }

func elementwise(t *testing.T, options Options) {
	d := newDevice(t, options)
	cases := programtest.Cases()
	var programs []*program.Program
	for _, c := range cases {
		programs = append(programs, c.Program)
	}
	compiled, err := d.Load(t.Context(), expanded(d, programs))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, c := range cases {
		if err := checkOnDevice(t, d, compiled[i], &c, r); err != nil {
			t.Error(err)
		}
	}
}

func checkOnDevice(t *testing.T, d *Device, exec runtime.Executable, c *programtest.Case, r *rand.Rand) error {
	ctx := t.Context()
	call := runtime.Call{Exec: exec, Slots: make(map[int]runtime.View)}
	for i := range len(c.Args) + 1 {
		m, err := d.Alloc(ctx, programtest.Lanes*8)
		if err != nil {
			return err
		}
		defer m.Free()
		call.Slots[i] = runtime.View{Memory: m}
	}
	recorded, err := d.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
	if err != nil {
		return err
	}
	defer recorded.Free()
	return c.Check(r, 40, func(buffers [][]byte) error {
		for i, b := range buffers {
			copy(call.Slots[i].Memory.Host(), b)
		}
		if err := recorded.Run(ctx, nil); err != nil {
			return err
		}
		last := len(buffers) - 1
		copy(buffers[last], call.Slots[last].Memory.Host())
		return nil
	})
}

// Lanes with guards of their own read what the interpreter reads, up to the last byte of
// a buffer and past it.
func TestGuardedLanes(t *testing.T) {
	var programs []*program.Program
	for _, dtype := range programtest.Types {
		for _, lanes := range []int{2, 4, 13, 16, 32} {
			programs = append(programs, guardedLanes(dtype, lanes))
		}
	}
	interpreted, err := interp.New(interp.Options{}).Load(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	list := []Options{{}}
	if goruntime.GOARCH == "amd64" {
		list = append(list, Options{CPU: "x86-64-v3", Features: llvmc.NoFeatures}, Options{CPU: "x86-64-v2", Features: llvmc.NoFeatures})
	}
	for _, options := range list {
		d := newDevice(t, options)
		compiled, err := d.Load(t.Context(), expanded(d, programs))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range programs {
			buffers := map[int][]byte{0: make([]byte, p.Params[0].Bytes), 1: make([]byte, p.Params[1].Bytes)}
			for k := range buffers[0] {
				buffers[0][k] = byte(1 + k%100)
			}
			got := runOn(t, d, compiled[i], buffers, nil)[1]
			want := runOn(t, interp.New(interp.Options{}), interpreted[i], buffers, nil)[1]
			if lane, same := programtest.SameLanes(p.Params[0].Value.Type.Elem, got, want); !same {
				t.Errorf("lane %d: %x, interpreter %x\n%s", lane, got, want, program.Print(p))
			}
		}
	}
}

// guardedLanes loads near the end of a buffer, some of the lanes that are inside.
func guardedLanes(dtype ir.DType, lanes int) *program.Program {
	const elements = 40
	starts := []int64{0, elements - 5, elements - 1}
	size := dtype.Size()
	b := program.NewBuilder("guarded")
	b.SetGrid(1)
	x := b.Buffer(0, dtype, "x", size, int64(elements*size))
	y := b.Buffer(1, dtype, "y", size, int64(len(starts)*lanes*size))
	b.GridLoop(func(*program.Value) {
		for k, at := range starts {
			guard := make([]int64, lanes)
			for i := range guard {
				if at+int64(i) < elements && i%3 != k {
					guard[i] = 1
				}
			}
			v := b.Guarded(b.IntLanes(ir.Bool, guard...), b.PtrAdd(x, b.Index(at)), b.Zero(program.Vector(dtype, lanes)), size)
			b.Store(b.PtrAdd(y, b.Index(int64(k*lanes))), v, size)
		}
	})
	return b.Finish()
}
