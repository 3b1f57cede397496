package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tgc/engine"
	"tgc/ir"
	"tgc/schedule"
	"tgc/search/database"
	"tgc/target"
)

// Decisions of the schedule are searched before the kernels, which they make: each that a price has
// made is turned round, one after the other, those first that change most of the step's time. What
// makes the step faster in turn, and keeps its values, is taken, and the next are tried on top of it.

// TunedDecision is one that was taken.
type TunedDecision struct {
	schedule.Decision
	Of   string // the value, in words
	Note string
}

// flip is a decision that may be tried.
type flip struct {
	schedule.Decision
	of      string
	text    string  // of the schedule that it gives; empty: as before, or none
	changes float64 // part of the step's time that kernels take which it changes
}

// replayDecisions takes those that the database has.
func (t *tuning) replayDecisions(ctx context.Context) error {
	if t.options.DB == nil || t.options.Again {
		return nil
	}
	list, bad := t.options.DB.Decisions(t.step.Compiled.Target)
	for _, err := range bad {
		t.options.Say("%s%v", t.prefix(), err)
	}
	if list.Len() == 0 {
		return nil
	}
	s, err := t.with(ctx, list)
	if err != nil {
		t.options.Say("%sdecisions of the database are not used: %v", t.prefix(), err)
		return nil
	}
	if len(s.Compiled.Decisions) == 0 {
		s.Free()
		return nil
	}
	for _, d := range s.Compiled.Decisions {
		t.result.Decisions = append(t.result.Decisions, TunedDecision{d.Decision, d.Value, "in the database"})
	}
	t.adopt(s, list)
	return nil
}

// with is the step with other decisions, captured.
func (t *tuning) with(ctx context.Context, list schedule.Decisions) (*engine.Step, error) {
	c, err := t.step.Compiled.Reschedule(ctx, t.config(list))
	if err != nil {
		return nil, err
	}
	return t.step.Capture(ctx, c)
}

// adopt goes on from a step with other decisions.
func (t *tuning) adopt(s *engine.Step, taken schedule.Decisions) {
	if t.decided != t.plain {
		t.decided.Free()
	}
	t.decided, t.taken, t.step.Compiled = s, taken, s.Compiled
}

// decide tries decisions for a part of the time.
func (t *tuning) decide(ctx context.Context, part float64) error {
	budget := time.Duration(float64(t.options.Budget) * t.options.Fusion * part)
	if budget < leastFusion {
		return nil
	}
	end := time.Now().Add(budget)
	flips, err := t.flips(ctx, end)
	if err != nil {
		return ctxOr(ctx, err)
	}
	before := t.taken.Len()
	ahead := t.compileAhead(ctx, flips)
	for i, f := range flips {
		if ctx.Err() != nil || time.Now().After(end) {
			break
		}
		t.options.Say("%sdecision %d/%d: %s, %s: changes %.1f %% of the step", t.prefix(), i+1, len(flips), f.Decision, f.of, 100*f.changes)
		if err := t.flip(ctx, f, func() (*engine.Compiled, error) { return ahead(i) }); err != nil {
			return ctxOr(ctx, err)
		}
	}
	if t.taken.Len() == before || ctx.Err() != nil {
		return nil
	}
	return t.look(ctx)
}

// compileAhead compiles what flips give, and of a GPU, which what runs on the host does not disturb, some that
// follow at once. What was compiled before a flip was taken is compiled again.
func (t *tuning) compileAhead(ctx context.Context, flips []flip) func(i int) (*engine.Compiled, error) {
	type made struct {
		taken schedule.Decisions
		c     *engine.Compiled
		err   error
	}
	ready, most := make(map[int]chan made), 1
	if t.step.Compiled.Target.Kind == target.GPU {
		most = max(cmp.Or(t.options.Bench.Parallel, runtime.GOMAXPROCS(0))/2, 1)
	}
	start := func(i int) {
		out, base, taken := make(chan made, 1), t.step.Compiled, t.taken
		ready[i] = out
		go func() {
			c, err := base.Reschedule(ctx, t.config(taken.With(flips[i].Decision)))
			out <- made{taken, c, err}
		}()
	}
	return func(i int) (*engine.Compiled, error) {
		for k := i; k < min(i+most, len(flips)); k++ {
			if ready[k] == nil {
				start(k)
			}
		}
		m := <-ready[i]
		if m.taken.Len() != t.taken.Len() {
			start(i)
			m = <-ready[i]
		}
		delete(ready, i)
		return m.c, m.err
	}
}

