package data

import (
	"tgc/internal/lists"
	"tgc/nn"
)

// subset is some samples of a dataset.
type subset struct {
	of      Dataset
	samples []int
}

// Subset is the samples of these numbers, in this order.
func Subset(d Dataset, samples []int) Dataset { return subset{of: d, samples: samples} }

// Len is the number of samples.
func (s subset) Len() int { return len(s.samples) }

// Batch gathers samples of the whole.
func (s subset) Batch(samples []int) (nn.Values, error) {
	return s.of.Batch(lists.Map(samples, func(i int) int { return s.samples[i] }))
}

// Split cuts a dataset at random in two of which the first has this share of the samples.
func Split(d Dataset, share float64, seed uint32) (first, rest Dataset) {
	n := d.Len()
	order := newOrder(uint64(n), seed, 0)
	shuffled := lists.Make(n, func(i int) int { return int(order.at(uint64(i))) })
	cut := min(max(int(share*float64(n)+0.5), 0), n)
	return Subset(d, shuffled[:cut]), Subset(d, shuffled[cut:])
}
