package search

import (
	"context"
	"math"
	"time"

	"tgc/engine"
	"tgc/kernel/plan"
)

// A search from scratch begins with plans drawn by chance, few of which are any good. To lower one takes some
// milliseconds, and says how many instructions there are for how many threads; to assemble it, check its values and
// time it takes many times as long. So it is first a search by what is expected of programs alone, and what that
// finds, of different numbers of blocks and threads, is where the search by times begins.

// Expecter is a Tester that says what it expects of plans without running them.
type Expecter interface {
	// Expect returns an outcome for each plan: Expected with a time in no unit, or why there is none.
	Expect(ctx context.Context, plans []plan.Plan) ([]Outcome, error)
}

// Expect lowers plans, as many at once as Parallel says.
func (b *Bench) Expect(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	list, out := make([]*lowered, len(plans)), make([]Outcome, len(plans))
	b.each(len(plans), func(i int) { list[i] = b.lowerUnlessLarge(ctx, plans[i]) })
	score := b.score()
	for i, l := range list {
		if b.sizes.note(plans[i], l.outcome.Status); l.program != nil {
			l.outcome.Status, l.outcome.Time = Expected, score(l)
			l.outcome.Figures = &Figures{Blocks: l.program.Units(), Threads: l.program.Threads()}
		}
		out[i] = l.outcome
	}
	return out, context.Cause(ctx)
}

// score is what is expected of programs that were lowered: less of those that are faster.
func (b *Bench) score() func(l *lowered) float64 {
	vars, expect := b.points[len(b.points)/2], func(f Features) float64 { return f.estimate(b.kernel.Target) }
	if m := b.options.Model; m != nil {
		expect = func(f Features) float64 { return math.Exp(m.Score(f)) }
	}
	return func(l *lowered) float64 { return expect(FeaturesOf(l.program, l.size, b.kernel.Target, vars)) }
}

// expecting is a tester that takes what is expected of plans for their times.
type expecting struct {
	of   Expecter
	ctx  context.Context   // of the search: what ends one part of it does not cut a batch short
	seen map[string]string // plan by hash of the source
}

func (e expecting) Try(_ context.Context, plans []plan.Plan) ([]Outcome, error) {
	out, err := e.of.Expect(e.ctx, plans)
	for i := range out {
		o := &out[i]
		switch other, known := e.seen[o.Source]; {
		case o.Status != Expected:
		case known:
			o.Status, o.Reason = Duplicate, "of "+other
		default:
			o.Status, e.seen[o.Source] = Measured, o.Plan
		}
	}
	return out, err
}

func (expecting) Compare(_ context.Context, plans []plan.Plan, _ int) ([][]float64, error) {
	return make([][]float64, len(plans)), nil
}

func (expecting) Close() error { return nil }

// The search by what is expected: part of the time, and how many times as much as of the best may be expected of
// the others.
const (
	forExpected    = 0.25
	expectedWithin = 2.0
)

// drafted are plans from which a search from scratch begins.
func (s *search) drafted(ctx context.Context) ([]plan.Plan, error) {
	e, ok := s.tester.(Expecter)
	if !ok || s.options.Expected == 0 {
		return s.drafts.draw(firstDrafts), nil // others each time
	}
	found, err := s.expected(ctx, e)
	if err != nil {
		return nil, ctxOr(ctx, err)
	}
	if len(found.Best) == 0 {
		return s.drafts.draw(firstDrafts), nil
	}
	var list []plan.Plan
	for _, o := range formsFirst(found.Best, "", expectedWithin*found.Best[0].Time) {
		p, err := plan.Parse(o.Plan)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// expected searches by what is expected of plans.
func (s *search) expected(ctx context.Context, e Expecter) (*Result, error) {
	options := Options{Batch: s.options.Batch, Seed: s.options.Seed + 1 + uint64(s.restarts), Scratch: true, most: s.options.Expected}
	if s.options.Budget > 0 {
		options.Budget = max(time.Duration(forExpected*float64(s.options.Budget)), 1)
	}
	by, err := newSearch(s.kernel, expecting{e, ctx, make(map[string]string)}, options)
	if err != nil {
		return nil, err
	}
	err = by.evolve(ctx)
	return &by.result, err
}

// Rehearsal is what a search from scratch comes to by what is expected of programs alone.
type Rehearsal struct {
	Heuristic, Best float64 // what is expected of the heuristic's plan, and of the best that was found; in no unit
	Plan            string  // the best
	Lowered         int     // plans
}

// Rehearse searches plans of a kernel from scratch without a device: as a search from scratch does before it
// measures any.
func Rehearse(ctx context.Context, k Kernel, options Options, bench BenchOptions) (*Rehearsal, error) {
	compiled, err := engine.Compile(ctx, k.AST, k.Desc, engine.Config{})
	if err != nil {
		return nil, err
	}
	b := newLowering(compiled, bench)
	of, err := b.Expect(ctx, []plan.Plan{k.Plan})
	if err != nil {
		return nil, err
	}
	s, err := newSearch(k, expecting{of: b}, options)
	if err != nil {
		return nil, err
	}
	found, err := s.expected(ctx, b)
	if err != nil || len(found.Best) == 0 {
		return &Rehearsal{Heuristic: of[0].Time, Best: math.Inf(1)}, err
	}
	return &Rehearsal{of[0].Time, found.Best[0].Time, found.Best[0].Plan, len(found.Outcomes)}, nil
}
