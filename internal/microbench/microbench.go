// Package microbench measures what a device does with plain kernels that the
// compiler makes of small graphs: matrix products, elementwise chains, sums,
// copies and launches. No kernel here is written by hand.
//
// Every time is that of one run of a captured step. Best is the fastest of all
// runs, which other processes on the machine disturb least; the machine's own
// rates are taken beside each figure, before and after, and the better counts.
package microbench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// Options say what to measure.
type Options struct {
	Sizes   []int // of square matrix products
	Elems   int   // of elementwise chains and sums
	Repeats int   // least number of runs of each step, after one to warm up
	Config  engine.Config
	Threads int // for the report
	// ProcessorTime also takes the time that the process computed instead of the
	// clock's: for a CPU device, on a machine where others take turns.
	ProcessorTime bool
	// Peak, Read and Copy measure what the machine can do: GFLOP/s of f32
	// multiply-adds, GB/s read, GB/s read and written. Each may be nil.
	Peak, Read, Copy Rate
}

// Rate measures a rate of the machine.
type Rate func(ctx context.Context) (float64, error)

// DefaultOptions are the sizes that are reported.
func DefaultOptions() Options {
	return Options{Sizes: []int{1024, 2048, 4096}, Elems: 1 << 24, Repeats: 9}
}

// Check reports an option out of range.
func (o *Options) Check() error {
	if o.Repeats < 1 {
		return fmt.Errorf("%d repeats, want at least 1", o.Repeats)
	}
	return nil
}

