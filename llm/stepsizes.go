package llm

import (
	"slices"

	"tgc/target"
)

// stepSizes are the steps of a target by which so many sequences are fed, each of them up to most tokens at once. A
// step's rows of activations are the tokens of all sequences.
type stepSizes struct {
	steps           []target.Step // largest first, the last of one row
	most, sequences int
}

// first is the first step for n tokens of a sequence: the largest one that they fill, or the smallest that holds
// them all, whichever way takes less time for all of them.
func (s stepSizes) first(n int) int {
	filled, holding := 0, 0
	for _, c := range s.steps {
		switch {
		case c.Rows > s.most:
		case c.Rows > n:
			holding = c.Rows
		case filled == 0:
			filled = c.Rows
		}
	}
	if filled == n || holding == 0 || s.step(filled)+s.all(n-filled) < s.step(holding) {
		return filled
	}
	return holding
}

// all is the time that n tokens of each sequence take.
func (s stepSizes) all(n int) (time float64) {
	for n > 0 {
		c := s.first(n)
		time += s.step(c)
		n -= c
	}
	return time
}

// step is the time that a step of size tokens of each sequence takes: between two numbers of rows, and past the
// largest, each row takes as much.
func (s stepSizes) step(size int) float64 {
	rows := size * s.sequences
	larger := slices.IndexFunc(s.steps[1:], func(c target.Step) bool { return c.Rows < rows })
	if larger < 0 {
		return s.steps[len(s.steps)-1].Time
	}
	high, low := s.steps[larger], s.steps[larger+1]
	return low.Time + (high.Time-low.Time)*float64(rows-low.Rows)/float64(high.Rows-low.Rows)
}
