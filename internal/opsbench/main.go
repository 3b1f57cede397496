// Command opsbench times single operations of the library, compiled by tensor.Compile,
// beside what bytes and operations allow:
//
//	opsbench -device cpu -threads 1 softmax sort > ops.txt
//	opsbench -device cuda -json > ops.jsonl
//	opsbench -device cuda -check
//	opsbench -target ptx:sm_90 cumsum
//
// The last two time nothing: one compares results with the interpreter's; the other needs no
// device, and prints work units, threads, accesses of a thread and plan of each kernel.
//
// Arguments are texts of which an operation's name must hold one (table.go has them all).
// The bound of an operation is the longer of its inputs and results moved once at the
// device's bandwidth and its additions and products at its rate for f32; what a cache holds
// is faster. Where a device can chain launches, the time is that of the kernels on the
// device, end to end; elsewhere that of the fastest of many runs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/devices"
	"tgc/target"
	"tgc/tensor"
)

func main() {
	device := flag.String("device", "cpu", "device")
	threads := flag.Int("threads", 1, "workers of a CPU")
	bandwidth := flag.Float64("bandwidth", 0, "GB/s of the bound (default: the device's row in main.go)")
	rate := flag.Float64("rate", 0, "billions of f32 operations a second of the bound, of one worker (likewise)")
	above := flag.Float64("above", 0, "print those above this many times their bound")
	lines := flag.Bool("json", false, "print lines of JSON")
	why := flag.Bool("why", false, "print the kernels with their times and plans too")
	checked := flag.Bool("check", false, "compare results with the interpreter's instead: of the operations named, or of all at tiny sizes")
	targetName := flag.String("target", "", "print what plans for this target do at once, without a device")
	flag.Parse()
	ctx := context.Background()
	if *targetName != "" {
		if err := printAllPlans(ctx, os.Stdout, *targetName, named(flag.Args()), *why); err != nil {
			log.Fatalf("opsbench: %v", err)
		}
		return
	}
	dev, _, err := devices.Open(ctx, *device, devices.Options{Threads: *threads})
	if err != nil {
		log.Fatalf("opsbench: %v", err)
	}
	defer dev.Close()
	config, err := engine.ReadConfig()
	if err != nil {
		log.Fatalf("opsbench: %v", err)
	}
	if *checked {
		list := named(flag.Args())
		if flag.NArg() == 0 {
			list = tiny()
		}
		differ, err := checkAll(ctx, os.Stdout, dev, config, list)
		if err == nil && differ > 0 {
			err = fmt.Errorf("%d operations differ", differ)
		}
		if err != nil {
			log.Fatalf("opsbench: %v", err)
		}
		return
	}
	b := &bench{dev: dev, config: config, limit: limitsOf(dev.Target(), *threads, *bandwidth, *rate)}
	failed := 0
	for _, o := range named(flag.Args()) {
		r, err := b.measure(ctx, o, moment)
		switch {
		case err != nil:
			failed++
			log.Printf("%s: %v", o, err)
		case r.Ratio < *above:
		case *lines:
			err = json.NewEncoder(os.Stdout).Encode(r)
		default:
			err = r.print(os.Stdout, *why)
		}
		if err != nil && r != nil {
			log.Fatalf("opsbench: %v", err)
		}
	}
	if failed > 0 {
		log.Fatalf("opsbench: %d operations failed", failed)
	}
}

// limits are what a device can do.
type limits struct {
	bandwidth float64 // GB/s
	rate      float64 // billions of f32 operations a second, two in a multiply-add
}

// Measured rates: of one core of a Zen 5 server, `tgc bench --micro`; of an H200 (the
// rate is NVIDIA's figure without matrix instructions).
var (
	coreLimits = limits{40, 263}
	gpuLimits  = limits{4510, 66900}
)

func limitsOf(desc *target.Desc, threads int, bandwidth, rate float64) limits {
	l := coreLimits
	if desc.Kind == target.GPU {
		l, threads = gpuLimits, 1
	}
	if bandwidth > 0 {
		l.bandwidth = bandwidth
	}
	if rate > 0 {
		l.rate = rate
	}
	l.rate *= float64(max(threads, 1))
	return l
}

// bound is the time in microseconds below which no program can be.
func (l limits) bound(bytes, operations float64) float64 {
	return max(bytes/l.bandwidth, operations/l.rate) / 1e3
}

type bench struct {
	dev    *devices.Device
	limit  limits
	config engine.Config // of the variables TGC_*
}

