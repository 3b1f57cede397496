package llm

// paddedChunk is the largest step that may be padded.
const paddedChunk = 128

// stepSizes are the numbers of tokens of a sequence that steps are compiled for, largest first, the
// least 1, and what a step takes beside its rows of activations, in rows.
type stepSizes struct {
	sizes           []int
	edge, sequences int
}

// first is the first step for n tokens: the largest one that they fill, or the smallest that holds
// them all, whichever way takes less time for all of them.
func (s stepSizes) first(n int) int {
	filled, holding := 0, 0
	for _, c := range s.sizes {
		switch {
		case c > n:
			if c <= paddedChunk {
				holding = c
			}
		case filled == 0:
			filled = c
		}
	}
	if filled == n || holding == 0 || s.step(filled)+s.all(n-filled) < s.step(holding) {
		return filled
	}
	return holding
}

// all is what n tokens take, in the time that a row of activations adds to a step.
func (s stepSizes) all(n int) (cost int) {
	for n > 0 {
		c := s.first(n)
		cost += s.step(c)
		n -= c
	}
	return cost
}

// step is what a step of size tokens takes, in that time.
func (s stepSizes) step(size int) int { return s.edge + size*s.sequences }
