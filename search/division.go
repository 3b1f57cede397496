package search

import (
	"math"
	"slices"
	"time"

	"tgc/internal/lists"
)

// leastShare is of the step what a kernel must take to be searched, and leastTime how long it
// is at least: a child starts, and a few plans are tried by themselves and in the step.
const (
	leastShare = 0.002
	leastTime  = time.Second
	forLeast   = 0.5 // of the time, at most, is what all have at least

	forSteps      = 0.5  // of a kernel's time is for timing steps
	forConfirming = 0.15 // and for timing the best few, which the others leave alone
)

// divide shares time by weights, the largest first. None has less than the least, which those with more
// spare; where the least of all is more than a part of the time, the last ones have none.
func divide(total time.Duration, weights []float64, least time.Duration) []time.Duration {
	if len(weights) == 0 || total <= 0 {
		return nil
	}
	weights = weights[:min(len(weights), max(int(forLeast*float64(total)/float64(least)), 1))]
	n, sum := len(weights), parts(weights)
	rest := total
	for n > 1 && float64(rest)*weights[n-1] < float64(least)*sum {
		n--
		rest, sum = rest-least, sum-weights[n]
	}
	out := slices.Repeat([]time.Duration{least}, len(weights))
	for i := range n {
		out[i] = max(time.Duration(float64(rest)*weights[i]/sum), least)
	}
	return out
}

// divide shares the time of a step among the kernels that are to be searched, those first that take most of it.
func (t *tuning) divide() {
	waiting := lists.Filter(t.result.Kernels, func(k *TunedKernel) bool { return !k.settled && k.Share >= leastShare })
	t.planned = make(map[*TunedKernel]time.Duration)
	for i, part := range divide(time.Until(t.end), lists.Map(waiting, t.weight), leastTime) {
		t.planned[waiting[i]] = part
	}
}

// part is a kernel's of the time that is left, as it was shared: what those before it took too long, or left, is
// that of all after it. 0 is too little to begin.
func (t *tuning) part(i int) time.Duration {
	left := time.Duration(0)
	for _, k := range t.result.Kernels[i:] {
		left += t.planned[k]
	}
	part := time.Duration(float64(time.Until(t.end)) * float64(t.planned[t.result.Kernels[i]]) / max(float64(left), 1))
	if part < leastTime/2 {
		return 0
	}
	return part
}

// weight is what a kernel counts where time is shared. From scratch all have about as far to go.
func (t *tuning) weight(k *TunedKernel) float64 {
	if t.options.Search.Scratch {
		return math.Sqrt(k.Share)
	}
	return k.Share
}
