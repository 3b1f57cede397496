package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// Tester tries candidates of one kernel: a Bench, or one in a process of its own.
type Tester interface {
	// Try returns an outcome for each plan, in their order; of some of them with the error of a
	// context that has ended.
	Try(ctx context.Context, plans []plan.Plan) ([]Outcome, error)
	// Compare times plans that were measured in turn: see Bench.Compare.
	Compare(ctx context.Context, plans []plan.Plan, rounds int) ([][]float64, error)
	Close() error
}

// Options of a search. The same options, tester and times give the same result.
type Options struct {
	Beam     int           // plans that go on from a round to the next
	Budget   time.Duration // of one kernel; 0: until nothing gets better
	Seed     uint64
	Scratch  bool        // leave the heuristic's plan out of the beginning
	Extra    []plan.Plan // offered beside it
	Only     bool        // nothing else is tried than these two
	Batch    int         // candidates tried at once
	Round    int         // neighbours of each plan that a round tries, at most
	Priced   int         // of the plans that the price likes best, that it starts from
	Expected int         // plans that are lowered and not run, to find those from which a search from scratch starts
	Progress func(done Progress)

	most  int                                            // candidates that are tried; 0: any number
	tried func(list []Outcome, prices map[string]priced) // hears of each batch; may be nil
}

// Progress is how far a search has come.
type Progress struct {
	Tried int
	Best  float64 // us
	Start float64 // us of the heuristic's plan; 0 where it is left out
}

// String says how far a search is, and what it is held against, where there is that.
func (p Progress) String() string {
	s := fmt.Sprintf("%d tried, best %.4g us", p.Tried, p.Best)
	if p.Start > 0 {
		s += fmt.Sprintf(", heuristic %.4g", p.Start)
	}
	return s
}

// DefaultOptions suit kernels of a step: several candidates at once for each processor.
func DefaultOptions() Options {
	return Options{Beam: 4, Seed: 1, Batch: usualBatch(), Round: 256, Priced: 16, Expected: 8192}
}

// Result is what a search of one kernel has found.
type Result struct {
	Before, After Outcome   // the heuristic's plan and the best; times are those of a comparison in turn
	Winners       []Outcome // faster than the heuristic's plan by more than noise, the fastest first
	Near          []Outcome // others that take about as long as the heuristic's plan, the fastest first
	Best          []Outcome // of all rounds, the fastest first
	Outcomes      []Outcome // of all candidates
	Gain          float64   // part of the heuristic's time that is saved; 0 if it is no more than noise
	Beside        float64   // time of the fastest of all other plans, the heuristic's being 1; 0: none was timed in turn with it
	Complete      bool      // no round found anything better any more; else there was no more time
}

// Count is how many candidates came to some end.
func (r *Result) Count(status Status) (n int) {
	for _, o := range r.Outcomes {
		if o.Status == status {
			n++
		}
	}
	return n
}

// Kernel is what is searched.
type Kernel struct {
	AST  *ir.UOp // canonical
	Desc *target.Desc
	Plan plan.Plan // the heuristic's
}

// Noise is by how much a plan must be faster than the heuristic's to be taken, and comparisons
// in turn are how often both are timed to say so.
const (
	Noise       = 0.01
	comparisons = 9
	finalists   = 8
)

// nearly is how many times as long as the heuristic's plan others may take and still be tried in the step:
// how early a kernel starts, and lets the next one start, shows nowhere else.
const nearly = 1.02

