package search

import (
	"context"
	"testing"
	"time"

	"tgc/kernel/plan"
)

// As many candidates are ordered together as are lowered in a small part of the time.
func TestPaced(t *testing.T) {
	least, most := usualBatch(), 8*usualBatch()
	for _, c := range []struct {
		now          int
		took, budget time.Duration
		want         int
	}{
		{least, time.Millisecond, time.Second, 2 * least},
		{most, time.Millisecond, time.Second, most},
		{most, 100 * time.Millisecond, time.Second, most},
		{most, 500 * time.Millisecond, time.Second, most / 2},
		{least, 500 * time.Millisecond, time.Second, least},
		{most, 500 * time.Millisecond, 0, most}, // no end: nothing is lost
	} {
		if got := paced(c.now, c.took, c.budget, most); got != c.want {
			t.Errorf("%d at once in %v of %v: then %d, want %d", c.now, c.took, c.budget, got, c.want)
		}
	}
	if got := paced(4, time.Second, time.Second, 4); got != 4 {
		t.Errorf("%d at once, want the 4 that were asked for", got)
	}
}

// Where as many candidates as are assembled at once do not fit into what is left of the time, the search ends: none would come
// to its end.
func TestNoBatchIsCutShort(t *testing.T) {
	s := &search{options: Options{Budget: time.Minute}, start: time.Now()}
	if s.each = time.Second / 100; !s.inTime(t.Context()) {
		t.Error("over, with a minute left for candidates of ten milliseconds")
	}
	if s.each = time.Minute; s.inTime(t.Context()) {
		t.Error("goes on, with a minute left for candidates of a minute")
	}
	if s.options.Budget = 0; !s.inTime(t.Context()) {
		t.Error("over, where time has no end")
	}
}

// ending is a tester that notes when it is to end.
type ending struct {
	allAlike
	at []time.Time
}

func (e *ending) Try(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	at, _ := ctx.Deadline()
	e.at = append(e.at, at)
	return e.allAlike.Try(ctx, plans)
}

// What the price likes best is tried also where the budget is short; what follows ends with it.
func TestFirstBatchHasTime(t *testing.T) {
	tester := &ending{}
	s := &search{tester: tester, options: Options{Budget: time.Second}, start: time.Now()}
	for range 2 {
		out, err := s.tryInTime(t.Context(), []plan.Plan{{}})
		if err != nil {
			t.Fatal(err)
		}
		s.result.Outcomes = append(s.result.Outcomes, out...)
	}
	for i, want := range []time.Duration{time.Second + overrun, time.Second * 5 / 4} {
		if got := tester.at[i].Sub(s.start); got != want {
			t.Errorf("batch %d ends after %v, want %v", i, got, want)
		}
	}
}
