package search_test

import (
	"testing"

	"tgc/runtime/interp"
	"tgc/search"
)

// What is expected of plans is known without running them, in this process and in a child: less of those with
// less to do. They can be tried afterwards.
func TestExpect(t *testing.T) {
	k := kernelOf(t, matvec(t, "Q8_0", 5, 96), interp.New(interp.Options{}))
	plans := parse(t, k.Plan.String(), "", "VECTOR r9 4")
	for _, child := range []bool{false, true} {
		tester := testerOf(t, k, optionsOf(k), "", child)
		got, err := tester.(search.Expecter).Expect(t.Context(), plans)
		if err != nil || len(got) != len(plans) {
			t.Fatalf("child %v: %+v, %v", child, got, err)
		}
		if got[0].Status != search.Expected || got[1].Status != search.Expected || got[2].Status != search.Refused {
			t.Errorf("child %v: %+v, want two expected and one refused", child, got)
		}
		if got[0].Time <= 0 || got[0].Time >= got[1].Time {
			t.Errorf("child %v: %v of the heuristic's plan, %v of the empty one", child, got[0].Time, got[1].Time)
		}
		tried, err := tester.Try(t.Context(), plans[:1])
		if err != nil || tried[0].Status != search.Measured {
			t.Errorf("child %v: %+v, %v, want it measured", child, tried, err)
		}
	}
}
