package gpu_test

import (
	"testing"

	"tgc/internal/cudatools"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
	"tgc/render/ptx"
	"tgc/target"
)

// A loop that the assembler cannot unroll counts with its trips: 1,000 rounds of
// a chain of sines are more than 10,000 instructions.
func TestInspect(t *testing.T) {
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" || tools.NvdisasmPath == "" {
		t.Skip("no ptxas and nvdisasm")
	}
	b := program.NewBuilder("chain")
	out := b.Buffer(0, ir.F32, "out", 4, 4*64*2)
	b.Access(out, false, true)
	b.SetGrid(2)
	b.SetBlock(64)
	unit, body := b.BeginGrid()
	x := b.Float(program.Scalar(ir.F32), 0.5)
	loop := b.BeginFor(b.Index(0), b.Index(1000), b.Index(1))
	y := b.Alu(ir.OpSqrt, b.Add(b.Carry(loop, x), x))
	results := b.EndFor(loop, y)
	at := b.Add(b.Mul(unit, b.Index(64)), b.Cast(b.ThreadIndex(0), ir.I64))
	b.Store(b.PtrAdd(out, at), results[0], 4)
	b.EndGrid(body)
	p := b.Finish()
	desc, err := target.ForGPU(90, false)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ptx.Render(p, desc, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpu.Inspect(t.Context(), tools, gpu.Architecture(desc), p, k.Text)
	if err != nil {
		t.Fatal(err)
	}
	if m.Threads != 128 || m.Registers == 0 || m.Spilled != 0 || m.Executed < 10_000 || m.Executed > 100_000 {
		t.Errorf("%+v", m)
	}
}

// The loop that PTX has around a wait for the grid is none of the program's.
func TestInspectWaits(t *testing.T) {
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" || tools.NvdisasmPath == "" {
		t.Skip("no ptxas and nvdisasm")
	}
	b := program.NewBuilder("waits")
	in, out := b.Buffer(0, ir.F32, "in", 4, 4*64), b.Buffer(1, ir.F32, "out", 4, 4*64)
	b.Access(in, true, false)
	b.Access(out, false, true)
	b.SetGrid(1)
	b.SetBlock(64)
	_, body := b.BeginGrid()
	b.Block().Instrs = append(b.Block().Instrs, program.Instr{Op: program.WaitGrid})
	at := b.Cast(b.ThreadIndex(0), ir.I64)
	x := b.Load(b.PtrAdd(in, at), 1, 4)
	b.Store(b.PtrAdd(out, at), b.Alu(ir.OpSqrt, x), 4)
	b.EndGrid(body)
	p := b.Finish()
	desc, err := target.ForGPU(90, false)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ptx.Render(p, desc, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpu.Inspect(t.Context(), tools, gpu.Architecture(desc), p, k.Text)
	if err != nil {
		t.Fatal(err)
	}
	if m.Executed < 10 || m.Executed > 200 {
		t.Errorf("%d instructions, want those of a load, a root and a store", m.Executed)
	}
}
