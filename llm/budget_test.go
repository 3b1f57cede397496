package llm_test

import (
	"testing"

	"tgc/engine"
	"tgc/gguf"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/render/llvm"
	"tgc/runtime/cpu"
	"tgc/schedule"
	"tgc/target"
)

// The compile-time budgets of the design, as benchmarks with allocations:
//
//	go test ./llm -run '^$' -bench Budget -benchmem

// outline opens a full-size model without weights.
func outline(b *testing.B, name string) *llm.Model {
	b.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		b.Fatal(err)
	}
	f, err := synth.Outline(b.Context(), shape)
	if err != nil {
		b.Fatal(err)
	}
	m, err := llm.NewModel(f)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	return m
}

func decodeSink(b *testing.B, m *llm.Model, tokens int) *ir.UOp {
	b.Helper()
	g, err := llm.BuildStep(m.Config, m.File, llm.Variant{Batch: 1, Tokens: tokens, Context: 4096})
	if err != nil {
		b.Fatal(err)
	}
	sink, err := g.Sink()
	if err != nil {
		b.Fatal(err)
	}
	return sink
}

func cpuTarget(b *testing.B) *target.Desc {
	b.Helper()
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		b.Fatal(err)
	}
	return desc
}

// BenchmarkBudgetBuild is Go code to tensor graph.
func BenchmarkBudgetBuild(b *testing.B) {
	m := outline(b, "llama3.2:1b-q6_k")
	b.ReportAllocs()
	for b.Loop() {
		decodeSink(b, m, 1)
	}
}

// BenchmarkBudgetSchedule is graph to kernels for a 16-layer decode step:
// budget 300 ms on one core.
func BenchmarkBudgetSchedule(b *testing.B) {
	sink := decodeSink(b, outline(b, "llama3.2:1b-q6_k"), 1)
	b.ReportAllocs()
	for b.Loop() {
		a := ir.NewArena()
		if _, err := schedule.Run(b.Context(), a, a.Import(sink), schedule.CPUOptions()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBudgetCompile is graph to programs: every pass but LLVM.
func BenchmarkBudgetCompile(b *testing.B) {
	sink, desc := decodeSink(b, outline(b, "llama3.2:1b-q6_k"), 1), cpuTarget(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Compile(b.Context(), sink, desc, engine.Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBudgetKept is the same with a schedule that is kept on disk.
func BenchmarkBudgetKept(b *testing.B) {
	sink, desc := decodeSink(b, outline(b, "llama3.2:1b-q6_k"), 1), cpuTarget(b)
	kept := engine.OpenSchedules(b.TempDir())
	defer kept.Close()
	config := engine.Config{Schedules: kept}
	if _, err := engine.Compile(b.Context(), sink, desc, config); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Compile(b.Context(), sink, desc, config); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBudgetMatvec is code generation of one Q6_K matrix-vector product,
// kernel to LLVM IR text: budget 10 ms.
func BenchmarkBudgetMatvec(b *testing.B) {
	sink, desc := decodeSink(b, outline(b, "llama3.2:1b-q6_k"), 1), cpuTarget(b)
	c, err := engine.Compile(b.Context(), sink, desc, engine.Config{})
	if err != nil {
		b.Fatal(err)
	}
	last := c.Kernels[len(c.Kernels)-1]
	b.ReportAllocs()
	for b.Loop() {
		again, err := engine.LowerKernel(ir.NewArena(), last.AST, desc, engine.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := llvm.Render(again.Program, desc); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBudgetCold is a whole model step compiled to machine code without a
// cache: budget 5 s, then 2 s.
func BenchmarkBudgetCold(b *testing.B) { benchmarkLoad(b, true) }

// BenchmarkBudgetWarm is the same with every object in the cache: budget 0.5 s.
func BenchmarkBudgetWarm(b *testing.B) { benchmarkLoad(b, false) }

func benchmarkLoad(b *testing.B, cold bool) {
	sink := decodeSink(b, outline(b, "llama3.2:1b-q6_k"), 1)
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		dev, err := cpu.New(b.Context(), cpu.Options{CacheDir: dir, NoCache: cold})
		if err != nil {
			b.Skip(err)
		}
		c, err := engine.Compile(b.Context(), sink, dev.Target(), engine.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := engine.Load(b.Context(), dev, c); err != nil {
			b.Fatal(err)
		}
		dev.Close()
	}
}

// BenchmarkBudgetOpen opens and validates a full-size file: budget 50 ms.
func BenchmarkBudgetOpen(b *testing.B) {
	shape, err := synth.Lookup("llama3.2:1b-q6_k")
	if err != nil {
		b.Fatal(err)
	}
	path := b.TempDir() + "/model.gguf"
	if err := synth.Write(b.Context(), shape, path, 1, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := gguf.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
