package search

import (
	"context"
	"math"
	"time"

	"tgc/engine"
)

// Steps are timed in turn, so that what changes meanwhile (clocks, what else runs) is the same for all.

// Turns say how: rounds, in which each step has a turn.
type Turns struct {
	Least, Most int           // rounds
	For         time.Duration // rounds beyond the least go on for so long
	Each        time.Duration // of a turn; a step runs once at least
}

// Screening tells apart candidates of which most are slower, Confirming what is faster from noise.
var (
	Screening  = Turns{Least: 5, Most: 5, Each: 6 * time.Millisecond}
	Confirming = Turns{Least: 9, Most: 31, For: 4 * time.Second, Each: 10 * time.Millisecond}
)

// How many runs of a step a device starts at once, where it can: as many as last so long together, so that what
// starting takes is a small part.
const (
	mostAtOnce   = 8
	lastTogether = 4 * time.Millisecond
)

// AtOnce is how many runs of a step, and of others like it, are to start at once.
func AtOnce(ctx context.Context, step *engine.Step, vars map[string]int64) (int, error) {
	once := &TimedStep{step: step, many: step, runs: 1}
	var us float64
	for range 2 { // the first warms up
		var err error
		if us, err = once.Time(ctx, vars, 0); err != nil {
			return 0, err
		}
	}
	return min(max(int(float64(lastTogether.Microseconds())/us), 1), mostAtOnce), nil
}

// TimedStep is a captured step, and several runs of it that start at once.
type TimedStep struct {
	step, many *engine.Step
	runs       float64
}

// NewTimedStep prepares a step, which must outlive it.
func NewTimedStep(ctx context.Context, step *engine.Step, runs int) (*TimedStep, error) {
	t := &TimedStep{step: step, many: step, runs: 1}
	many, err := step.Repeat(ctx, runs)
	if err != nil {
		return nil, err
	}
	if many != nil {
		t.many, t.runs = many, float64(runs)
	}
	return t, nil
}

// Time is that of the shortest run within a turn, in microseconds.
func (t *TimedStep) Time(ctx context.Context, vars map[string]int64, turn time.Duration) (float64, error) {
	least := math.Inf(1)
	for start := time.Now(); time.Since(start) < turn || math.IsInf(least, 1); {
		begin := time.Now()
		if err := t.many.Run(ctx, vars); err != nil {
			return 0, err
		}
		least = min(least, time.Since(begin).Seconds()*1e6/t.runs)
	}
	return least, nil
}

// Free frees what was prepared, not the step.
func (t *TimedStep) Free() {
	if t.many != t.step {
		t.many.Free()
	}
}

// InTurn times steps in turn: microseconds of each step, by round.
func InTurn(ctx context.Context, steps []*TimedStep, vars map[string]int64, turns Turns) ([][]float64, error) {
	times := make([][]float64, len(steps))
	start := time.Now()
	for round := -1; round < turns.Most && (round < turns.Least || time.Since(start) < turns.For); round++ {
		for i, s := range steps {
			us, err := s.Time(ctx, vars, turns.Each)
			if err != nil {
				return nil, err
			}
			if round >= 0 { // the first warms up
				times[i] = append(times[i], us)
			}
		}
	}
	return times, nil
}

// inTurn prepares steps and times them.
func inTurn(ctx context.Context, steps []*engine.Step, vars map[string]int64, turns Turns) ([][]float64, error) {
	runs, err := AtOnce(ctx, steps[0], vars)
	if err != nil {
		return nil, err
	}
	timed := make([]*TimedStep, len(steps))
	for i, s := range steps {
		t, err := NewTimedStep(ctx, s, runs)
		if err != nil {
			return nil, err
		}
		defer t.Free()
		timed[i] = t
	}
	return InTurn(ctx, timed, vars, turns)
}

// Longer is by how many microseconds one step takes longer than another in the rounds of both: the median.
func Longer(than, step []float64) float64 {
	differences := make([]float64, len(step))
	for i := range step {
		differences[i] = step[i] - than[i]
	}
	return median(differences)
}

// saves is what part of the first time the second saves, 0 if that is no more than noise: three
// times the error of the mean over pairs that were measured one after the other, and those
// that are faster are three quarters.
func saves(before, after []float64) float64 {
	var sum, squares, wins float64
	n := float64(len(before))
	for i := range before {
		d := math.Log(after[i] / before[i])
		sum, squares = sum+d, squares+d*d
		if d < 0 {
			wins++
		}
	}
	mean := sum / n
	deviation := math.Sqrt(max(squares/n-mean*mean, 0) / max(n-1, 1))
	if mean >= -3*deviation || wins < 0.75*n {
		return 0
	}
	return 1 - math.Exp(mean)
}
