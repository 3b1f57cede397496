package cpu

import (
	"errors"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/cpu/llvmc"
	"tgc/runtime/interp"
)

func TestMain(m *testing.M) {
	MaybeChild()
	os.Exit(m.Run())
}

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
