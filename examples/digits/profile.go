package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"tgc/nn/train"
)

// share is what one kernel takes of a step.
type share struct {
	name, why string
	calls     int
	time      time.Duration
}

// profile prints the kernels of a training step by the time they take, alone and
// one after the other, and the time of a whole step: the least of several runs,
// since other programs may disturb one. The runs train on the last batch.
func profile(ctx context.Context, trainer *train.Trainer, out io.Writer) error {
	const runs = 20
	step := trainer.Function().Step()
	whole := time.Duration(math.MaxInt64)
	for range runs {
		start := time.Now()
		if err := trainer.Step(ctx); err != nil {
			return err
		}
		whole = min(whole, time.Since(start))
	}
	var best []time.Duration
	for range runs {
		times, err := step.Profile(ctx, nil)
		if err != nil {
			return err
		}
		if best == nil {
			best = times
		}
		for i := range best {
			best[i] = min(best[i], times[i])
		}
	}
	byName := make(map[string]*share)
	var list []*share
	total, i := time.Duration(0), 0
	for _, launch := range step.Compiled.Launches {
		for _, call := range launch {
			s := byName[call.Kernel.Name]
			if s == nil {
				s = &share{name: call.Kernel.Name, why: call.Kernel.Why}
				byName[s.name] = s
				list = append(list, s)
			}
			s.calls++
			s.time += best[i]
			total += best[i]
			i++
		}
	}
	slices.SortStableFunc(list, func(a, b *share) int { return cmp.Compare(b.time, a.time) })
	fmt.Fprintf(out, "\na step: %d kernels in %d launches, %v; its kernels alone %v\n",
		i, len(step.Compiled.Launches), whole.Round(time.Microsecond), total.Round(time.Microsecond))
	for _, s := range list {
		fmt.Fprintf(out, "%5.1f %%  %8v  %d x %s\n         %s\n", 100*float64(s.time)/float64(total), s.time.Round(time.Microsecond), s.calls, s.name, s.why)
	}
	return nil
}
