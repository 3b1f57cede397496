package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tgc/nn/plot"
)

// KernelTime is what one kernel takes of a step.
type KernelTime struct {
	Name, Why string // Why is the plan's reason
	Calls     int
	Time      time.Duration // of all calls
}

// Profile says where the time of a training step goes.
type Profile struct {
	Step     time.Duration // as it runs
	Alone    time.Duration // its kernels one after the other, each alone
	Calls    int
	Launches int
	Kernels  []KernelTime // those that take most first
}

// Profile times a step on what the inputs hold: the least of several runs, since other
// programs may disturb one. Afterwards everything is as it was before.
func (t *Trainer) Profile(ctx context.Context, runs int) (p Profile, err error) {
	before, err := t.Values(ctx)
	if err != nil {
		return p, err
	}
	defer func() {
		if e := t.Restore(context.WithoutCancel(ctx), before); err == nil {
			err = e
		}
	}()
	p.Step = time.Duration(math.MaxInt64)
	var best []time.Duration
	for range max(runs, 1) {
		start := time.Now()
		if err := t.Step(ctx); err != nil {
			return p, err
		}
		p.Step = min(p.Step, time.Since(start))
		times, err := t.function.Step().Profile(ctx, nil)
		if err != nil {
			return p, err
		}
		if best == nil {
			best = times
		}
		for i := range best {
			best[i] = min(best[i], times[i])
		}
	}
	t.attribute(&p, best)
	return p, nil
}

// Profile times a step on the first batch of the run's data, so that a run which goes on from
// its end has something to time, too.
func (r *Run) Profile(ctx context.Context, runs int) (Profile, error) {
	batch, err := r.options.Data.At(0)
	if err == nil {
		err = feed(ctx, r.function, batch, "")
	}
	if err != nil {
		return Profile{}, err
	}
	return r.Trainer.Profile(ctx, runs)
}

// attribute adds up the times of calls, in the order of the step, by kernel.
func (t *Trainer) attribute(p *Profile, times []time.Duration) {
	byName := make(map[string]*KernelTime)
	for _, launch := range t.function.Step().Compiled.Launches {
		p.Launches++
		for _, call := range launch {
			k := byName[call.Kernel.Name]
			if k == nil {
				k = &KernelTime{Name: call.Kernel.Name, Why: call.Kernel.Why}
				byName[k.Name] = k
			}
			k.Calls++
			k.Time += times[p.Calls]
			p.Alone += times[p.Calls]
			p.Calls++
		}
	}
	for _, k := range byName {
		p.Kernels = append(p.Kernels, *k)
	}
	slices.SortFunc(p.Kernels, func(a, b KernelTime) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
}

// share is a kernel's part of all kernels' time, in percent.
func (p Profile) share(k KernelTime) float64 { return 100 * float64(k.Time) / float64(max(p.Alone, 1)) }

func (p Profile) title() string {
	return fmt.Sprintf("a step: %d kernels in %d launches, %v; its kernels alone %v",
		p.Calls, p.Launches, p.Step.Round(time.Microsecond), p.Alone.Round(time.Microsecond))
}

// String is a table: the step, then each kernel with its share of the time and its reason.
func (p Profile) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.title())
	for _, k := range p.Kernels {
		fmt.Fprintf(&b, "%5.1f %%  %8v  %d x %s\n         %s\n", p.share(k), k.Time.Round(time.Microsecond), k.Calls, k.Name, k.Why)
	}
	return b.String()
}

// SVG is a picture: a bar for each kernel.
func (p Profile) SVG() []byte {
	picture := plot.Bars{Title: p.title()}
	for _, k := range p.Kernels {
		picture.Bars = append(picture.Bars, plot.Bar{
			Name: fmt.Sprintf("%d x %s", k.Calls, k.Name), Value: k.Time.Seconds(),
			Text: fmt.Sprintf("%v, %.1f %%", k.Time.Round(time.Microsecond), p.share(k)), Says: k.Why,
		})
	}
	return picture.SVG()
}
