package main

import (
	"slices"
	"testing"
)

// A setting is compared with the candidates that accept it, and the fastest of all.
func TestCompareSettings(t *testing.T) {
	pairs := []pair{
		{Rank: 0, Time: 4}, {Rank: 0, Time: 2, With: "AHEAD 32"},
		{Rank: 3, Time: 3}, {Rank: 3, Time: 6, With: "AHEAD 32"}, {Rank: 3, Time: 3.3, With: "REFILL off"},
	}
	want := []string{
		"with AHEAD 32: 1.000 times as long (2 candidates); the fastest 2.00 us, without 3.00",
		"with REFILL off: 1.100 times as long (1 candidates); the fastest 3.30 us, without 3.00",
	}
	if got := compareSettings(pairs); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
