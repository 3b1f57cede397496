package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"

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
		p := &launchPlanner{state: s, choices: choices, settled: make(map[*Kernel]sharing)}
		for _, calls := range s.out.Launches {
			if err := p.launch(calls); err != nil {
				return err
			}
		}
	}
	startLate(s)
	return findPlans(ctx, s)
}

// launchPlanner plans kernels of launches together.
type launchPlanner struct {
	*state
	choices map[*Kernel]heuristic.Choice
	settled map[*Kernel]sharing // of the launches before
}

// sharing is how a kernel was planned with others of a launch.
type sharing int

const (
	unsettled sharing = iota
	shared            // for its share of the device, with as many threads a block as the others
	apart             // as by itself
)

// launch plans the kernels of a launch that have prices once more: each has the
// share of the device that it has of the bytes, and all have blocks of one size. Those
// that an earlier launch has too keep their plans. Where the longest takes longer than all
// with plans for the whole device, beside each other or one after the other, they have such plans:
// a product of a few rows, in few blocks that use their panels often, takes as long as one of many.
func (p *launchPlanner) launch(calls []Call) error {
	var kernels []*Kernel
	bytes, threads, before := 0.0, int64(0), unsettled
	for _, call := range calls {
		if c := p.choices[call.Kernel]; c.Prices != nil {
			kernels = append(kernels, call.Kernel)
			bytes += c.Bytes
			if as := p.settled[call.Kernel]; as != unsettled {
				threads, before = c.BlockThreads, as
			}
		}
	}
	if len(kernels) < 2 {
		return nil
	}
	if before != apart {
		alone := maps.Clone(p.choices)
		if err := p.agree(kernels, func(k *Kernel) float64 { return alone[k].Bytes / bytes }, threads); err != nil {
			return err
		}
		if before == unsettled {
			if err := p.balance(kernels); err != nil {
				return err
			}
			cheaper, err := p.comparePlans(kernels, alone)
			if err != nil {
				return err
			}
			if cheaper {
				before = apart
			}
		}
	}
	for _, k := range kernels {
		p.settled[k] = cmp.Or(before, shared)
	}
	return nil
}

// balance gives kernels of other types than the rest, which take longer for their bytes, shares by what they took with those by bytes,
// where the longest then takes less. In a batch of 16 Qwen3 4B's took 18 and 15 us by the price, and the step 8 % longer (h200-beside.txt, section 5).
func (p *launchPlanner) balance(kernels []*Kernel) error {
	before := maps.Clone(p.choices)
	all, longest := 0.0, 0.0
	for _, k := range kernels {
		c := before[k]
		if c.Streams {
			return nil // bytes are what these take
		}
		all, longest = all+c.Price*c.Share, max(longest, c.Price)
	}
	if longest < unbalanced*all { // shares add up to 1: all is the mean
		return nil
	}
	if err := p.agree(kernels, func(k *Kernel) float64 { return before[k].Price * before[k].Share / all }, 0); err != nil {
		return err
	}
	if _, agreed := p.priceWith(kernels, p.choices[kernels[0]].BlockThreads); !agreed || byShares(kernels, p.choices) >= longest {
		p.restore(kernels, before) // not by more than such prices are off
	}
	return nil
}

// restore gives kernels plans that they had, as far as there are any.
func (p *launchPlanner) restore(kernels []*Kernel, choices map[*Kernel]heuristic.Choice) {
	for _, k := range kernels {
		if c, ok := choices[k]; ok {
			p.choices[k] = c
			k.take(p.state, c)
		}
	}
}

// unbalanced is how many times the mean of kernels the longest takes of which shares are worth another look.
const unbalanced = 1.1

// comparePlans lets kernels that were planned for their shares of the device be planned for all of it instead, where they take less so: in one
// grid, in which blocks of one kernel run where those of another leave multiprocessors empty, or one after the other, with the plans that they have
// alone: then it says so.
func (p *launchPlanner) comparePlans(kernels []*Kernel, alone map[*Kernel]heuristic.Choice) (asAlone bool, err error) {
	total, least := 0.0, byShares(kernels, p.choices)
	for _, k := range kernels {
		total += alone[k].Price
	}
	best := maps.Clone(p.choices)
	if beside(kernels, alone) < min(least, total) { // which blocks of one size do not undercut
		maps.Copy(p.choices, alone)
		if err := p.agree(kernels, func(*Kernel) float64 { return 1 }, 0); err != nil {
			return false, err
		}
		_, agreed := p.priceWith(kernels, p.choices[kernels[0]].BlockThreads)
		if price := beside(kernels, p.choices); agreed && price < min(least, total) {
			least = price
			for _, k := range kernels {
				c := p.choices[k]
				c.Share *= c.Filled // its blocks leave the rest to the others
				best[k] = c
			}
		}
	}
	if total < least {
		best, asAlone = alone, true
	}
	p.restore(kernels, best)
	return asAlone, nil
}