// Run searches plans of a kernel. When the context ends or the budget is spent, what was found
// counts. An error means that the tester cannot go on.
func Run(ctx context.Context, k Kernel, tester Tester, options Options) (*Result, error) {
	s, err := newSearch(k, tester, options)
	if err != nil {
		return nil, err
	}
	plans, err := s.first(ctx)
	for more := true; err == nil && more && len(plans) > 0 && s.inTime(ctx); {
		before := bestTime(s.beam)
		if err = s.try(ctx, plans); err != nil || s.options.Only {
			break
		}
		s.vain++
		if bestTime(s.beam) < before*(1-Noise/2) {
			s.vain = 0
		}
		more = s.vain < s.patience()
		if plans, err = s.next(); !more && s.mayRestart() {
			plans, err = s.again(ctx)
			more = true
		}
	}
	if err != nil {
		return nil, err
	}
	s.result.Complete = s.inTime(ctx)
	return s.finish(ctx)
}

// search is one under way.
type search struct {
	kernel   Kernel
	tester   Tester
	options  Options
	moves    *neighbours
	drafts   *drafts
	known    map[string]bool // forms of plans that were tried, or will be
	expanded map[string]bool
	idle     *idle
	beam     []Outcome         // since the search began anew, the fastest first
	atOnce   int               // candidates that are tried at once
	each     time.Duration     // of the last batch, for each of its candidates
	restarts int               // how often it did
	vain     int               // rounds that found nothing faster since then, one after the other
	prices   map[string]priced // of plans that have one
	result   Result
	start    time.Time
}

func newSearch(k Kernel, tester Tester, options Options) (*search, error) {
	drafts, err := newDrafts(k.AST, k.Desc, options.Seed)
	if err != nil {
		return nil, err
	}
	atOnce := options.Batch
	if options.Budget > 0 {
		atOnce = min(atOnce, usualBatch())
	}
	return &search{
		kernel: k, tester: tester, options: options, atOnce: atOnce, moves: newNeighbours(k.AST, k.Desc, options.Seed), drafts: drafts,
		known: make(map[string]bool), expanded: make(map[string]bool), idle: newIdle(), start: time.Now(),
	}, nil
}

func (s *search) inTime(ctx context.Context) bool {
	if s.options.most > 0 && len(s.result.Outcomes) >= s.options.most {
		return false
	}
	return ctx.Err() == nil && (s.options.Budget == 0 || s.options.Budget-time.Since(s.start) > s.least())
}

// least is the time of as many candidates as are assembled at once: fewer take as long, and of those that the end of the
// time cuts short nothing is known.
func (s *search) least() time.Duration { return time.Duration(goruntime.GOMAXPROCS(0)) * s.each }

// first lists the plans of the beginning.
func (s *search) first(ctx context.Context) ([]plan.Plan, error) {
	arena := ir.NewArena()
	candidates, err := heuristic.Candidates(arena, arena.Import(s.kernel.AST), s.kernel.Desc, heuristic.Knobs{})
	if err != nil {
		return nil, err
	}
	s.prices = make(map[string]priced)
	for rank, c := range candidates {
		if text := c.Plan.String(); s.prices[text].Price == 0 {
			s.prices[text] = priced{c, rank}
		}
	}
	list := slices.Clone(s.options.Extra)
	if s.options.Scratch {
		drafts, err := s.drafted(ctx)
		return s.fresh(append(append(list, plan.Plan{}), drafts...), math.MaxInt), err
	}
	list = append([]plan.Plan{s.kernel.Plan}, list...)
	if s.options.Only {
		return s.fresh(list, math.MaxInt), nil
	}
	for _, c := range candidates[:min(len(candidates), s.options.Priced)] {
		list = append(list, c.Plan)
	}
	return s.fresh(list, math.MaxInt), nil
}

// firstDrafts are drafts that a search from scratch begins with.
const firstDrafts = 512

// patience is how many rounds in a row may find nothing faster. From scratch a round is some of many.
func (s *search) patience() int {
	if s.options.Scratch {
		return 3
	}
	return 1
}

// mayRestart says whether a search goes on with other drafts where neighbours are no faster.
func (s *search) mayRestart() bool { return s.options.Scratch && s.options.Budget > 0 }

