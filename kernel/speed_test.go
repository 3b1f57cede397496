package kernel_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"tgc/heuristic"
	_ "tgc/internal/rarecollection"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
	tgcruntime "tgc/runtime"
	"tgc/runtime/cpu"
)

// device is a CPU of one worker, or skips where libLLVM is absent.
func device(t testing.TB) *cpu.Device {
	t.Helper()
	d, err := cpu.New(context.Background(), cpu.Options{Threads: 1, NoCache: true})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// bestTime runs a program on memory of its parameters' sizes and returns the
// shortest of a few runs. fill prepares a slot's bytes.
func bestTime(t testing.TB, d *cpu.Device, p *program.Program, fill func(slot int, b []byte)) time.Duration {
	t.Helper()
	ctx := context.Background()
	exec, err := d.Load(ctx, []*program.Program{opt.Expand(p, d.Target())})
	if err != nil {
		t.Fatal(err)
	}
	if dump := os.Getenv("TGC_DUMP"); dump != "" {
		os.WriteFile(dump, []byte(exec[0].Source()), 0o644)
	}
	slots := make(map[int]tgcruntime.View)
	vars := make(map[string]int64)
	for _, param := range p.Params {
		switch param.Kind {
		case program.ParamBuffer:
			m, err := d.Alloc(ctx, param.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Free()
			fill(param.Slot, m.Host())
			slots[param.Slot] = tgcruntime.View{Memory: m}
		case program.ParamVar:
			vars[param.Name] = 100
		}
	}
	rec, err := d.Record(ctx, []tgcruntime.Launch{{Calls: []tgcruntime.Call{{Exec: exec[0], Slots: slots}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Free()
	best := time.Duration(1 << 62)
	for range 7 {
		start := time.Now()
		if err := rec.Run(ctx, vars); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return best
}

// TestMatvecSpeed prints packed GB/s of single matvecs (TGC_SPEED=1) with the
// heuristic's plan, or that of PLAN.
func TestMatvecSpeed(t *testing.T) {
	if os.Getenv("TGC_SPEED") == "" {
		t.Skip("set TGC_SPEED to measure")
	}
	d := device(t)
	for _, c := range []struct {
		format  string
		rows, k int64
	}{
		{"Q6_K", 65536, 2048}, {"Q6_K", 16384, 8192}, {"Q8_0", 65536, 2048}, {"Q4_K", 65536, 2048}, {"Q5_K", 65536, 2048}, {"Q3_K", 65536, 2048},
		{"Q2_K", 65536, 2048}, {"Q4_0", 65536, 2048}, {"Q4_1", 65536, 2048}, {"Q5_0", 65536, 2048}, {"IQ4_NL", 65536, 2048}, {"IQ4_XS", 65536, 2048},
	} {
		if only := os.Getenv("FORMAT"); only != "" && only != c.format {
			continue
		}
		b := newBuilder()
		sink := packedMatvec(b, c.format, c.rows, c.k, true)
		choice, err := heuristic.Choose(b.Arena, sink, d.Target(), heuristic.Knobs{})
		if err != nil {
			t.Fatal(err)
		}
		chosen := choice.Plan
		if env := os.Getenv("PLAN"); env != "" {
			if chosen, err = plan.Parse(env); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		p, err := kernel.Lower(b.Arena, sink, chosen, d.Target())
		if err != nil {
			t.Fatal(err)
		}
		lowered := time.Since(start)
		f, _ := packed.Lookup(c.format)
		sample := packed.RandomBlocks(f, 1024, rand.New(rand.NewPCG(1, 2)))
		best := bestTime(t, d, p, func(slot int, b []byte) {
			if slot == 2 {
				for i := 0; i < len(b); i += len(sample) {
					copy(b[i:], sample)
				}
				return
			}
			one := ir.EncodeTable(ir.F32, []float64{0.5})
			for i := 0; i+4 <= len(b); i += 4 {
				copy(b[i:], one)
			}
		})
		bytes := c.rows * c.k / int64(f.BlockElems) * int64(f.BlockBytes)
		t.Logf("%s %s: %.1f GB/s, lowering %v", c.format, chosen, float64(bytes)/best.Seconds()/1e9, lowered)
	}
}

// TestMatmulSpeed prints f32 GFLOP/s of a prefill product (TGC_SPEED=1).
func TestMatmulSpeed(t *testing.T) {
	if os.Getenv("TGC_SPEED") == "" {
		t.Skip("set TGC_SPEED to measure")
	}
	d := device(t)
	text := "UPCAST s0 4; ROLL s0; UPCAST s1 4; VECTOR r0 16; STAGE s1; FMA"
	if env := os.Getenv("PLAN"); env != "" {
		text = env
	}
	plan, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	const tokens, rows, k = 128, 2048, 2048
	b := newBuilder()
	p, err := kernel.Lower(b.Arena, packedMatmul(b, "Q6_K", tokens, rows, k), plan, avx512)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := packed.Lookup("Q6_K")
	sample := packed.RandomBlocks(f, 1024, rand.New(rand.NewPCG(1, 2)))
	best := bestTime(t, d, p, func(slot int, b []byte) {
		if slot == 2 {
			for i := 0; i < len(b); i += len(sample) {
				copy(b[i:], sample)
			}
			return
		}
		one := ir.EncodeTable(ir.F32, []float64{0.5})
		for i := 0; i+4 <= len(b); i += 4 {
			copy(b[i:], one)
		}
	})
	t.Logf("Q6_K %s: %.1f GFLOP/s", plan, 2*tokens*rows*k/best.Seconds()/1e9)
}
