package cuda

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/interp"
)

// rendered is a GPU with the real renderer.
func rendered(t *testing.T) *Device {
	t.Helper()
	d, err := New(Options{NoCache: true})
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	check(t, err)
	t.Cleanup(func() { stop(t, d) })
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
		check(t, err)
		defer m.Free()
		check(t, m.Write(ctx, 0, b))
		call.Slots[slot] = runtime.View{Memory: m}
	}
	r, err := d.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
	check(t, err)
	defer r.Free()
	if err := r.Run(ctx, vars); err != nil {
		t.Fatalf("%v\n%s", err, program.Print(exec.Program()))
	}
	out := make(map[int][]byte)
	for slot, b := range buffers {
		out[slot] = make([]byte, len(b))
		check(t, call.Slots[slot].Memory.Read(ctx, 0, out[slot]))
	}
	return out
}

// Random programs over all dtypes, ops and lane counts give the same bits on a
// GPU and in the interpreter, NaN payloads excepted.
func TestRandomProgramsEqualInterpreter(t *testing.T) {
	d, reference := rendered(t), interp.New(interp.Options{Debug: true})
	const mostErrors = 5
	many, wrong := 400, 0
	if testing.Short() {
		many = 40
	}
	var programs []*program.Program
	var stored [][]programtest.Stored
	for seed := range many {
		p, s := programtest.Generate(uint64(seed), 40)
		programs, stored = append(programs, p), append(stored, s)
	}
	begin := time.Now()
	loaded, checked := load(t, d, expanded(d, programs...)...), load(t, reference, programs...)
	t.Logf("%d programs loaded in %v", many, time.Since(begin))
	for i, stores := range stored {
		seed, compiled, interpreted := uint64(i), loaded[i], checked[i]
		r := rand.New(rand.NewPCG(seed, 6))
		buffers, vars := programtest.Inputs(r), map[string]int64{"n": r.Int64N(5)}
		got := runOn(t, d, compiled, buffers, vars)[programtest.OutputSlot]
		want := runOn(t, reference, interpreted, buffers, vars)[programtest.OutputSlot]
		for _, s := range stores {
			for unit := range int64(2) {
				at := unit*programtest.OutputBytes/2 + s.Offset
				end := at + int64(s.Value.Type.Lanes*s.Value.Type.Elem.Size())
				lane, same := programtest.SameLanes(s.Value.Type.Elem, got[at:end], want[at:end])
				if same {
					continue
				}
				if wrong++; wrong <= mostErrors {
					t.Errorf("program %d unit %d %s:%s lane %d: cuda %x, interpreter %x", seed, unit, s.Value, s.Value.Type, lane, got[at:end], want[at:end])
				}
			}
		}
	}
	if wrong > mostErrors {
		t.Errorf("%d values differ", wrong)
	}
}

// expanded are programs in the instructions that the device has.
func expanded(d *Device, programs ...*program.Program) []*program.Program {
	out := make([]*program.Program, len(programs))
	for i, p := range programs {
		out[i] = opt.Expand(p, d.Target())
	}
	return out
}

// Every elementwise op on every dtype gives what ir.EvalScalar gives.
func TestElementwiseAgainstEvalScalar(t *testing.T) {
	d := rendered(t)
	cases := programtest.Cases()
	var programs []*program.Program
	for i := range cases {
		programs = append(programs, cases[i].Program)
	}
	compiled := load(t, d, expanded(d, programs...)...)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range cases {
		if err := checkOnDevice(t, d, compiled[i], &cases[i], r); err != nil {
			t.Error(err)
		}
	}
}

func checkOnDevice(t *testing.T, d *Device, exec runtime.Executable, c *programtest.Case, r *rand.Rand) error {
	ctx := t.Context()
	call := runtime.Call{Exec: exec, Slots: make(map[int]runtime.View)}
	for i := range len(c.Args) + 1 {
		m, err := d.Alloc(ctx, programtest.Lanes*8)
		check(t, err)
		defer m.Free()
		call.Slots[i] = runtime.View{Memory: m}
	}
	recorded, err := d.Record(ctx, []runtime.Launch{{Calls: []runtime.Call{call}}})
	check(t, err)
	defer recorded.Free()
	return c.Check(r, 40, func(buffers [][]byte) error {
		for i, b := range buffers {
			if err := call.Slots[i].Memory.Write(ctx, 0, b); err != nil {
				return err
			}
		}
		if err := recorded.Run(ctx, nil); err != nil {
			return err
		}
		last := len(buffers) - 1
		return call.Slots[last].Memory.Read(ctx, 0, buffers[last])
	})
}