// again begins anew with other drafts: what they lead to is compared with what was found before in the end alone.
func (s *search) again(ctx context.Context) ([]plan.Plan, error) {
	s.beam, s.vain = nil, 0
	s.restarts++
	list, err := s.drafted(ctx)
	return s.fresh(list, math.MaxInt), err
}

// next lists mixtures of the best, and neighbours of the beam; from scratch there are more steps to go, and it lists what
// comes from the best by larger ones.
func (s *search) next() (list []plan.Plan, err error) {
	if s.options.Scratch {
		return s.children()
	}
	best := make([]plan.Plan, min(2*s.options.Beam, len(s.beam)))
	for i := range best {
		if best[i], err = plan.Parse(s.beam[i].Plan); err != nil {
			return nil, err
		}
	}
	list = s.mixtures(best)
	for _, p := range best[:min(s.options.Beam, len(best))] {
		if text := p.String(); !s.expanded[text] {
			s.expanded[text] = true
			list = append(list, s.fresh(s.idle.last(s.moves.of(p, 2*s.options.Round), p), s.options.Round)...)
		}
	}
	return list, nil
}

// mixtures lists what pairs of plans make, those of the fastest first.
func (s *search) mixtures(best []plan.Plan) (list []plan.Plan) {
	for i, q := range best {
		for _, p := range best[:i] {
			list = append(list, s.fresh(s.moves.mixed(p, q), s.options.Round-len(list))...)
			list = append(list, s.fresh(s.moves.mixed(q, p), s.options.Round-len(list))...)
		}
	}
	return list
}

// fresh are those of a list that were not tried, however they were written; most at most.
func (s *search) fresh(list []plan.Plan, most int) (out []plan.Plan) {
	for _, p := range list {
		if form, _ := s.moves.form(p); !s.known[form] && len(out) < most {
			s.known[form] = true
			out = append(out, p)
		}
	}
	return out
}

func bestTime(fastestFirst []Outcome) float64 {
	if len(fastestFirst) == 0 {
		return math.Inf(1)
	}
	return fastestFirst[0].Time
}

// try tries plans in batches while there is time.
func (s *search) try(ctx context.Context, plans []plan.Plan) error {
	for len(plans) > 0 {
		if len(s.result.Outcomes) > 0 && !s.inTime(ctx) {
			return nil
		}
		batch := plans[:min(len(plans), s.batch())]
		plans = plans[len(batch):]
		begin := time.Now()
		outcomes, err := s.tryInTime(ctx, batch)
		if err != nil {
			return err
		}
		s.each = time.Since(begin) / time.Duration(len(batch))
		s.atOnce = paced(s.atOnce, time.Since(begin), s.options.Budget, s.options.Batch)
		s.idle.learn(outcomes)
		for _, o := range outcomes {
			s.result.Outcomes = append(s.result.Outcomes, o)
			if o.Status == Measured {
				s.result.Best, s.beam = append(s.result.Best, o), append(s.beam, o)
			}
			if o.Plan == s.kernel.Plan.String() {
				s.result.Before = o
			}
		}
		for _, list := range [][]Outcome{s.result.Best, s.beam} {
			slices.SortStableFunc(list, func(x, y Outcome) int { return cmp.Compare(x.Time, y.Time) })
		}
		s.tell()
		if s.options.tried != nil {
			s.options.tried(outcomes, s.prices)
		}
	}
	return nil
}

// batch is how many candidates are tried at once. What a GPU does is not disturbed by compiling,
// and it waits for the first of a batch only.
func (s *search) batch() int {
	if s.kernel.Desc.Kind == target.GPU {
		return max(2*s.atOnce, 1)
	}
	return max(s.atOnce, 1)
}

// shortBatch is of the budget what a batch may take, that the next may be larger.
const shortBatch = 1.0 / 16

