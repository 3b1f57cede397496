package search

import (
	"context"
	"fmt"

	"tgc/engine"
	"tgc/schedule"
	"tgc/search/database"
	"tgc/target"
)

// Layouts of weights are decisions of those who load them: a step is there twice, with its weights in
// either layout, and what makes it faster in turn is taken. They come before the decisions of the
// schedule, since another layout is another board.

// TunedLayout is a layout that was taken.
type TunedLayout struct {
	TunedDecision
	Before, After float64       // us of the step with either layout
	Spread        [2][2]float64 // of both: the quarters of their rounds
	Saved         float64       // part of the step
}

// Include has a step that was tuned with a layout say what that saved, too: what it was before is the step with the
// layout by price. Both were timed in turn with the step as the layout alone makes it, not with each other.
func (t *Tuned) Include(l *TunedLayout) {
	t.Decisions = append(t.Decisions, l.TunedDecision)
	if t.Before == 0 { // no plan was taken
		t.Before, t.After, t.Spread, t.Saved = l.Before, l.After, l.Spread, l.Saved
		return
	}
	ratio := l.Before / l.After
	t.Before *= ratio
	for i := range t.Spread[0] {
		t.Spread[0][i] *= ratio
	}
	t.Saved = 1 - (1-t.Saved)*(1-l.Saved)
}

// LayoutTried reports a decision on a layout that the database has for a board, and is not to be tried again.
func LayoutTried(d schedule.Decision, desc *target.Desc, options TuneOptions) bool {
	if options.DB == nil || options.Again {
		return false
	}
	entries, _ := options.DB.List()
	for _, e := range entries {
		one, err := schedule.ParseDecisions(e.Decision)
		if e.Decision != "" && err == nil && e.Target == database.BoardOf(desc) && !e.Unproven && one.Has(d) {
			return true
		}
	}
	return false
}

// TryLayout times a step as the weights lie by price, and as a decision has them, in turn, both with the
// heuristics' plans. desc is the device's: the board for which the decision is stored.
func TryLayout(ctx context.Context, plain, other Step, d schedule.Decision, desc *target.Desc, options TuneOptions) (taken *TunedLayout, err error) {
	return newTuning(plain, options).layout(ctx, newTuning(other, options), d, desc)
}

// layout takes another step instead of its own where that is faster.
func (before *tuning) layout(ctx context.Context, after *tuning, d schedule.Decision, desc *target.Desc) (taken *TunedLayout, err error) {
	for _, t := range []*tuning{before, after} {
		defer t.free()
		if t.plain, err = t.capture(ctx, nil); err != nil {
			return nil, err
		}
		t.decided = t.plain
	}
	times, err := before.inTurn(ctx, []*engine.Step{before.plain, after.plain}, before.step.Vars, Confirming)
	if err != nil {
		return nil, ctxOr(ctx, err)
	}
	saved, note := saves(times[0], times[1]), "the step is not faster"
	if saved > 0 {
		note = fmt.Sprintf("the step takes %.2f %% less", 100*saved)
		if err := before.judgeKernels(ctx, after.plain); err != nil {
			saved, note = 0, "wrong values: "+err.Error()
			before.options.Say("%s: %s", d, note)
		}
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	found := &TunedLayout{TunedDecision: TunedDecision{d, "how weights lie", note}, Before: median(times[0]), After: median(times[1]), Saved: saved}
	found.Spread = [2][2]float64{quarters(times[0]), quarters(times[1])}
	e := database.NewDecision(d, desc)
	e.Before, e.After, e.Kept, e.Reason = found.Before, found.After, saved <= 0, found.Of+": "+note
	if db := before.options.DB; db != nil {
		err = db.Put(e)
	}
	before.options.Say("%s: %s (%.4g us, %.4g us)", d, note, e.Before, e.After)
	if saved <= 0 {
		return nil, err
	}
	return found, err
}
