package search

import (
	"slices"
	"testing"

	"tgc/kernel/plan"
)

// Opts that have changed nothing twice, and never anything, come last.
func TestIdle(t *testing.T) {
	d := newIdle()
	d.learn([]Outcome{
		{Plan: "", Source: "a"}, {Plan: "FMA", Source: "b"},
		{Plan: "STREAM p0", Source: "a"}, {Plan: "FMA; STREAM p0", Source: "b"}, // nothing, twice
		{Plan: "STREAM p1", Source: "a"}, // once
		{Plan: "PREFETCH p2 64", Source: "a"}, {Plan: "FMA; PREFETCH p2 128", Source: "b"}, {Plan: "UPCAST s0 2; PREFETCH p2 64", Source: "d"}, {Plan: "UPCAST s0 2", Source: "c"},
		{Plan: "REFILL off", Status: Refused},
	})
	var list []plan.Plan
	for _, text := range []string{"FMA; STREAM p0", "STREAM p1", "UNROLL r0 2; STREAM p0", "PREFETCH p2 256", "FMA"} {
		list = append(list, parsed(t, text))
	}
	got := textsOf(d.last(list, plan.Plan{}))
	if want := []string{"STREAM p1", "PREFETCH p2 256", "FMA", "FMA; STREAM p0", "UNROLL r0 2; STREAM p0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := textsOf(d.last(list, parsed(t, "STREAM p0"))); got[0] != "FMA; STREAM p0" {
		t.Errorf("%q: of a plan that has the Opt, its neighbours stay", got)
	}
}

// A plan that repeats far more code than one that was too large is not lowered.
func TestCeilings(t *testing.T) {
	k := smallKernel(t, 0, llvmTarget(t))
	c := newCeilings(k)
	c.note(parsed(t, "VECTOR r0 16; UPCAST s0 7"), TooLarge)
	c.note(parsed(t, "VECTOR r0 8"), Measured)
	for text, over := range map[string]bool{
		"VECTOR r0 16; UPCAST s0 14": true, "UNROLL s0 21; VECTOR r0 16": true,
		"VECTOR r0 16; UPCAST s0 12": false, "VECTOR r0 8; UPCAST s0": false, "VECTOR r0 16; UPCAST s0 14; FMA": false, "VECTOR r0 999": false,
	} {
		if got := c.over(parsed(t, text)); (got != "") != over {
			t.Errorf("%s: %q", text, got)
		}
	}
}
