package search

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Rounds go on where those that are usual leave it open whether a step is faster: of what seems slower, or is
// faster beyond doubt, no more would say anything else.
func TestOpenTurns(t *testing.T) {
	turns := Turns{Least: 9, Most: 31, Open: 255, For: time.Minute}
	for name, c := range map[string]struct {
		takes, noise float64 // of the second step, the first one's being 1
		rounds       int
		saves        bool
	}{
		"a little less in noise": {0.98, 0.1, 255, true},
		"more in noise":          {1.02, 0.1, 31, false},
		"half":                   {0.5, 0.1, 31, true},
		"a little less":          {0.98, 0.002, 31, true},
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		times, err := turns.of(2, func(i int) (float64, error) {
			return (1 + c.noise*(rng.Float64()-0.5)) * (1 + float64(i)*(c.takes-1)), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, saved := len(times[0]), saves(times[0], times[1]); n != c.rounds || len(times[1]) != n || (saved > 0) != c.saves {
			t.Errorf("%s: %d rounds, saves %.3g, want %d and %t", name, n, saved, c.rounds, c.saves)
		}
	}
	turns.For = 0
	if times, _ := turns.of(2, func(i int) (float64, error) { return 1 - 0.01*float64(i), nil }); len(times[0]) != turns.Least {
		t.Errorf("%d rounds when the time was over, want %d", len(times[0]), turns.Least)
	}
}
