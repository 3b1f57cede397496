package testkit_test

import (
	"testing"

	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
)

// Every mistake in kernelMutants, at several places of every fixed graph, gives
// values that differ from the eager model's, or a fault. A mistake that finds
// no place any more is an error too.
func TestKernelMutantsAreSeen(t *testing.T) {
	places := make(map[string]int)
	for _, entry := range testkit.Zoo() {
		if entry.Large {
			continue
		}
		for _, opt := range []schedule.Options{schedule.DefaultOptions(), schedule.CPUOptions()} {
			mutateKernels(t, entry, opt, places)
		}
	}
	for i := range kernelMutants {
		if m := &kernelMutants[i]; places[m.Name] == 0 {
			t.Errorf("mutant %q applies nowhere", m.Name)
		}
	}
	t.Logf("places: %v", places)
}

func mutateKernels(t *testing.T, entry testkit.ZooEntry, opt schedule.Options, places map[string]int) {
	// A mistake may change nothing for some contents: three sets must agree
	// before it counts as unseen.
	var cases []*testkit.Case
	var wants []map[int64]*testkit.Numbers
	for seed := range uint64(3) {
		c, err := entry.Build(seed)
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.ExpectedWide()
		if err != nil {
			t.Fatal(err)
		}
		cases, wants = append(cases, c), append(wants, want)
	}
	sink, err := cases[0].Sink()
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArena()
	s, err := schedule.Run(t.Context(), a, a.Import(sink), opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range kernelMutants {
		m := &kernelMutants[i]
		places[m.Name] += m.mutations(a, s, 3, func(mutated *schedule.Schedule, where string) {
			for k, c := range cases {
				got, err := c.RunSchedule(t.Context(), mutated, interp.KernelOptions{Float64: true})
				if err != nil || testkit.Compare(got, wants[k]) != nil {
					return
				}
			}
			t.Errorf("%s: survives: %s", entry.Name, where)
		})
	}
}