// Figure is one step's speed.
type Figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`   // GFLOP/s or GB/s
	Best   float64 `json:"best"`   // of all runs
	Median float64 `json:"median"` // likewise
	// Limit is what the machine does of the kind beside it; 0 where unknown.
	Limit    float64 `json:"limit"`
	Fraction float64 `json:"fraction"` // of Limit, of the best run
	// Processor is the best run by processor time on all threads, 0 where it was
	// not asked for: what a run reaches that is never interrupted.
	Processor float64  `json:"processor"`
	Kernels   []string `json:"kernels,omitempty"`
}

// Launch is the time of a step that does almost nothing.
type Launch struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

// Result is one device's figures.
type Result struct {
	Device  string   `json:"device"`
	Threads int      `json:"threads"`
	Figures []Figure `json:"figures"`
	Launch  Launch   `json:"launch"`
}

// Run measures a device.
func Run(ctx context.Context, dev runtime.Device, opt Options) (*Result, error) {
	if err := opt.Check(); err != nil {
		return nil, err
	}
	b := &bench{dev: dev, opt: opt, result: &Result{Device: dev.Name(), Threads: opt.Threads}}
	for _, part := range []func(context.Context) error{b.matmuls, b.streams, b.copies, b.launches} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return b.result, nil
}

type bench struct {
	dev    runtime.Device
	opt    Options
	result *Result
}

// matmuls multiplies square matrices, both of one storage type, into f32.
func (b *bench) matmuls(ctx context.Context) error {
	for _, dtype := range []ir.DType{ir.F32, ir.F16} {
		for _, n := range b.opt.Sizes {
			g := tensor.NewGraph()
			x, y := g.Input("x", dtype, n, n).Cast(ir.F32), g.Input("y", dtype, n, n).Cast(ir.F32)
			g.Output("z", x.MatMul(y))
			work := 2 * float64(n) * float64(n) * float64(n)
			if err := b.figure(ctx, fmt.Sprintf("matmul %s %d", dtype, n), "GFLOP/s", g, work, b.opt.Peak); err != nil {
				return err
			}
		}
	}
	return nil
}

// streams are steps whose time is that of memory.
func (b *bench) streams(ctx context.Context) error {
	n := b.opt.Elems
	bytes := 4 * float64(n)
	for _, row := range []struct {
		name  string
		build func(g *tensor.Graph, x, y *tensor.Tensor) *tensor.Tensor
		moved float64 // bytes, read and written
		limit Rate
	}{
		{"scale", func(_ *tensor.Graph, x, _ *tensor.Tensor) *tensor.Tensor { return x.MulScalar(1.5) }, 2 * bytes, b.opt.Copy},
		{"chain of 4", func(_ *tensor.Graph, x, _ *tensor.Tensor) *tensor.Tensor {
			return x.MulScalar(1.5).AddScalar(1).Maximum(x).Abs()
		}, 2 * bytes, b.opt.Copy},
		{"add two", func(_ *tensor.Graph, x, y *tensor.Tensor) *tensor.Tensor { return x.Add(y) }, 3 * bytes, b.opt.Copy},
		{"silu times", func(_ *tensor.Graph, x, y *tensor.Tensor) *tensor.Tensor { return x.Silu().Mul(y) }, 3 * bytes, b.opt.Copy},
		{"sum of all", func(_ *tensor.Graph, x, _ *tensor.Tensor) *tensor.Tensor { return x.Sum() }, bytes, b.opt.Read},
		{"sums of rows", func(_ *tensor.Graph, x, _ *tensor.Tensor) *tensor.Tensor { return x.Reshape(n/4096, 4096).Sum(1) }, bytes, b.opt.Read},
		{"sums of columns", func(_ *tensor.Graph, x, _ *tensor.Tensor) *tensor.Tensor { return x.Reshape(n/4096, 4096).Sum(0) }, bytes, b.opt.Read},
		{"largest of rows", func(_ *tensor.Graph, x, _ *tensor.Tensor) *tensor.Tensor { return x.Reshape(n/4096, 4096).Max(1) }, bytes, b.opt.Read},
	} {
		g := tensor.NewGraph()
		x, y := g.Input("x", ir.F32, n), g.Input("y", ir.F32, n)
		g.Output("z", row.build(g, x, y))
		if err := b.figure(ctx, row.name, "GB/s", g, row.moved, row.limit); err != nil {
			return err
		}
	}
	return nil
}

// figure compiles a graph, fills its inputs, and times runs of it.
func (b *bench) figure(ctx context.Context, name, unit string, g *tensor.Graph, work float64, limit Rate) error {
	f, err := tensor.Compile(ctx, g, b.dev, b.opt.Config)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	for _, info := range f.Buffers() {
		if err := fill(ctx, f, info); err != nil {
			return err
		}
	}
	before, err := measure(ctx, limit)
	if err != nil {
		return err
	}
	leastProcessor := math.Inf(1)
	seconds, err := timed(ctx, b.opt.Repeats, moreRuns*b.opt.Repeats, moreSeconds, func() error {
		begin := processorSeconds()
		err := f.Run(ctx, nil)
		leastProcessor = min(leastProcessor, processorSeconds()-begin)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, err := measure(ctx, limit)
	if err != nil {
		return err
	}
	r := b.add(name, unit, work, seconds, max(before, after))
	if b.opt.ProcessorTime && leastProcessor > 0 {
		r.Processor = work * float64(max(b.opt.Threads, 1)) / leastProcessor / 1e9
	}
	for _, k := range f.Step().Compiled.Kernels {
		r.Kernels = append(r.Kernels, fmt.Sprintf("%s [%s]", k.Why, k.Plan))
	}
	return nil
}

// add enters the figure of some runs.
func (b *bench) add(name, unit string, work float64, seconds []float64, limit float64) *Figure {
	r := Figure{Name: name, Unit: unit, Limit: limit}
	r.Best = work / slices.Min(seconds) / 1e9
	r.Median = work / quantile(seconds, 0.5) / 1e9
	if limit > 0 {
		r.Fraction = r.Best / limit
	}
	b.result.Figures = append(b.result.Figures, r)
	return &b.result.Figures[len(b.result.Figures)-1]
}

func measure(ctx context.Context, rate Rate) (float64, error) {
	if rate == nil {
		return 0, nil
	}
	return rate(ctx)
}

// fill sets an input to small numbers that repeat after a prime, so that no two
// rows are alike and no result is special.
func fill(ctx context.Context, f *tensor.Function, info tensor.BufferInfo) error {
	if info.Output {
		return nil
	}
	raw, err := f.Read(ctx, info.Name)
	if err != nil {
		return err
	}
	const period = 251
	size := info.DType.Size()
	values := make([]float64, period)
	for i := range values {
		if info.DType.IsFloat() {
			values[i] = ir.RoundFloat(info.DType, float64(i-period/2)/period)
		} else {
			values[i] = float64(i & 0x7f) // an index
		}
	}
	pattern := ir.EncodeTable(info.DType, values)
	for at := 0; at < len(raw); at += period * size {
		copy(raw[at:], pattern)
	}
	return f.Write(ctx, info.Name, raw)
}

// Short steps run up to moreRuns times as often, for so many seconds: on a shared
// machine many short runs find a moment without other processes.
const (
	moreRuns    = 20
	moreSeconds = 1.5
)

// timed returns the seconds of each run after one to warm up: at least repeats, and up
// to most of them for so many seconds.
func timed(ctx context.Context, repeats, most int, enough float64, run func() error) ([]float64, error) {
	seconds := make([]float64, 0, repeats)
	begin := time.Now()
	for i := 0; i <= repeats || i <= most && time.Since(begin).Seconds() < enough; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := run(); err != nil {
			return nil, err
		}
		if i > 0 {
			seconds = append(seconds, time.Since(start).Seconds())
		}
	}
	return seconds, nil
}

// copies moves bytes to the device and back.
func (b *bench) copies(ctx context.Context) error {
	bytes := 4 * b.opt.Elems
	m, err := b.dev.Alloc(ctx, int64(bytes))
	if err != nil {
		return err
	}
	defer m.Free()
	host := lists.Make(bytes, func(i int) byte { return byte(i) })
	for _, row := range []struct {
		name string
		run  func() error
	}{
		{"copy to device", func() error { return m.Write(ctx, 0, host) }},
		{"copy from device", func() error { return m.Read(ctx, 0, host) }},
	} {
		seconds, err := timed(ctx, b.opt.Repeats, moreRuns*b.opt.Repeats, moreSeconds, row.run)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		b.add(row.name, "GB/s", float64(bytes), seconds, 0)
	}
	return nil
}

// launchRuns is how many steps of a single small kernel are timed.
const launchRuns = 2000

func (b *bench) launches(ctx context.Context) error {
	g := tensor.NewGraph()
	g.Output("y", g.State("x", ir.F32, 64).AddScalar(1))
	f, err := tensor.Compile(ctx, g, b.dev, b.opt.Config)
	if err != nil {
		return err
	}
	defer f.Close()
	seconds, err := timed(ctx, launchRuns, launchRuns, moreSeconds, func() error { return f.Run(ctx, nil) })
	if err != nil {
		return err
	}
	b.result.Launch = Launch{P50: 1e6 * quantile(seconds, 0.5), P99: 1e6 * quantile(seconds, 0.99)}
	return nil
}

// quantile of values by nearest rank.
func quantile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(p*float64(len(sorted)))), 1)-1]
}

// Table is the result in rows of text, a header first.
func (r *Result) Table() [][]string {
	rows := [][]string{{"STEP", "BEST", "MEDIAN", "UNIT", "LIMIT", "OF LIMIT", "BY CPU TIME", "KERNELS"}}
	for _, f := range r.Figures {
		limit, fraction := "-", "-"
		if f.Limit > 0 {
			limit, fraction = fmt.Sprintf("%.1f", f.Limit), fmt.Sprintf("%.0f %%", 100*f.Fraction)
		}
		processor := "-"
		if f.Processor > 0 {
			processor = fmt.Sprintf("%.1f", f.Processor)
		}
		rows = append(rows, []string{f.Name, fmt.Sprintf("%.1f", f.Best), fmt.Sprintf("%.1f", f.Median), f.Unit, limit, fraction, processor, strings.Join(f.Kernels, " + ")})
	}
	return append(rows, []string{"launch", fmt.Sprintf("%.1f", r.Launch.P50), fmt.Sprintf("%.1f", r.Launch.P99), "us (p50, p99)", "-", "-", "-", ""})
}