// leastFusion is the time in which some decisions can be tried.
const leastFusion = time.Second

// leastChange is of the step what a decision must change to be tried, and forSchedules of the time what
// goes into finding out.
const (
	leastChange  = 0.01
	forSchedules = 0.4
)

// flips lists decisions that change the schedule, those first that change most; each schedule once.
func (t *tuning) flips(ctx context.Context, until time.Time) ([]flip, error) {
	config := t.config(t.taken)
	config.Explain = true
	now, err := t.step.Compiled.ScheduleWith(ctx, config)
	if err != nil {
		return nil, err
	}
	config.Explain = false
	var list []flip
	for _, d := range t.offeredDecisions(schedule.Flips(now.Records)) {
		list = append(list, flip{Decision: d, of: valueOf(now.Records, d)})
	}
	slices.SortStableFunc(list, func(x, y flip) int { return cmp.Compare(promise(x), promise(y)) })
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(t.options.Bench.Parallel, runtime.GOMAXPROCS(0)))
	var late atomic.Bool
	end := time.Now().Add(time.Duration(forSchedules * float64(time.Until(until))))
	shares, text := t.sharesOfForms(now), now.String()
	for i := range list {
		group.Go(func() error {
			f, config := &list[i], config
			if late.Load() || ctx.Err() != nil {
				return nil
			}
			late.Store(time.Until(end) < 0)
			config.Decide = config.Decide.With(f.Decision)
			if s, err := t.step.Compiled.ScheduleWith(ctx, config); err == nil && s.String() != text {
				f.text, f.changes = s.String(), shares.changed(now, s)
			} // else it is not legal, or has no effect
			return nil
		})
	}
	_ = group.Wait()
	slices.SortStableFunc(list, func(x, y flip) int { return cmp.Compare(y.changes, x.changes) })
	known := make(map[string]bool)
	return slices.DeleteFunc(list, func(f flip) bool {
		again := known[f.text]
		known[f.text] = true
		return f.text == "" || again || f.changes < leastChange
	}), nil
}

// promising are rules of which other decisions are looked at first: those that make or save a launch.
var promising = []schedule.Rule{"split-grid", "placement", "order-levels", "fuse-tile-epilogues", "stage-prologues", "broadcast-reduces"}

func promise(f flip) int {
	if i := slices.Index(promising, f.Rule); i >= 0 {
		return i
	}
	return len(promising)
}

// offeredDecisions are entries of others for the board, then some that were not tried on it before.
func (t *tuning) offeredDecisions(flips []schedule.Decision) (list []schedule.Decision) {
	tried := make(map[schedule.Decision]bool)
	if t.options.DB != nil {
		entries, _ := t.options.DB.List()
		for _, e := range entries {
			one, err := schedule.ParseDecisions(e.Decision)
			if e.Decision == "" || err != nil || e.Target != database.BoardOf(t.step.Compiled.Target) {
				continue
			}
			if tried[one.List()[0]] = !t.options.Again; e.Unproven {
				list = append(list, one.List()...)
			}
		}
	}
	for _, d := range flips {
		if !tried[d] && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// valueOf describes a value by the records on it.
func valueOf(records []schedule.Record, d schedule.Decision) string {
	if i := slices.IndexFunc(records, func(r schedule.Record) bool { return r.At == d.Value }); i >= 0 {
		return records[i].Value
	}
	return d.Value
}

// formShares are the shares of the step's time that forms of kernels take, for each of their calls.
type formShares map[uint64]float64

func (t *tuning) sharesOfForms(now *schedule.Schedule) formShares {
	shares, calls := make(formShares), formsOf(now)
	for _, k := range t.result.Kernels {
		if form := ir.CanonicalHash(k.Kernel.AST); calls[form] > 0 {
			shares[form] = k.Share / float64(calls[form])
		}
	}
	return shares
}

// formsOf counts the kernels of a schedule by their forms.
func formsOf(s *schedule.Schedule) map[uint64]int {
	forms := make(map[uint64]int)
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			forms[ir.CanonicalHash(k.AST)]++
		}
	}
	return forms
}

