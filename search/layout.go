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
func TryLayout(ctx context.Context, plain, other Step, d schedule.Decision, desc *target.Desc, options TuneOptions) (taken *TunedDecision, err error) {
	return newTuning(plain, options).layout(ctx, newTuning(other, options), d, desc)
}

// layout takes another step instead of its own where that is faster.
func (before *tuning) layout(ctx context.Context, after *tuning, d schedule.Decision, desc *target.Desc) (taken *TunedDecision, err error) {
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
	found := &TunedDecision{d, "how weights lie", note}
	e := database.NewDecision(d, desc)
	e.Before, e.After, e.Kept, e.Reason = median(times[0]), median(times[1]), saved <= 0, found.Of+": "+note
	if db := before.options.DB; db != nil {
		err = db.Put(e)
	}
	before.options.Say("%s: %s (%.4g us, %.4g us)", d, note, e.Before, e.After)
	if saved <= 0 {
		return nil, err
	}
	return found, err
}
