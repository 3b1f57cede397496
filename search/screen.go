package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/kernel/plan"
	"tgc/search/database"
	"tgc/target"
)

// A chain of one kernel keeps in caches what a step does not, and its neighbours are as it is itself. So of
// what its search has measured many are tried in the step, for a few turns each, and the best few once more,
// for long: what is noise among many is not noise twice.

// How many plans of a kernel are tried in the step, how many at once in turn with the step as it is, how
// many of them are timed for long, and how much longer than the fastest they may take by themselves.
const (
	screened = 64
	heat     = 8
	finals   = 4
	alone    = 1.4
)

// contenders are the plans of a kernel that are tried in the step: those that are fastest by themselves.
func contenders(found *Result) []Outcome {
	if len(found.Best) == 0 {
		return nil
	}
	return formsFirst(slices.Concat(found.Winners, found.Near, found.Best), found.Before.Plan, alone*found.Best[0].Time)
}

// formsFirst are some outcomes of a list, but for one plan and for those that take longer than so much: first the
// fastest of each number of blocks and threads, by which the kernels around them begin and end.
func formsFirst(list []Outcome, except string, most float64) []Outcome {
	type form struct{ blocks, threads int64 }
	type place struct {
		Outcome
		round int
	}
	var places []place
	rounds, known := make(map[form]int), map[string]bool{except: true}
	for _, o := range list {
		if known[o.Plan] || o.Time > most {
			continue
		}
		known[o.Plan] = true
		var f form
		if o.Figures != nil {
			f = form{o.Figures.Blocks, o.Figures.Threads}
		}
		places = append(places, place{o, rounds[f]})
		rounds[f]++
	}
	slices.SortStableFunc(places, func(x, y place) int { return cmp.Compare(x.round, y.round) })
	out := make([]Outcome, min(len(places), screened))
	for i := range out {
		out[i] = places[i].Outcome
	}
	return out
}

// planned is another plan of a kernel, and the step with it.
type planned struct {
	outcome  Outcome
	found    engine.Found
	compiled *engine.Compiled
	longer   float64 // than the step as it is, in microseconds
}

// screen tries plans of a kernel in the step while there is time, and lists the few with which it is
// fastest, those first. At least one heat is run.
func (t *tuning) screen(ctx context.Context, k *TunedKernel, list []Outcome, until time.Time) ([]*planned, error) {
	all := make([]*planned, len(list))
	for i, o := range list {
		p, err := plan.Parse(o.Plan)
		if err != nil {
			return nil, err
		}
		all[i] = &planned{outcome: o, found: engine.Found{Plan: p, Origin: engine.FromGiven}}
	}
	compiled, stop := t.compileEach(ctx, t.key(k), all)
	defer stop()
	var tried []*planned
	for some := range slices.Chunk(all, heat) {
		for _, p := range some {
			if err := compiled(p); err != nil {
				return nil, err
			}
		}
		if len(all) > finals {
			times, err := t.beside(ctx, some, Screening)
			if err != nil {
				return nil, err
			}
			for i, p := range some {
				p.longer = Longer(times[0], times[i+1])
			}
		}
		if tried = append(tried, some...); ctx.Err() != nil || time.Now().After(until) {
			break
		}
	}
	t.options.Say("%s%s: %d of %d tried in the step", t.prefix(), k.Kernel.Name, len(tried), len(all))
	slices.SortStableFunc(tried, func(x, y *planned) int { return cmp.Compare(x.longer, y.longer) })
	tried = tried[:min(len(tried), finals)]
	return slices.DeleteFunc(tried, func(p *planned) bool { return p.longer > 0 }), nil
}

