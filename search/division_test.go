package search

import (
	"slices"
	"testing"
	"time"
)

// Time is shared by weights, but all have the least, as long as that is no more than half of the time.
func TestDivide(t *testing.T) {
	second := func(list ...float64) (out []time.Duration) {
		for _, s := range list {
			out = append(out, time.Duration(s*float64(time.Second)))
		}
		return out
	}
	for _, c := range []struct {
		total   float64
		weights []float64
		want    []time.Duration
	}{
		{30, []float64{0.5, 0.3, 0.2}, second(15, 9, 6)},
		{28, []float64{0.6, 0.3, 0.05, 0.05}, second(16, 8, 2, 2)},
		{8, []float64{0.4, 0.3, 0.2, 0.1}, second(4.571428571, 3.428571428)},
		{1, []float64{0.9, 0.1}, second(2)},
		{10, nil, nil},
		{-1, []float64{1}, nil},
	} {
		got := divide(time.Duration(c.total*float64(time.Second)), c.weights, 2*time.Second)
		near := func(x, y time.Duration) bool { return (x - y).Abs() < time.Millisecond }
		if !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%v s by %v: %v, want %v", c.total, c.weights, got, c.want)
		}
	}
}