// result is a line of the output.
type result struct {
	Name       string    `json:"name"`
	Time       float64   `json:"us"`
	Bound      float64   `json:"bound_us"`
	Ratio      float64   `json:"ratio"`
	Bytes      float64   `json:"bytes"`
	Operations float64   `json:"operations"`
	Kernels    []string  `json:"kernels"` // one for each launch
	Plans      []string  `json:"plans"`
	Each       []float64 `json:"each_us"` // kernel, alone
	Compile    float64   `json:"compile_ms"`
}

func (r *result) print(w io.Writer, why bool) error {
	_, err := fmt.Fprintf(w, "%-72s %9.0f us  bound %7.0f  x %5.1f  %2d kernels, compile %.0f ms\n", r.Name, r.Time, r.Bound, r.Ratio, len(r.Kernels), r.Compile)
	for i := range r.Kernels {
		if why && err == nil {
			_, err = fmt.Fprintf(w, "    %7.0f us  %s: %s\n", r.Each[i], r.Kernels[i], r.Plans[i])
		}
	}
	return err
}

// moment is how long an operation is repeated for.
const moment = 250 * time.Millisecond

// measure compiles an operation, fills its inputs and times it.
func (b *bench) measure(ctx context.Context, o operation, enough time.Duration) (*result, error) {
	g := tensor.NewGraph()
	start := time.Now()
	g.Output("out", o.build(g, o.size))
	f, err := tensor.Compile(ctx, g, b.dev, b.config)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &result{Name: o.String(), Compile: time.Since(start).Seconds() * 1e3}
	for _, launch := range f.Step().Compiled.Launches {
		for _, call := range launch {
			r.Kernels = append(r.Kernels, call.Kernel.Name)
			r.Plans = append(r.Plans, fmt.Sprintf("%s [%v]", call.Kernel.Why, call.Kernel.Plan))
		}
	}
	for _, info := range f.Buffers() {
		bytes, err := fill(ctx, f, info, o.indices())
		if err != nil {
			return nil, err
		}
		r.Bytes += float64(bytes)
	}
	if o.operations != nil {
		r.Operations = o.operations(o.size)
	}
	if r.Time, err = fastest(ctx, f.Step(), enough); err != nil {
		return nil, err
	}
	if r.Each, err = each(ctx, f.Step()); err != nil {
		return nil, err
	}
	r.Bound = b.limit.bound(r.Bytes, r.Operations)
	r.Ratio = r.Time / r.Bound
	return r, nil
}

// fill sets an input to random numbers of a fixed seed, integers below a bound, and returns
// a buffer's size.
func fill(ctx context.Context, f *tensor.Function, info tensor.BufferInfo, indices int) (bytes int, err error) {
	raw, err := f.Read(ctx, info.Name)
	if err != nil || info.Output {
		return len(raw), err
	}
	random := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE([]byte(info.Name))), uint64(len(raw))))
	values := make([]float64, len(raw)/info.DType.Size())
	for i := range values {
		if values[i] = ir.RoundFloat(ir.F32, random.Float64()-0.5); !info.DType.IsFloat() {
			values[i] = float64(random.IntN(min(indices, 1<<min(8*info.DType.Size()-1, 30))))
		}
	}
	return len(raw), f.Write(ctx, info.Name, []byte(ir.EncodeTable(info.DType, values)))
}

// Runs of a step: at least leastRuns, at most mostRuns; in a chain, chained times.
const (
	leastRuns = 8
	mostRuns  = 400
	chained   = 20
)

// fastest is the time of a step in microseconds.
func fastest(ctx context.Context, step *engine.Step, enough time.Duration) (float64, error) {
	if err := step.Run(ctx, nil); err != nil {
		return 0, err
	}
	best := time.Duration(1 << 62)
	begin := time.Now()
	for i := 0; i < leastRuns || i < mostRuns && time.Since(begin) < enough; i++ {
		took, err := step.RunChain(ctx, nil, chained)
		if errors.Is(err, errors.ErrUnsupported) {
			start := time.Now()
			err = step.Run(ctx, nil)
			took = time.Since(start)
		}
		if err != nil {
			return 0, err
		}
		best = min(best, took)
	}
	return best.Seconds() * 1e6, nil
}

// each is the time of every launch in microseconds, the least of a few.
func each(ctx context.Context, step *engine.Step) (times []float64, err error) {
	for range leastRuns {
		took, err := step.Profile(ctx, nil)
		if err != nil {
			return nil, err
		}
		for i := range took {
			if us := took[i].Seconds() * 1e6; i == len(times) {
				times = append(times, us)
			} else {
				times[i] = min(times[i], us)
			}
		}
	}
	return times, nil
}
