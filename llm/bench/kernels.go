package bench

import (
	"context"
	"slices"
	"strings"

	"tgc/engine"
)

// KernelResult is one unique kernel of a step. Times are with a barrier
// behind every call, so their sum is more than a step takes.
type KernelResult struct {
	Name     string   `json:"name"`
	Count    int      `json:"count"`   // calls per step
	Time     float64  `json:"time_us"` // per step, all calls
	Share    float64  `json:"share"`   // of the step
	Rate     float64  `json:"gb_s"`    // of bytes read
	Fraction float64  `json:"fraction_of_read_gb_s"`
	GFLOPS   float64  `json:"gflops"`
	Role     string   `json:"role"` // the weights it reads, or what else it works on
	Plan     []string `json:"plan"`
	Why      string   `json:"why"`
}

// profileRuns is how many steps are profiled; the median of each call counts.
const profileRuns = 9

// kernels profiles steps of so many tokens.
func (b *bench) kernels(ctx context.Context, tokens int) ([]KernelResult, error) {
	var calls [][]float64 // by call, seconds of each run
	var m engine.Manifest
	for i := range profileRuns + 1 {
		step, times, err := b.batch.Profile(ctx, b.each(0, tokens))
		if err != nil {
			return nil, err
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
		return nil, err
	}
	return tabulate(&m, step.Compiled, calls, b.result.ReadRate), nil
}

// tabulate sums the calls of each kernel, the slowest kernel first.
func tabulate(m *engine.Manifest, c *engine.Compiled, calls [][]float64, readRate float64) []KernelResult {
	seconds := make(map[*engine.Kernel]float64)
	total := 0.0
	i := 0
	for _, launch := range c.Launches {
		for _, call := range launch {
			t := percentile(calls[i], 0.5)
			seconds[call.Kernel] += t
			total += t
			i++
		}
	}
	var list []KernelResult
	for i := range m.Kernels {
		k := &m.Kernels[i]
		t := seconds[k.Compiled()]
		r := KernelResult{
			Name: k.Name, Count: k.Launches, Time: round(t * 1e6), Share: round(t / total),
			Rate:   round(float64(k.BytesRead) * float64(k.Launches) / t / 1e9),
			GFLOPS: round(float64(k.Flops) * float64(k.Launches) / t / 1e9),
			Role:   role(k), Plan: k.Plan, Why: k.Why,
		}
		if readRate > 0 {
			r.Fraction = round(float64(k.MemoryBytes()) * float64(k.Launches) / t / 1e9 / readRate)
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(x, y KernelResult) int {
		switch {
		case x.Time > y.Time:
			return -1
		case x.Time < y.Time:
			return 1
		}
		return 0
	})
	return list
}

// role names what a kernel is for by what it reads: the weights without their
// layer, else the cache, else what it writes.
func role(k *engine.ManifestKernel) string {
	var names []string
	for _, want := range []engine.Role{engine.RoleWeight, engine.RoleCache, engine.RoleOutput, engine.RoleInput} {
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
