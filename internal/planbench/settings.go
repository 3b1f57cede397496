package main

import (
	"fmt"
	"math"
)

// compareSettings says of each setting of added Opts how long the candidates of a kernel
// take with it, compared with the same candidates without, on average, and what the
// fastest of each take.
func compareSettings(pairs []pair) (lines []string) {
	without := make(map[int]float64)
	fastest := math.Inf(1)
	var settings []string
	with := make(map[string][]pair)
	for _, p := range pairs {
		if p.With == "" {
			without[p.Rank], fastest = p.Time, min(fastest, p.Time)
			continue
		}
		if with[p.With] == nil {
			settings = append(settings, p.With)
		}
		with[p.With] = append(with[p.With], p)
	}
	for _, name := range settings {
		sum, best := 0.0, math.Inf(1)
		for _, p := range with[name] {
			sum, best = sum+math.Log(p.Time/without[p.Rank]), min(best, p.Time)
		}
		n := len(with[name])
		lines = append(lines, fmt.Sprintf("with %s: %.3f times as long (%d candidates); the fastest %.2f us, without %.2f", name, math.Exp(sum/float64(n)), n, best, fastest))
	}
	return lines
}
