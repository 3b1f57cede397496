package bench

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"tgc/engine"
	"tgc/internal/lists"
)

// KernelResult is one unique kernel of a step. Where the device can time a chain
// of the kernel's calls (a GPU), that is its time: the calls of all layers one
// after another as in the step, each starting while the one before ends, and weights
// not in caches where a step has more of them than fit. Alone is then the time of
// calls between two marks, which includes the edges of a launch. Elsewhere times are
// with a barrier after every call, so that their sum is more than a step takes.
type KernelResult struct {
	Name     string        `json:"name"`
	Count    int           `json:"count"`              // calls per step
	Time     float64       `json:"time_us"`            // per step, all calls
	Alone    float64       `json:"alone_us,omitempty"` // as Time, between marks; 0 where Time is that
	Cached   bool          `json:"cached,omitempty"`   // the chain's weights are less than twice the last cache
	Share    float64       `json:"share"`              // of the step
	Rate     float64       `json:"gb_s"`               // of bytes read
	Memory   int64         `json:"memory_bytes"`       // of weights and cache, a call
	Fraction float64       `json:"fraction_of_read_gb_s"`
	GFLOPS   float64       `json:"gflops"`
	Role     string        `json:"role"` // the weights it reads, or what else it works on
	Plan     []string      `json:"plan"`
	Origin   engine.Origin `json:"origin"` // of the plan
	Why      string        `json:"why"`
}

// profileRuns is how many times calls are timed; the median of each counts.
const profileRuns = 9

// A chain has at least chainCalls calls, unless it takes longer than chainSeconds.
const (
	chainCalls   = 64
	chainSeconds = 0.02
)

// timing is what was measured of the calls of one kernel.
type timing struct {
	calls  []int   // by their numbers in the step
	alone  float64 // seconds, the sum over calls
	chain  float64 // likewise, 0 where the device has no such measurement
	cached bool
}

// kernels times the kernels of steps of a number of tokens.
func (b *bench) kernels(ctx context.Context, tokens int) ([]KernelResult, []CallResult, error) {
	var calls [][]float64 // by call, seconds of each run
	var m engine.Manifest
	for i := range profileRuns + 1 {
		step, times, err := b.batch.Profile(ctx, b.each(0, tokens))
		if err != nil {
			return nil, nil, err
		}
		if i == 0 { // a warm-up
			m.Describe(step.Compiled, step.Binding)
			calls = make([][]float64, len(times))
			continue
		}
		for c, t := range times {
			calls[c] = append(calls[c], t.Seconds())
		}
	}
	step, err := b.batch.Compiled(ctx, tokens)
	if err != nil {
		return nil, nil, err
	}
	timings := timingsOf(step.Compiled, calls)
	for i := range m.Kernels {
		k := &m.Kernels[i]
		t := timings[k.Compiled()]
		if err := b.chain(ctx, tokens, t); err != nil {
			return nil, nil, err
		}
		t.cached = t.chain > 0 && k.MemoryBytes()*int64(k.Launches) < 2*int64(b.cacheBytes)
	}
	alone := lists.Map(calls, func(runs []float64) float64 { return percentile(runs, 0.5) })
	return tabulate(&m, timings, b.result.ReadRate), callsOf(step.Compiled, timings, alone), nil
}

// timingsOf sums the calls of each kernel.
func timingsOf(c *engine.Compiled, calls [][]float64) map[*engine.Kernel]*timing {
	timings := make(map[*engine.Kernel]*timing)
	i := 0
	for _, launch := range c.Launches {
		for _, call := range launch {
			t := timings[call.Kernel]
			if t == nil {
				t = &timing{}
				timings[call.Kernel] = t
			}
			t.calls = append(t.calls, i)
			t.alone += percentile(calls[i], 0.5)
			i++
		}
	}
	return timings
}

// chain times a kernel's calls one after another.
func (b *bench) chain(ctx context.Context, tokens int, t *timing) error {
	n := float64(len(t.calls))
	times := max(int(math.Ceil(min(chainCalls/n, chainSeconds/t.alone))), 1)
	var all []float64
	for range profileRuns {
		one, err := b.batch.Chain(ctx, tokens, t.calls, times)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		all = append(all, one.Seconds()*n)
	}
	t.chain = percentile(all, 0.5)
	return nil
}

// tabulate lists kernels, the slowest first.
func tabulate(m *engine.Manifest, timings map[*engine.Kernel]*timing, readRate float64) []KernelResult {
	total := 0.0
	for _, t := range timings {
		total += cmp.Or(t.chain, t.alone)
	}
	var list []KernelResult
	for i := range m.Kernels {
		k := &m.Kernels[i]
		timing := timings[k.Compiled()]
		t := cmp.Or(timing.chain, timing.alone)
		r := KernelResult{
			Name: k.Name, Count: k.Launches, Time: round(t * 1e6), Cached: timing.cached, Share: round(t / total),
			Rate:   round(float64(k.BytesRead) * float64(k.Launches) / t / 1e9),
			GFLOPS: round(float64(k.Flops) * float64(k.Launches) / t / 1e9),
			Memory: k.MemoryBytes(), Role: Role(k), Plan: k.Plan, Origin: k.Origin, Why: k.Why,
		}
		if timing.chain > 0 {
			r.Alone = round(timing.alone * 1e6)
		}
		if readRate > 0 {
			r.Fraction = round(float64(k.MemoryBytes()) * float64(k.Launches) / t / 1e9 / readRate)
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(x, y KernelResult) int { return cmp.Compare(y.Time, x.Time) })
	return list
}

// Role names what a kernel is for by what it reads: the weights without their
// layer, else the cache, else what it writes.
func Role(k *engine.ManifestKernel) string {
	var names []string
	for _, want := range []engine.Role{engine.RoleWeight, engine.RoleState, engine.RoleOutput, engine.RoleInput} {
		for _, arg := range k.Args {
			if arg.Role == want {
				names = appendNew(names, shortName(arg.Name))
			}
		}
		if len(names) > 0 {
			return strings.Join(names, "+")
		}
	}
	return "scratch"
}

// shortName drops "blk.N." or "cache.N." and the ".weight" of a tensor's name.
func shortName(name string) string {
	parts := strings.Split(strings.TrimSuffix(name, ".weight"), ".")
	if len(parts) > 2 {
		if parts[0] == "cache" {
			return "cache." + strings.Join(parts[2:], ".")
		}
		return strings.Join(parts[2:], ".")
	}
	return strings.Join(parts, ".")
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