// compileEach compiles the step as it is with each plan of a list, the next few while some are timed: of a GPU, which
// that does not disturb. stop ends it: steps of one arena are compiled one after the other.
func (t *tuning) compileEach(ctx context.Context, key database.Key, list []*planned) (compiled func(p *planned) error, stop func()) {
	current, config := t.current.Compiled, t.config(t.taken)
	compile := func(p *planned) (err error) {
		config := config
		config.Plans = given{key: p.found}
		p.compiled, err = current.Exchange(ctx, config)
		return err
	}
	if t.step.Compiled.Target.Kind != target.GPU {
		return compile, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, done := make(chan error, heat), make(chan struct{})
	go func() {
		defer close(done)
		for _, p := range list {
			select {
			case ready <- compile(p):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(*planned) error {
			select {
			case err := <-ready:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, func() {
			cancel()
			<-done
		}
}

// beside times the step as it is, and then with each of some plans, in turn.
func (t *tuning) beside(ctx context.Context, some []*planned, turns Turns) ([][]float64, error) {
	steps := []*engine.Step{t.current}
	defer func() {
		for _, s := range steps[1:] {
			s.Free()
		}
	}()
	for _, p := range some {
		s, err := t.step.Capture(ctx, p.compiled)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return t.inTurn(ctx, steps, t.step.Vars, turns)
}

// inStep takes the plan of a kernel that makes the step fastest, if one does, and goes on with its neighbours:
// those of what is fastest by itself were tried by the search, those of what the step likes were not. At last it
// tries what only a step can judge.
func (t *tuning) inStep(ctx context.Context, i int, k *TunedKernel, found *Result, until time.Time) error {
	among := contenders(found)
	k.Note = nothing(found, among) + t.far(found)
	rest := 1.0 // of the step's time
	end := time.Now().Add(time.Duration((1 - t.forDivisions()) * float64(time.Until(until))))
	for divided := false; ; {
		saved, err := t.takeBest(ctx, k, among, end)
		if rest *= 1 - saved; rest < 1 {
			k.Note = fmt.Sprintf("the step takes %.2f %% less", 100*(1-rest))
		}
		if err != nil || t.options.Search.Only || t.tasks[k] != nil || ctx.Err() != nil {
			return err
		}
		list := t.around
		switch late := time.Until(end) < leastTime; {
		case saved > 0 && !late:
		case !divided && t.forDivisions() > 0:
			divided, list, end = true, t.divisions, until
		default:
			return nil
		}
		if time.Until(until) < leastTime/2 {
			return nil
		}
		if among, err = t.more(ctx, i, k, found, until, list); err != nil {
			return err
		}
	}
}

// forDivisions is the part of a kernel's time in the step in which divisions of the first cache are tried.
func (t *tuning) forDivisions() float64 {
	if plan.CARVEOUT.On(t.step.Compiled.Target) {
		return 0.25
	}
	return 0
}

// aroundMost are neighbours of a plan that was taken, at most, and forAround is for trying them of the time that is left.
const (
	aroundMost = 96
	forAround  = 0.4
)

// around lists neighbours of a plan that was taken.
func (t *tuning) around(k *TunedKernel, p plan.Plan) []plan.Plan {
	return newNeighbours(k.Kernel.AST, t.step.Compiled.Target, t.options.Search.Seed).of(p, math.MaxInt)
}

// divisions lists a plan with each division of the first cache. By itself a kernel gains nothing by one: what it
// changes is which blocks of the kernels around run beside its own.
func (t *tuning) divisions(k *TunedKernel, p plan.Plan) (list []plan.Plan) {
	desc := t.step.Compiled.Target
	reader := plan.NewReader(k.Kernel.AST, desc)
	without := lists.Filter(p.Opts, func(o plan.Opt) bool { return o.Kind != plan.CARVEOUT })
	for _, kb := range plan.CARVEOUT.Amounts(desc) {
		list = append(list, reader.Keep(append(slices.Clone(without), plan.Opt{Kind: plan.CARVEOUT, Amount: int64(kb)})))
	}
	return list
}

// more tries plans that are listed for the one that the step has by themselves, where those before it were not.
func (t *tuning) more(ctx context.Context, i int, k *TunedKernel, found *Result, until time.Time, list func(*TunedKernel, plan.Plan) []plan.Plan) ([]Outcome, error) {
	p, err := plan.Parse(k.After.Plan)
	if err != nil {
		return nil, err
	}
	tried := make(map[string]bool)
	for _, o := range found.Outcomes {
		tried[o.Plan] = true
	}
	options := t.options.Search
	options.Only, options.Scratch, options.Budget = true, false, time.Duration(forAround*float64(time.Until(until)))
	options.Extra = slices.DeleteFunc(list(k, p), func(p plan.Plan) bool { return tried[p.String()] })
	options.Extra = options.Extra[:min(len(options.Extra), aroundMost)]
	if len(options.Extra) == 0 {
		return nil, nil
	}
	more, err := t.try(ctx, i, k, options, nil)
	if err != nil {
		return nil, err
	}
	k.Candidates += len(more.Outcomes)
	for status, n := range t.rejected(k, more.Outcomes) {
		k.Rejected[status] += n
	}
	found.Outcomes = append(found.Outcomes, more.Outcomes...)
	return contenders(more), nil
}

// takeBest tries plans of a kernel in the step, and takes the one that makes it fastest, if that is more than
// noise, and not slower where symbols are largest. It says what part of the step's time that saves.
func (t *tuning) takeBest(ctx context.Context, k *TunedKernel, among []Outcome, until time.Time) (float64, error) {
	list, err := t.screen(ctx, k, among, until)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	turns := Confirming
	turns.For = min(turns.For, max(time.Until(until), leastTime/2))
	times, err := t.beside(ctx, list, turns)
	if err != nil {
		return 0, err
	}
	saved := make(map[*planned]float64)
	for i, p := range list {
		saved[p] = saves(times[0], times[i+1])
	}
	slices.SortStableFunc(list, func(x, y *planned) int { return cmp.Compare(saved[y], saved[x]) })
	for _, p := range list {
		if saved[p] <= 0 {
			break
		}
		if taken, err := t.takeNow(ctx, k, p, saved[p]); taken || err != nil {
			return saved[p], err
		}
	}
	return 0, nil
}

// nothing says that no plan was taken, as long as that is so.
func nothing(found *Result, among []Outcome) string {
	switch {
	case len(found.Winners) > 0:
		return fmt.Sprintf("%.1f %% faster by itself, not in the step", 100*found.Gain)
	case len(among) > 0:
		return "nothing is faster, by itself or in the step"
	case !found.Complete:
		return "nothing is faster in its share of the budget"
	}
	return "nothing is faster"
}

// takeNow takes a plan, and stays with its step. Kernels that depend on symbols may have gained at this
// length of a text and lose at others.
func (t *tuning) takeNow(ctx context.Context, k *TunedKernel, p *planned, saved float64) (bool, error) {
	s, err := t.step.Capture(ctx, p.compiled)
	if err != nil {
		return false, err
	}
	slower := 0.0
	if len(symbolValues(k.Kernel.AST)) > 1 {
		slower, err = t.slowerFar(ctx, t.current, s)
	}
	if err != nil || slower > 0 {
		s.Free()
		k.Note = fmt.Sprintf("the step takes %.2f %% less, but %.2f %% more where symbols are largest", 100*saved, 100*slower)
		return false, err
	}
	t.current.Free()
	t.current, t.known[t.key(k)] = s, p.found
	k.After = p.outcome
	k.Why = why(k.Before, k.After)
	return true, nil
}

// finish times the step as it was and as it is. Plans that were faster one by one and are slower together
// are given back.
func (t *tuning) finish(ctx context.Context) error {
	if len(t.known) == 0 && t.taken.Len() == 0 {
		return nil
	}
	times, err := t.inTurn(ctx, []*engine.Step{t.plain, t.decided, t.current}, t.step.Vars, Confirming)
	if err != nil {
		return err
	}
	after, slower := times[2], saves(times[2], times[1]) > 0
	if !slower && len(t.known) > 0 {
		more, err := t.slowerFar(ctx, t.decided, t.current)
		if err != nil {
			return err
		}
		slower = more > 0
	}
	if slower {
		after = times[1]
		if err := t.giveBack(ctx); err != nil {
			return err
		}
	}
	t.result.Before, t.result.After, t.result.Saved = median(times[0]), median(after), saves(times[0], after)
	t.result.Spread = [2][2]float64{quarters(times[0]), quarters(after)}
	return nil
}

// giveBack has all kernels of the step keep the heuristics' plans.
func (t *tuning) giveBack(ctx context.Context) error {
	t.known = make(given)
	for _, k := range t.result.Kernels {
		if k.After.Plan == k.Before.Plan {
			continue
		}
		k.Note = "not taken, since the step takes longer with all plans that were; by itself " + k.Note
		k.After, k.Why = k.Before, ""
		if err := t.store(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
