package engine_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/packed"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/target"
)

// Kernels given as text, planned, lowered and run, write what the evaluator of
// kernel form writes: on a CPU's plan and on a GPU's, at every value of their
// variables.
func TestReferenceKernelsLower(t *testing.T) {
	files, err := filepath.Glob("../schedule/testdata/reference/*.uop")
	if err != nil || len(files) == 0 {
		t.Fatalf("no reference kernels: %v", err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sink, err := ir.Parse(ir.NewArena(), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"llvm:x86-64-v4", "interp"} {
			t.Run(filepath.Base(path)+" "+name, func(t *testing.T) {
				desc, err := target.Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, value := range []int64{0, 1, 5, 14} {
					runReference(t, sink, desc, value)
				}
			})
		}
	}
}

// runReference compares one kernel at one value of all its variables.
func runReference(t *testing.T, sink *ir.UOp, desc *target.Desc, value int64) {
	t.Helper()
	ctx := t.Context()
	vars := make(map[string]int64)
	for _, u := range ir.Toposort(sink) {
		if v, ok := u.Arg.(ir.VarArg); ok {
			vars[v.Name] = min(max(value, v.Lo), v.Hi)
		}
	}
	compiled, err := engine.Compile(ctx, sink, desc, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	dev := interp.New(interp.Options{Debug: true, Target: desc})
	r := rand.New(rand.NewPCG(uint64(value), 3))
	memory := make(map[int64]runtime.Memory)
	args := make([]*interp.KernelBuffer, len(compiled.Schedule.Buffers))
	for i, b := range compiled.Schedule.Buffers {
		args[i] = &interp.KernelBuffer{DType: b.DType, Format: b.Format}
		elements := 1
		for _, dim := range b.Shape {
			n, _ := dim.Int()
			elements *= int(n)
		}
		args[i].Bytes = referenceBytes(t, b.DType, b.Format, elements, r)
		if b.Format == "" {
			for k := range elements {
				args[i].Data = append(args[i].Data, ir.DecodeTable(b.DType, string(args[i].Bytes), k))
			}
		}
		m, err := dev.Alloc(ctx, int64(len(args[i].Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(ctx, 0, args[i].Bytes); err != nil {
			t.Fatal(err)
		}
		memory[b.UserID] = m
	}
	step, err := engine.Capture(ctx, dev, compiled, memory)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Free()
	if err := step.Run(ctx, vars); err != nil {
		t.Fatal(err)
	}
	if _, err := interp.EvalKernel(ctx, sink, args, vars, interp.KernelOptions{Float64: true}); err != nil {
		t.Fatal(err)
	}
	for i, b := range compiled.Schedule.Buffers {
		if b.Format != "" || b.DType != ir.F32 {
			continue
		}
		raw := make([]byte, len(args[i].Bytes))
		if err := memory[b.UserID].Read(ctx, 0, raw); err != nil {
			t.Fatal(err)
		}
		compareReference(t, fmt.Sprintf("variables %d, slot %d", value, b.UserID), raw, args[i].Data)
	}
}

// referenceBytes fills a buffer: weights in their format, small positions,
// moderate floats.
func referenceBytes(t *testing.T, dtype ir.DType, format string, elements int, r *rand.Rand) []byte {
	t.Helper()
	if f, ok := packed.Lookup(format); ok {
		return packed.RandomBlocks(f, elements/f.BlockElems, r)
	}
	var out []byte
	for range elements {
		switch dtype {
		case ir.F32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(r.NormFloat64())))
		case ir.I32:
			out = binary.LittleEndian.AppendUint32(out, uint32(r.IntN(4)))
		default:
			t.Fatalf("no contents for %s", dtype)
		}
	}
	return out
}

func compareReference(t *testing.T, what string, raw []byte, want []ir.Scalar) {
	t.Helper()
	largest := 1e-30
	for _, w := range want {
		if !math.IsInf(w.F, 0) && w.F > -1e38 {
			largest = max(largest, math.Abs(w.F))
		}
	}
	for k, w := range want {
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:])))
		if d := math.Abs(got - w.F); !(d <= 1e-5*max(largest, math.Abs(w.F))) {
			t.Fatalf("%s: element %d is %v, want %v", what, k, got, w.F)
		}
	}
}