// byShares is what kernels take with plans for their shares of the device: as long as the longest.
func byShares(kernels []*Kernel, choices map[*Kernel]heuristic.Choice) (longest float64) {
	for _, k := range kernels {
		longest = max(longest, choices[k].Price*sharesCost(choices[k]))
	}
	return longest
}

// sharesCost is how many times as long as expected products by matrix instructions take with plans for their shares of the device: blocks of
// one kernel do not stay on its part of the multiprocessors. 1.2 is the mean of prompts on an H200 (docs/bench/h200-beside.txt, section 4).
func sharesCost(c heuristic.Choice) float64 {
	if c.Streams {
		return 1
	}
	return 1.2
}

// beside is what kernels take in one grid, each planned for all of the device.
func beside(kernels []*Kernel, choices map[*Kernel]heuristic.Choice) float64 {
	busy, longest := 0.0, 0.0
	for _, k := range kernels {
		c := choices[k]
		busy, longest = busy+c.Price*c.Filled, max(longest, c.Price)
	}
	return max(busy, longest)
}

// agree plans the kernels of a launch that are not settled for their shares of the device, with the
// number of threads a block, or one that they agree on where it is 0.
func (p *launchPlanner) agree(kernels []*Kernel, share func(*Kernel) float64, threads int64) error {
	with := func(threads int64) error {
		for _, k := range kernels {
			if p.settled[k] == unsettled && p.choices[k].BlockThreads != threads {
				if err := p.plan(k, share(k), threads); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, k := range kernels {
		if p.settled[k] == unsettled {
			if err := p.plan(k, share(k), threads); err != nil {
				return err
			}
		}
	}
	if _, agreed := p.priceWith(kernels, p.choices[kernels[0]].BlockThreads); agreed || threads > 0 {
		return nil
	}
	return p.findThreads(kernels, with)
}

// plan plans a kernel for its share of the device, with the number of threads a block where that is not 0.
func (p *launchPlanner) plan(k *Kernel, share float64, threads int64) (err error) {
	knobs := p.config.Knobs
	knobs.Share, knobs.BlockThreads = share, threads
	if p.choices[k], err = k.choose(p.state, knobs); err != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return nil
}

// findThreads plans kernels with the number of threads a block with which they cost least. What they are expected to cost
// is that of their cheapest mappings, which a kernel may not accept: another number may then be cheaper.
func (p *launchPlanner) findThreads(kernels []*Kernel, with func(threads int64) error) error {
	var best map[*Kernel]heuristic.Choice
	least := math.Inf(1)
	for refused := make(map[int64]bool); len(refused) <= mostRefused; {
		threads, expected := commonThreads(kernels, p.choices, refused)
		if threads == 0 || expected >= least {
			break
		}
		if err := with(threads); err != nil {
			return err
		}
		if price, agreed := p.priceWith(kernels, threads); agreed && price < least {
			best, least = maps.Clone(p.choices), price
		}
		refused[threads] = true
	}
	p.restore(kernels, best)
	return nil
}

// priceWith is what kernels cost together, if all have so many threads a block.
func (p *launchPlanner) priceWith(kernels []*Kernel, threads int64) (price float64, agreed bool) {
	for _, k := range kernels {
		c := p.choices[k]
		if c.BlockThreads != threads {
			return 0, false
		}
		price += c.Price
	}
	return price, true
}

// mostRefused bounds the numbers of threads that are tried although a kernel accepts no
// mapping with one of them.
const mostRefused = 4

// commonThreads is the number of threads a block with which kernels are expected to cost least
// together, and what that is, but none that was refused; 0 where there is none.
func commonThreads(kernels []*Kernel, choices map[*Kernel]heuristic.Choice, refused map[int64]bool) (threads int64, least float64) {
	total := maps.Clone(choices[kernels[0]].Prices)
	for _, k := range kernels[1:] {
		c := choices[k]
		for n := range total {
			if price, ok := c.Prices[n]; ok {
				total[n] += price
			} else {
				delete(total, n)
			}
		}
	}
	least = math.Inf(1)
	for n, price := range total {
		if !refused[n] && (price < least || price == least && n < threads) {
			threads, least = n, price
		}
	}
	return threads, least
}
