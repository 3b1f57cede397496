package search

import (
	"context"
	"math"
	"slices"
	"time"

	"tgc/engine"
)

// Steps are timed in turn, so that what changes meanwhile (clocks, what else runs) is the same for all.

// Turns say how: rounds, in which each step has a turn.
type Turns struct {
	Least, Most int           // rounds
	Open        int           // rounds, at most, where the most leave open whether a step is faster than the first
	For         time.Duration // rounds beyond the least go on for so long
	Each        time.Duration // of a turn; a step runs once at least
}

// Screening tells apart candidates of which most are slower, Confirming what is faster from noise: on a host
// whose runs differ by 5 % 31 rounds see no gain of less than 3 %.
var (
	Screening  = Turns{Least: 5, Most: 5, Each: 6 * time.Millisecond}
	Confirming = Turns{Least: 9, Most: 31, Open: 255, For: 4 * time.Second, Each: 10 * time.Millisecond}
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
	return turns.of(len(steps), func(i int) (float64, error) { return steps[i].Time(ctx, vars, turns.Each) })
}

// of has turns of n steps, and lists what each took by round.
func (t Turns) of(n int, took func(i int) (float64, error)) ([][]float64, error) {
	times := make([][]float64, n)
	start, most := time.Now(), t.Most
	for round := -1; round < most && (round < t.Least || time.Since(start) < t.For); round++ {
		for i := range times {
			us, err := took(i)
			if err != nil {
				return nil, err
			}
			if round >= 0 { // the first warms up
				times[i] = append(times[i], us)
			}
		}
		if round+1 == t.Most && open(times) { // looked at once: who looks after each round ends at a lucky one
			most = max(t.Open, t.Most)
		}
	}
	return times, nil
}

// open reports times by which a step seems faster than the first one, and which do not prove it.
func open(times [][]float64) bool {
	return slices.ContainsFunc(times[1:], func(after []float64) bool {
		r := ratioOf(times[0], after)
		return r.mean < -r.deviation && !r.faster()
	})
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

// ratio is what times of two steps that were measured one after the other, in pairs, say of their ratio.
type ratio struct {
	mean      float64 // of its logarithms
	deviation float64 // of that mean
	wins, of  float64 // pairs in which the second was faster, and all
}

func ratioOf(before, after []float64) ratio {
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
	return ratio{mean, math.Sqrt(max(squares/n-mean*mean, 0) / max(n-1, 1)), wins, n}
}

// faster says that the second takes less time by more than noise: by three times the error of the mean, and in
// three quarters of the pairs, or in so many of a large number that halves are as unlikely.
func (r ratio) faster() bool {
	return r.mean < -3*r.deviation && r.wins >= min(0.75*r.of, 0.5*r.of+1.5*math.Sqrt(r.of))
}

// saves is what part of the first time the second saves, 0 if that is no more than noise.
func saves(before, after []float64) float64 {
	if r := ratioOf(before, after); r.faster() {
		return 1 - math.Exp(r.mean)
	}
	return 0
}