// paced is how many candidates are tried at once after a batch that took so long: as many as are to be ordered
// together, but where that would be a large part of the time, in which nothing is known to be faster.
func paced(now int, took, budget time.Duration, most int) int {
	switch limit := time.Duration(shortBatch * float64(budget)); {
	case took > 2*limit && budget > 0:
		now /= 2
	case took < limit:
		now *= 2
	}
	return max(min(now, most), min(usualBatch(), most))
}

// overrun is by how much the first batch may go past the budget, in which are the plans that the price likes best, and any
// past a long one; a short one is a quarter longer.
const overrun = 3 * time.Second

// tryInTime tries a batch; what the end of the budget or of the context cuts short is left out.
func (s *search) tryInTime(ctx context.Context, batch []plan.Plan) ([]Outcome, error) {
	if s.options.Budget > 0 {
		var cancel context.CancelFunc
		over := overrun
		if len(s.result.Outcomes) > 0 {
			over = min(over, s.options.Budget/4)
		}
		ctx, cancel = context.WithDeadline(ctx, s.start.Add(s.options.Budget+over))
		defer cancel()
	}
	outcomes, err := s.tester.Try(ctx, batch)
	return outcomes, ctxOr(ctx, err)
}

func (s *search) tell() {
	if s.options.Progress != nil && len(s.result.Best) > 0 {
		s.options.Progress(Progress{len(s.result.Outcomes), bestTime(s.result.Best), s.result.Before.Time})
	}
}

// finish times the best few and the heuristic's plan in turn: those that are faster than it by
// more than noise win.
func (s *search) finish(ctx context.Context) (*Result, error) {
	r := &s.result
	r.Before.Plan = s.kernel.Plan.String()
	list := append([]Outcome{r.Before}, slices.DeleteFunc(slices.Clone(r.Best[:min(len(r.Best), finalists)]), func(o Outcome) bool { return o.Plan == r.Before.Plan })...)
	r.After = r.Before
	if len(list) == 1 || ctx.Err() != nil {
		return r, nil
	}
	plans := make([]plan.Plan, len(list))
	for i, o := range list {
		var err error
		if plans[i], err = plan.Parse(o.Plan); err != nil {
			return nil, err
		}
	}
	times, err := s.tester.Compare(ctx, plans, comparisons)
	if err != nil || len(times[0]) == 0 {
		return r, ctxOr(ctx, err)
	}
	r.Before.Time = quarter(times[0])
	r.After = r.Before
	for i := 1; i < len(list); i++ {
		if len(times[i]) == 0 {
			continue
		}
		if part := quarter(times[i]) / r.Before.Time; r.Beside == 0 || part < r.Beside {
			r.Beside = part
		}
		switch list[i].Time = quarter(times[i]); {
		case faster(times[0], times[i]):
			r.Winners = append(r.Winners, list[i])
		case list[i].Time < nearly*r.Before.Time:
			r.Near = append(r.Near, list[i])
		}
	}
	for _, some := range [][]Outcome{r.Winners, r.Near} {
		slices.SortStableFunc(some, func(x, y Outcome) int { return cmp.Compare(x.Time, y.Time) })
	}
	if len(r.Winners) > 0 {
		r.After = r.Winners[0]
	}
	r.Gain = 1 - r.After.Time/r.Before.Time
	return r, nil
}

// ctxOr forgets an error that the end of a context made.
func ctxOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// faster says that the second list of times is less than the first by more than noise: in most
// rounds, and by the least and the lower quarter, since what else runs on the machine only adds.
func faster(before, after []float64) bool {
	wins := 0
	n := min(len(before), len(after))
	for i := range n {
		if after[i] < before[i] {
			wins++
		}
	}
	return wins*2 > n && slices.Min(after) < slices.Min(before)*(1-Noise) && quarter(after) < quarter(before)*(1-Noise)
}

// quarter is the value that a quarter of the others are below.
func quarter(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/4]
}

// quarters are the values that a quarter of the others are below, and above.
func quarters(values []float64) [2]float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return [2]float64{sorted[n/4], sorted[n-1-n/4]}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
