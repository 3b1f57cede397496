package hcq_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/runtime"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/hcq"
	"tgc/runtime/hcq/emu"
	"tgc/runtime/hcq/tegra"
	"tgc/runtime/nvidia"
)

// rig is a device on an emulated machine.
type rig struct {
	*hcq.Device
	machine *emu.Machine
}

func open(t testing.TB, assembler string) *rig {
	t.Helper()
	machine := emu.New(emu.Options{Seed: 1})
	board, err := tegra.Open(machine, tegra.Options{})
	check(t, err)
	d, err := hcq.New(board, hcq.Options{Name: "tegra:emu", Assembler: assembler, NoCache: true, Loaded: machine.Know})
	check(t, err)
	t.Cleanup(func() {
		check(t, d.Close())
		if live := machine.Live(); live != "" {
			t.Errorf("left over: %s", live)
		}
		for _, f := range machine.Findings() {
			t.Errorf("found: %s", f)
		}
	})
	return &rig{d, machine}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a program on a device over copies of buffers, by slot, and returns their
// contents afterwards.
func run(t testing.TB, d runtime.Device, p *program.Program, buffers map[int][]byte, vars map[string]int64) map[int][]byte {
	t.Helper()
	exec, err := d.Load(t.Context(), []*program.Program{opt.Expand(p, d.Target())})
	check(t, err)
	call := runtime.Call{Exec: exec[0], Slots: make(map[int]runtime.View)}
	for slot, b := range buffers {
		m, err := d.Alloc(t.Context(), int64(len(b)))
		check(t, err)
		defer m.Free()
		check(t, m.Write(t.Context(), 0, b))
		call.Slots[slot] = runtime.View{Memory: m}
	}
	r, err := d.Record(t.Context(), []runtime.Launch{{Calls: []runtime.Call{call}}})
	check(t, err)
	defer r.Free()
	check(t, r.Run(t.Context(), vars))
	out := make(map[int][]byte)
	for slot, b := range buffers {
		out[slot] = make([]byte, len(b))
		check(t, call.Slots[slot].Memory.Read(t.Context(), 0, out[slot]))
	}
	return out
}

// Random programs give the bits of the emulated GPU under the driver, whoever assembles them.
func TestProgramsEqualCUDA(t *testing.T) {
	for _, assembler := range []string{"ptxas", "nvjitlink"} {
		t.Run(assembler, func(t *testing.T) { programsEqualCUDA(t, assembler) })
	}
}

func programsEqualCUDA(t *testing.T, assembler string) {
	if _, err := nvidia.FindAssembler(assembler, os.Getenv("TGC_CUDA_PATH"), "sm_87"); err != nil {
		t.Skip(err)
	}
	d := open(t, assembler)
	drv, err := emulator.New(emulator.Options{SM: 87})
	check(t, err)
	reference, err := cuda.New(cuda.Options{Driver: drv, NoCache: true})
	check(t, err)
	t.Cleanup(func() { check(t, reference.Close()) })
	for seed := range uint64(8) {
		p, _ := programtest.Generate(seed, 20)
		random := rand.New(rand.NewPCG(seed, 6))
		buffers, vars := programtest.Inputs(random), map[string]int64{"n": random.Int64N(5)}
		got, want := run(t, d, p, buffers, vars), run(t, reference, p, buffers, vars)
		for slot := range buffers {
			if !bytes.Equal(got[slot], want[slot]) {
				t.Errorf("program %d: slot %d differs", seed, slot)
			}
		}
	}
}
