package heuristic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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
	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/cpu/native"
	"tgc/target"
)

// weightBytes is what a benchmark's kernels read in all: far more than caches
// hold.
const weightBytes = 400 << 20

// rig is a kernel loaded on a device, with as many copies of its weight as make
// the caches forget the first one.
type rig struct {
	b     *testing.B
	dev   *cpu.Device
	prog  *program.Program
	sink  *ir.UOp
	plan  plan.Plan
	why   string
	exec  runtime.Executable
	free  []runtime.Memory
	calls []runtime.Call
}

// newRig plans a kernel (PLAN overrides the plan) and binds it. slot is the
// weight's, -1 for none.
func newRig(b *testing.B, threads int, build func(b *builder) *ir.UOp, slot int) *rig {
	b.Helper()
	ctx := context.Background()
	dev, err := cpu.New(ctx, cpu.Options{Threads: threads, NoCache: true})
	if err != nil {
		b.Skip(err)
	}
	kb := newBuilder()
	r := &rig{b: b, dev: dev, sink: build(kb)}
	b.Cleanup(r.close)
	choice, err := heuristic.Choose(kb.Arena, r.sink, dev.Target(), heuristic.Knobs{})
	if err != nil {
		b.Fatal(err)
	}
	r.plan, r.why = choice.Plan, choice.Why
	if text := os.Getenv("PLAN"); text != "" {
		if r.plan, err = plan.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
	r.load(kb.Arena, dev.Target())
	r.bind(slot)
	b.Logf("%s\nplan: %s", r.why, r.plan)
	return r
}

func (r *rig) load(a *ir.Arena, desc *target.Desc) {
	p, err := kernel.Lower(a, r.sink, r.plan, desc)
	if err != nil {
		r.b.Fatalf("%s: %v", r.plan, err)
	}
	r.prog = opt.Expand(p, desc)
	list, err := r.dev.Load(context.Background(), []*program.Program{r.prog})
	if err != nil {
		r.b.Fatal(err)
	}
	r.exec = list[0]
	if path := os.Getenv("TGC_DUMP"); path != "" {
		if err := os.WriteFile(path, []byte(r.exec.Source()), 0o600); err != nil {
			r.b.Fatal(err)
		}
	}
}

func (r *rig) bind(weight int) {
	slots := make(map[int]runtime.View)
	copies := 1
	for _, p := range r.prog.Params {
		if p.Kind != program.ParamBuffer {
			continue
		}
		if p.Slot == weight {
			copies = int(max(weightBytes/p.Bytes, 1))
			continue
		}
		slots[p.Slot] = r.alloc(p, 1)
	}
	for range copies {
		call := runtime.Call{Exec: r.exec, Slots: make(map[int]runtime.View)}
		for k, v := range slots {
			call.Slots[k] = v
		}
		for _, p := range r.prog.Params {
			if p.Kind == program.ParamBuffer && p.Slot == weight {
				call.Slots[p.Slot] = r.alloc(p, 2)
			}
		}
		r.calls = append(r.calls, call)
	}
}

// alloc makes the memory of a parameter with valid contents.
func (r *rig) alloc(p program.Param, seed uint64) runtime.View {
	m, err := r.dev.Alloc(context.Background(), p.Bytes)
	if err != nil {
		r.b.Fatal(err)
	}
	r.free = append(r.free, m)
	rng := rand.New(rand.NewPCG(seed, 1))
	sample := ir.EncodeTable(ir.F32, []float64{0.5, -0.25, 1.5, -1, 0.125, 2, -0.75, 1})
	for _, u := range ir.Toposort(r.sink) {
		if u.Op != ir.OpParam || u.Arg.(ir.ParamArg).Slot != p.Slot {
			continue
		}
		if f, ok := packed.Lookup(u.Arg.(ir.ParamArg).Format); ok {
			sample = string(packed.RandomBlocks(f, 512, rng))
		} else if u.DType != ir.F32 {
			sample = ir.EncodeTable(u.DType, []float64{0, 1, 2, 3})
		}
	}
	host := m.Host()
	for i := 0; i < len(host); i += len(sample) {
		copy(host[i:], sample)
	}
	return runtime.View{Memory: m}
}

// run replays all copies b.N times and reports bytes and operations per second of
// the call at the 5% quantile.
func (r *rig) run(bytes, flops int64, vars map[string]int64) {
	ctx := context.Background()
	launches := make([]runtime.Launch, len(r.calls))
	for i, c := range r.calls {
		launches[i].Calls = []runtime.Call{c}
	}
	rec, err := r.dev.Record(ctx, launches)
	if err != nil {
		r.b.Fatal(err)
	}
	defer rec.Free()
	if err := rec.Run(ctx, vars); err != nil {
		r.b.Fatal(err)
	}
	var times []time.Duration
	for r.b.Loop() {
		list, err := rec.Profile(ctx, vars)
		if err != nil {
			r.b.Fatal(err)
		}
		times = append(times, list...)
	}
	slices.Sort(times)
	// Other processes share the machine: a low quantile of calls that each take
	// well under a time slice says what the kernel does when it is alone.
	seconds := times[len(times)/20].Seconds()
	r.b.ReportMetric(seconds*1e6, "us/kernel")
	r.b.ReportMetric(times[len(times)/2].Seconds()*1e6, "us-median")
	if bytes > 0 {
		r.b.ReportMetric(float64(bytes)/seconds/1e9, "GB/s")
	}
	if flops > 0 {
		r.b.ReportMetric(float64(flops)/seconds/1e9, "GFLOP/s")
	}
	r.b.ReportMetric(0, "ns/op")
}

func (r *rig) close() {
	for _, m := range r.free {
		m.Free()
	}
	r.dev.Close()
}

// matrixBytes is the packed size of a matrix.
func matrixBytes(format string, rows, k int64) int64 {
	f, _ := packed.Lookup(format)
	if f.IsPlain() {
		return rows * k * int64(f.Plain.Size())
	}
	n, err := f.RowBytes(rows * k)
	if err != nil {
		panic(err)
	}
	return n
}

func BenchmarkMatvec(b *testing.B) {
	for _, format := range []string{"Q6_K", "Q4_K", "Q8_0", "F16"} {
		for _, s := range []struct {
			name    string
			rows, k int64
		}{{"2048x2048", 2048, 2048}, {"16384x2048", 16384, 2048}, {"2048x8192", 2048, 8192}} {
			b.Run(format+"/"+s.name, func(b *testing.B) {
				r := newRig(b, 1, func(kb *builder) *ir.UOp { return kb.matvec(format, s.rows, s.k, variant{norm: true, spread: true}) }, 1)
				r.run(matrixBytes(format, s.rows, s.k), 2*s.rows*s.k, nil)
			})
		}
	}
}

func BenchmarkMatmul(b *testing.B) {
	for _, format := range []string{"Q6_K", "Q4_K", "Q8_0", "Q4_0", "IQ4_XS", "F16", "F32"} {
		for _, tokens := range []int64{2, 3, 4, 8, 32, 128} {
			b.Run(fmt.Sprintf("T%d/%s", tokens, format), func(b *testing.B) {
				r := newRig(b, 1, func(kb *builder) *ir.UOp { return kb.matmul(format, tokens, 512, 2048, variant{spread: true}) }, 1)
				r.calls = r.calls[:min(len(r.calls), 8)]
				r.run(matrixBytes(format, 512, 2048), 2*tokens*512*2048, nil)
			})
		}
	}
}

// BenchmarkDense multiplies square matrices of f32, each of which lies as it is
// (N) or transposed (T), on one thread. Of large ones it makes the first columns
// only, so that a call is shorter than a time slice.
func BenchmarkDense(b *testing.B) {
	for _, layout := range []string{"NN", "NT", "TN"} {
		for _, n := range []int64{512, 1024, 2048, 4096} {
			columns := min(n, max(1<<29/(n*n), 32))
			b.Run(fmt.Sprintf("%s/%d", layout, n), func(b *testing.B) {
				r := newRig(b, 1, func(kb *builder) *ir.UOp { return kb.dense(layout, n, n, n, columns) }, -1)
				r.run(0, 2*n*n*columns, nil)
				peak, err := native.MeasureFMA(context.Background(), 1)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(peak, "peak-GFLOP/s")
			})
		}
	}
}

// BenchmarkStreams are kernels whose time is that of memory, on one thread: 8 MB a
// call, in turn out of all that the caches forget.
func BenchmarkStreams(b *testing.B) {
	const rows, columns = 512, 4096
	for _, row := range []struct {
		name  string
		build func(kb *builder) *ir.UOp
		bytes int64
	}{
		{"sums of rows", func(kb *builder) *ir.UOp { return kb.rowSums(rows, columns) }, 4 * rows * columns},
		{"sums of columns", func(kb *builder) *ir.UOp { return kb.columnSums(rows, columns) }, 4 * rows * columns},
		{"largest of rows", func(kb *builder) *ir.UOp { return kb.rowMaxima(rows, columns) }, 4 * rows * columns},
	} {
		b.Run(row.name, func(b *testing.B) {
			newRig(b, 1, row.build, 0).run(row.bytes, 0, nil)
			read, err := native.MeasureRead(context.Background(), 1)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(read, "read-GB/s")
		})
	}
}

// BenchmarkGate has two matrices in one kernel, and a folded norm.
func BenchmarkGate(b *testing.B) {
	for _, tokens := range []int64{1, 8, 128} {
		b.Run(fmt.Sprintf("T%d", tokens), func(b *testing.B) {
			r := newRig(b, 1, func(kb *builder) *ir.UOp {
				if tokens == 1 {
					return kb.matvec("Q6_K", 2048, 2048, variant{gate: true, norm: true, spread: true})
				}
				return kb.matmul("Q6_K", tokens, 2048, 2048, variant{gate: true, spread: true})
			}, 1)
			r.calls = r.calls[:min(len(r.calls), 16)]
			r.run(2*matrixBytes("Q6_K", 2048, 2048), 4*tokens*2048*2048, nil)
		})
	}
}

func BenchmarkAttention(b *testing.B) {
	for _, pos := range []int64{127, 4095} {
		b.Run(map[int64]string{127: "128", 4095: "4096"}[pos], func(b *testing.B) {
			r := newRig(b, 1, func(kb *builder) *ir.UOp { return kb.attention(8, 4, 4096, 64, 0) }, -1)
			r.run(8*(pos+1)*64*4*2, 32*(pos+1)*64*4, map[string]int64{"pos": pos})
		})
	}
}
