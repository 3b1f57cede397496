package engine

import (
	"context"
	"fmt"
	"maps"

	"tgc/heuristic"
	"tgc/schedule"
	"tgc/target"
)

// planKernels plans every kernel by itself. Those of a launch that will be merged into
// one grid then agree on the threads of a block, if they can: a barrier in a block of
// which some threads have nothing to do would be missed by them.
func planKernels(ctx context.Context, s *state) error {
	choices := make(map[*Kernel]heuristic.Choice)
	err := eachKernel(ctx, s, func(k *Kernel) (err error) {
		choices[k], err = k.choose(s, s.config.Knobs)
		return err
	})
	if err != nil {
		return err
	}
	if s.out.Target.Kind == target.GPU && !s.config.Rules.Has(schedule.Par) {
		together := make(map[*Kernel]bool)
		for _, calls := range s.out.Launches {
			if err := planTogether(s, calls, choices, together); err != nil {
				return err
			}
		}
	}
	startLate(s)
	return findPlans(ctx, s)
}

// planTogether plans the kernels of a launch that have prices once more: each has the
// share of the device that it has of the bytes, and all have blocks of one size. Those
// that an earlier launch has too keep their plans.
func planTogether(s *state, calls []Call, choices map[*Kernel]heuristic.Choice, together map[*Kernel]bool) error {
	var kernels []*Kernel
	bytes, threads := 0.0, int64(0)
	for _, call := range calls {
		if c := choices[call.Kernel]; c.Prices != nil {
			kernels = append(kernels, call.Kernel)
			bytes += c.Bytes
			if together[call.Kernel] {
				threads = c.BlockThreads
			}
		}
	}
	if len(kernels) < 2 {
		return nil
	}
	plan := func(k *Kernel, threads int64) (err error) {
		knobs := s.config.Knobs
		knobs.Share, knobs.BlockThreads = choices[k].Bytes/bytes, threads
		if choices[k], err = k.choose(s, knobs); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		return nil
	}
	for _, k := range kernels {
		if !together[k] {
			if err := plan(k, threads); err != nil {
				return err
			}
		}
	}
	fixed := threads > 0
	for refused := make(map[int64]bool); ; refused[threads] = true {
		if !fixed {
			threads = commonThreads(kernels, choices, refused)
		}
		agreed := true
		for _, k := range kernels {
			if threads > 0 && !together[k] && choices[k].BlockThreads != threads {
				if err := plan(k, threads); err != nil {
					return err
				}
			}
			agreed = agreed && choices[k].BlockThreads == threads
		}
		if fixed || threads == 0 || agreed || len(refused) == mostRefused {
			break
		}
	}
	for _, k := range kernels {
		together[k] = true
	}
	return nil
}

// mostRefused bounds the numbers of threads that are tried although a kernel accepts no
// mapping with one of them.
const mostRefused = 4

// commonThreads is the number of threads a block with which kernels cost least
// together, but none that was refused; 0 where they agree, or cannot.
func commonThreads(kernels []*Kernel, choices map[*Kernel]heuristic.Choice, refused map[int64]bool) (threads int64) {
	first := choices[kernels[0]]
	total, agreed := maps.Clone(first.Prices), true
	for _, k := range kernels[1:] {
		c := choices[k]
		agreed = agreed && c.BlockThreads == first.BlockThreads
		for n := range total {
			if price, ok := c.Prices[n]; ok {
				total[n] += price
			} else {
				delete(total, n)
			}
		}
	}
	if agreed {
		return 0
	}
	for n, price := range total {
		if refused[n] {
			continue
		}
		if best, ok := total[threads]; !ok || price < best || price == best && n < threads {
			threads = n
		}
	}
	return threads
}
