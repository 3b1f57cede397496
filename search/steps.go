package search

import (
	"context"
	"fmt"
	"time"

	"tgc/engine"
	"tgc/search/database"
)

// NamedStep is one of several steps that are tuned together.
type NamedStep struct {
	Step
	Name  string
	Times float64 // how often it runs, for each time that the others do; 0 is 1
	Log   LogStep // what the log says of it
}

// leastPart is what a step has of the budget at least, of an equal part: a step that is short
// has kernels that search as long as others.
const leastPart = 0.25

// TuneSteps tunes several steps, which may share kernels: each is searched once, and what is
// found for one step is there for those that follow. Their time is shared by what the steps take.
func TuneSteps(ctx context.Context, steps []NamedStep, options TuneOptions) ([]*Tuned, error) {
	list := make([]*tuning, len(steps))
	findings := make(map[database.Key]*TunedKernel)
	for i, s := range steps {
		list[i] = newTuning(s.Step, options)
		list[i].name, list[i].log, list[i].findings = s.Name, s.Log, findings
	}
	return tuneAll(ctx, list, steps)
}

func tuneAll(ctx context.Context, list []*tuning, steps []NamedStep) (out []*Tuned, err error) {
	defer func() {
		for _, t := range list {
			t.free()
		}
	}()
	shares, total := make([]float64, len(list)), 0.0
	for i, t := range list {
		if err := t.begin(ctx); err != nil {
			return nil, fmt.Errorf("%s%w", t.prefix(), err)
		}
		if shares[i] = 1; len(list) > 1 {
			if shares[i], err = t.time(ctx); err != nil {
				return nil, fmt.Errorf("%s%w", t.prefix(), err)
			}
		}
		if steps[i].Times > 0 {
			shares[i] *= steps[i].Times
		}
		total += shares[i]
	}
	for i := range shares {
		shares[i] = max(shares[i]/total, leastPart/float64(len(list)))
	}
	end := time.Now().Add(list[0].options.Budget)
	for i, t := range list {
		if err := t.decide(ctx, shares[i]/parts(shares)); err != nil {
			return nil, fmt.Errorf("%s%w", t.prefix(), err)
		}
	}
	if err := spread(list, shares); err != nil {
		return nil, err
	}
	for i, t := range list {
		t.end = partOf(end, shares[i:])
		tuned, err := t.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s%w", t.prefix(), err)
		}
		out = append(out, tuned)
	}
	return out, nil
}

// spread gives the kernels of all steps to workers, where there are some: those of a later step
// do not wait for the times of an earlier one.
func spread(list []*tuning, shares []float64) error {
	total := parts(shares)
	for i, t := range list {
		if t.options.Spread == nil {
			continue
		}
		if err := t.submit(time.Duration(float64(t.options.Budget) * shares[i] / total)); err != nil {
			return fmt.Errorf("%s%w", t.prefix(), err)
		}
	}
	return nil
}

// parts are those of all shares together.
func parts(shares []float64) (total float64) {
	for _, share := range shares {
		total += share
	}
	return total
}

// partOf is when the first of several shares of the time that is left ends.
func partOf(end time.Time, shares []float64) time.Time {
	return time.Now().Add(time.Duration(float64(time.Until(end)) * shares[0] / parts(shares)))
}

// time is what the step takes with the heuristics' plans, in microseconds.
func (t *tuning) time(ctx context.Context) (float64, error) {
	times, err := t.inTurn(ctx, []*engine.Step{t.plain}, t.step.Vars, Confirming)
	if err != nil {
		return 0, err
	}
	return median(times[0]), nil
}

// prefix begins what is said of the step.
func (t *tuning) prefix() string {
	if t.name == "" {
		return ""
	}
	return t.name + ": "
}