// changed is the part of the time of kernels that another schedule does not have. Where it has all of
// them, in other launches, these are what changes.
func (f formShares) changed(now, other *schedule.Schedule) (part float64) {
	left, calls := formsOf(other), formsOf(now)
	same := true
	for form, n := range calls {
		if gone := n - left[form]; gone > 0 {
			part, same = part+f[form]*float64(gone), false
		}
	}
	if !same || len(left) != len(calls) {
		return part
	}
	launches := make(map[string]int)
	for _, l := range other.Launches {
		launches[textOfLaunch(l)]++
	}
	for _, l := range now.Launches {
		if launches[textOfLaunch(l)]--; launches[textOfLaunch(l)] < 0 {
			for _, k := range l.Kernels {
				part += f[ir.CanonicalHash(k.AST)]
			}
		}
	}
	return part
}

func textOfLaunch(l schedule.Launch) (text string) {
	for _, k := range l.Kernels {
		text += fmt.Sprintf("%x ", ir.CanonicalHash(k.AST))
	}
	return text
}

// flip tries a decision, and takes it if the step is faster and its values stay.
func (t *tuning) flip(ctx context.Context, f flip, compiled func() (*engine.Compiled, error)) error {
	t.result.Flips++
	taken := t.taken.With(f.Decision)
	c, err := compiled()
	var s *engine.Step
	if err == nil {
		s, err = t.step.Capture(ctx, c)
	}
	if err != nil {
		if ctx.Err() == nil {
			t.options.Say("%s%s: not legal: %v", t.prefix(), f.Decision, err)
			return t.storeDecision(f, 0, 0, "not legal")
		}
		return nil
	}
	times, err := t.inTurn(ctx, []*engine.Step{t.decided, s}, t.step.Vars, Confirming)
	if err != nil {
		s.Free()
		return err
	}
	before, after, saved := median(times[0]), median(times[1]), saves(times[0], times[1])
	note := "the step is not faster"
	if saved > 0 {
		note = fmt.Sprintf("the step takes %.2f %% less", 100*saved)
		if slower, err := t.slowerFar(ctx, t.decided, s); err != nil {
			s.Free()
			return err
		} else if slower > 0 {
			saved, note = 0, fmt.Sprintf("%s, but %.2f %% more where symbols are largest", note, 100*slower)
		}
	}
	if saved > 0 {
		if err := t.judge(ctx, s); err != nil {
			t.options.Say("%s%s: %v", t.prefix(), f.Decision, err)
			saved, note = 0, "wrong values"
		}
	}
	if ctx.Err() != nil || saved <= 0 {
		s.Free()
		if ctx.Err() != nil {
			return nil
		}
		return t.storeDecision(f, before, after, note)
	}
	t.options.Say("%s%s is taken: %s", t.prefix(), f.Decision, note)
	t.adopt(s, taken)
	t.result.Decisions = append(t.result.Decisions, TunedDecision{f.Decision, f.of, note})
	return t.storeDecision(f, before, after, note)
}

// slowerFar is by what part a step is slower than the one before it where all symbols are largest: decisions
// and plans hold for every length of a text, and what is good for a short one may not be for a long one.
func (t *tuning) slowerFar(ctx context.Context, before, s *engine.Step) (float64, error) {
	far := maps.Clone(t.step.Vars)
	for _, v := range t.step.Compiled.Variables {
		if _, ok := far[v.Name]; ok {
			far[v.Name] = v.Hi - v.Hi%max(v.Multiple, 1)
		}
	}
	if maps.Equal(far, t.step.Vars) {
		return 0, nil
	}
	times, err := t.inTurn(ctx, []*engine.Step{s, before}, far, Confirming)
	if err != nil {
		return 0, err
	}
	less := saves(times[0], times[1])
	return less / (1 - less), nil
}

// storeDecision puts a decision into the database: as one that is kept as prices make it, unless it was
// taken.
func (t *tuning) storeDecision(f flip, before, after float64, note string) error {
	if t.options.DB == nil {
		return nil
	}
	e := database.NewDecision(f.Decision, t.step.Compiled.Target)
	e.Before, e.After, e.Kept, e.Reason = before, after, !t.taken.Has(f.Decision), f.of+": "+note
	if err := t.options.DB.Put(e); err != nil {
		t.result.Unstored = fmt.Errorf("%s is not stored: %w", f.Decision, err)
		t.options.Say("%s%v", t.prefix(), t.result.Unstored)
	}
	return nil
}
