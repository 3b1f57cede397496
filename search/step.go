package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/schedule"
	"tgc/search/database"
	"tgc/target"
)

// Step is a compiled step that can be captured with other plans on the same buffers.
type Step struct {
	Compiled *engine.Compiled
	Vars     map[string]int64
	Capture  func(ctx context.Context, c *engine.Compiled) (*engine.Step, error)
}

// TuneOptions say how the kernels of a step are tuned.
type TuneOptions struct {
	Search  Options // Budget and Progress are those of TuneOptions
	Budget  time.Duration
	Fusion  float64       // part of it that goes to decisions of the schedule
	Bench   BenchOptions  // Baseline is each kernel's
	Config  engine.Config // of the step; its plans and database are not asked
	DB      *database.DB
	Again   bool // search kernels that the database has, too
	Log     *Log // of all candidates; may be nil
	Testers Testers
	Spread  *Spread                          // to workers that search the kernels; nil: they are searched here
	Say     func(format string, args ...any) // of progress; may be nil
}

// Testers make the tester of a kernel in canonical form.
type Testers func(ctx context.Context, ast *ir.UOp, options BenchOptions) (Tester, error)

// TunedKernel is what became of a kernel of a step.
type TunedKernel struct {
	Kernel     *engine.Kernel
	In         *engine.Kernel // of the step: the kernel itself, or one of which it is a part
	Share      float64        // of the step's time
	Before     Outcome
	After      Outcome // as Before, where nothing was found
	Candidates int
	Rejected   map[Status]int // of them, but for another's program
	Note       string         // why it is as it is
	Why        string         // After takes less time: what of its program differs; empty where that is not known
	Stored     bool

	settled bool // by the database or another step: not to be searched
}

// Tuned is what became of a step.
type Tuned struct {
	Kernels       []*TunedKernel // those first that take most of the step
	Before, After float64        // us of a step; 0 where no plan was taken
	Spread        [2][2]float64  // of both: the quarters of their rounds
	Saved         float64        // part of it, 0 if that is no more than noise
	Step          *engine.Compiled
	Decisions     []TunedDecision // of the schedule that were taken, now or before
	Flips         int             // other decisions that were tried
	Unstored      error           // why the database lacks what was found; all else of the result holds

	plans given // that were taken, now or before
}

// Tune searches the kernels of a step, for as long as their share of it, and keeps what makes
// the step itself faster. What was found when the context ends is kept.
func Tune(ctx context.Context, step Step, options TuneOptions) (*Tuned, error) {
	tuned, err := TuneSteps(ctx, []NamedStep{{Step: step}}, options)
	if err != nil {
		return nil, err
	}
	return tuned[0], nil
}

func newTuning(step Step, options TuneOptions) *tuning {
	if options.Say == nil {
		options.Say = func(string, ...any) {}
	}
	t := &tuning{step: step, options: options, known: make(given), findings: make(map[database.Key]*TunedKernel), inTurn: inTurn}
	t.testers = testers{begin: options.Testers, open: make(map[*TunedKernel]*opening)}
	return t
}

// run searches the kernels of a step that was begun, until its end.
func (t *tuning) run(ctx context.Context) (*Tuned, error) {
	if err := t.replay(ctx); err != nil {
		return nil, err
	}
	if t.options.Log != nil {
		t.options.Log.Step = t.log
	}
	t.divide()
	defer t.testers.close()
	for i, k := range t.result.Kernels {
		if ctx.Err() != nil {
			break
		}
		if err := t.kernel(ctx, i, k); err != nil && ctx.Err() == nil {
			return nil, err
		}
		t.testers.release(k)
	}
	t.testers.close() // before the step is timed for the last time
	err := t.finish(ctx)
	t.result.plans = t.known
	return &t.result, ctxOr(ctx, err)
}

// given are plans of kernels; what is not there has the heuristic's.
type given map[database.Key]engine.Found

// Find is that of engine.Plans.
func (g given) Find(_ context.Context, sink *ir.UOp, desc *target.Desc) (engine.Found, bool, error) {
	found, ok := g[database.KeyOf(sink, desc)]
	return found, ok, nil
}

// tuning is one under way.
type tuning struct {
	name     string
	log      LogStep
	step     Step
	options  TuneOptions
	result   Tuned
	findings map[database.Key]*TunedKernel // of this step and of others that are tuned with it

	tasks   map[*TunedKernel]*Task // that workers search
	known   given                  // plans that are taken
	plain   *engine.Step           // as prices and heuristics make it
	decided *engine.Step           // with the decisions that are taken, and the heuristics' plans: plain, where there are none
	taken   schedule.Decisions
	current *engine.Step // with those decisions and the plans that are taken
	end     time.Time
	planned map[*TunedKernel]time.Duration // parts of it that kernels have
	testers testers

	inTurn func(ctx context.Context, steps []*engine.Step, vars map[string]int64, turns Turns) ([][]float64, error)
}

// begin captures the step as prices and heuristics make it, then with the decisions that the database
// has, and says where its time goes.
func (t *tuning) begin(ctx context.Context) (err error) {
	if len(t.step.Compiled.Decisions) > 0 {
		if t.step.Compiled, err = t.step.Compiled.Reschedule(ctx, t.config(schedule.Decisions{})); err != nil {
			return err
		}
	}
	if t.plain, err = t.capture(ctx, nil); err != nil {
		return err
	}
	t.decided, t.step.Compiled = t.plain, t.plain.Compiled
	if err := t.replayDecisions(ctx); err != nil {
		return err
	}
	return t.look(ctx)
}

// look lists the kernels of the step, those first that take most of it.
func (t *tuning) look(ctx context.Context) error {
	t.result.Step, t.result.Kernels = t.step.Compiled, nil
	shares, err := t.shares(ctx)
	if err != nil {
		return err
	}
	for _, k := range t.step.Compiled.Kernels {
		parts := k.Parts
		if len(parts) == 0 {
			parts = []*engine.Kernel{k}
		}
		for _, part := range parts {
			if slices.ContainsFunc(t.result.Kernels, func(have *TunedKernel) bool { return have.Kernel == part }) {
				continue // it is a part of another launch too
			}
			t.result.Kernels = append(t.result.Kernels, &TunedKernel{Kernel: part, In: k, Share: shares[k] / float64(len(parts)), Before: Outcome{Plan: part.Plan.String()}, After: Outcome{Plan: part.Plan.String()}})
		}
	}
	slices.SortStableFunc(t.result.Kernels, func(x, y *TunedKernel) int { return cmp.Compare(y.Share, x.Share) })
	return nil
}

// shares are the parts of the step's time that its kernels take.
func (t *tuning) shares(ctx context.Context) (map[*engine.Kernel]float64, error) {
	const runs = 5
	var least []time.Duration // by call
	for range runs {
		times, err := t.decided.Profile(ctx, t.step.Vars)
		if err != nil {
			return nil, err
		}
		if least == nil {
			least = times
		}
		for i := range times {
			least[i] = min(least[i], times[i])
		}
	}
	shares, total := make(map[*engine.Kernel]float64), 0.0
	i := 0
	for _, launch := range t.step.Compiled.Launches {
		for _, call := range launch {
			if i < len(least) { // a grid without blocks has no time
				shares[call.Kernel] += least[i].Seconds()
				total += least[i].Seconds()
			}
			i++
		}
	}
	for k := range shares {
		shares[k] /= total
	}
	return shares, nil
}

// replay takes what another step has found, and what the database has.
func (t *tuning) replay(ctx context.Context) (err error) {
	for _, k := range t.result.Kernels {
		if f := t.findings[t.key(k)]; f != nil && f.Before.Plan == k.Kernel.Plan.String() {
			k.Before, k.After, k.Why, k.Stored = f.Before, f.After, f.Why, f.Stored
			k.Note = "as in another step: " + f.Note
			err = t.take(k, engine.FromGiven)
		} else if t.options.DB != nil && !t.options.Again {
			err = t.fromDatabase(k)
		}
		if err != nil {
			return err
		}
	}
	t.current, err = t.capture(ctx, t.known)
	return err
}

// fromDatabase takes the entry of a kernel, if there is one.
func (t *tuning) fromDatabase(k *TunedKernel) error {
	e, ok := settled(t.options.DB, t.key(k), k.Kernel.AST, k.Kernel.Plan)
	if !ok {
		return nil
	}
	k.Before.Time, k.After = e.Before, Outcome{Plan: e.Plan, Time: e.After, Source: e.Source}
	k.Note, k.Stored = "in the database: "+e.Reason, true
	if e.Kept {
		k.settled = true
		return nil
	}
	return t.take(k, engine.FromDatabase)
}

// take settles a kernel with a plan that was found before.
func (t *tuning) take(k *TunedKernel, origin engine.Origin) error {
	k.settled = true
	if k.After.Plan == k.Before.Plan {
		return nil
	}
	p, err := plan.Parse(k.After.Plan)
	if err != nil {
		return err
	}
	t.known[t.key(k)] = engine.Found{Plan: p, Source: k.After.Source, Origin: origin}
	return nil
}

func (t *tuning) key(k *TunedKernel) database.Key {
	return database.KeyOf(k.Kernel.AST, t.step.Compiled.Target)
}

// config is that of the step with decisions, and nothing of a database.
func (t *tuning) config(decisions schedule.Decisions) engine.Config {
	config := t.options.Config
	config.Plans, config.IgnoreDB = nil, true
	config.Decide = config.Decide.With(decisions.List()...)
	return config
}

// capture captures the step with some plans.
func (t *tuning) capture(ctx context.Context, plans given) (*engine.Step, error) {
	config := t.config(t.taken)
	config.Plans = plans
	c, err := t.step.Compiled.Replan(ctx, config)
	if err != nil {
		return nil, err
	}
	return t.step.Capture(ctx, c)
}

// kernel searches one kernel and tries the best few in the step.
func (t *tuning) kernel(ctx context.Context, i int, k *TunedKernel) error {
	task, part := t.tasks[k], t.part(i)
	switch {
	case k.settled:
		return nil
	case k.Share < leastShare:
		k.Note = "too small a part of the step"
		return nil
	case task == nil && part == 0:
		k.Note = "no time left"
		return nil
	case task == nil:
		options := t.options.Search
		if _, err := t.testers.of(ctx, k, t.bench(k, &options)); err == nil {
			part = max(t.part(i), leastTime/2) // what the tester took is all kernels' time
		}
		end := time.Now().Add(time.Duration(float64(part) * (1 - forConfirming)))
		found, err := t.search(ctx, i, k, time.Duration(float64(part)*(1-forSteps)))
		t.beginNext(ctx, i)
		return t.use(ctx, i, k, found, end, err)
	}
	f, err := t.options.Spread.wait(ctx, task)
	if err != nil {
		return ctxOr(ctx, fmt.Errorf("the queue of workers: %w", err))
	}
	found, err := t.confirm(ctx, i, k, f)
	end := time.Now().Add(time.Duration(float64(part) * (forSteps - forConfirming)))
	if err := t.use(ctx, i, k, found, end, err); err != nil || ctx.Err() != nil || t.result.Unstored != nil {
		return err // what is not in the database stays in the queue
	}
	return t.options.Spread.settle(task, f)
}

// use takes what a search has found, if it makes the step faster: plans are tried in it until the end of
// the kernel's part of the time.
func (t *tuning) use(ctx context.Context, i int, k *TunedKernel, found *Result, end time.Time, err error) error {
	if errors.Is(err, errLogging) {
		return err
	}
	if err != nil {
		k.Note = "cannot be judged: " + err.Error()
		t.options.Say("%s%s: %s", t.prefix(), k.Kernel.Name, k.Note)
		return nil
	}
	k.Before, k.Candidates = found.Before, len(found.Outcomes)
	k.After = k.Before
	k.Rejected = t.rejected(k, found.Outcomes)
	switch {
	case ctx.Err() != nil:
		k.Note = "stopped"
		return nil
	default:
		if err := t.inStep(ctx, i, k, found, end); err != nil {
			return err
		}
	}
	if t.options.Log != nil {
		if err := t.options.Log.result(k, t.step.Compiled.Target, found.Complete); err != nil {
			return fmt.Errorf("%w: %w", errLogging, err)
		}
	}
	if k.After.Plan == k.Before.Plan && !found.Complete {
		return nil // the next run goes on
	}
	t.findings[t.key(k)] = k
	return t.store(ctx, k)
}

// far says how far a search that began without the heuristic's plan has come.
func (t *tuning) far(found *Result) string {
	if !t.options.Search.Scratch || found.Beside == 0 {
		return ""
	}
	return fmt.Sprintf("; the fastest takes %.3f times as long", found.Beside)
}

// rejected counts candidates that came to no time, and tells of those that are bugs.
func (t *tuning) rejected(k *TunedKernel, outcomes []Outcome) map[Status]int {
	counts := make(map[Status]int)
	for _, o := range outcomes {
		switch o.Status {
		case Wrong, Crashed: // a bug of the compiler
			t.options.Say("%s%s: %s: plan %q: %s", t.prefix(), k.Kernel.Name, o.Status, o.Plan, o.Reason)
		case Measured, Duplicate:
			continue
		}
		counts[o.Status]++
	}
	return counts
}

// search searches a kernel on this device, for so long.
func (t *tuning) search(ctx context.Context, i int, k *TunedKernel, budget time.Duration) (*Result, error) {
	options := t.options.Search
	options.Budget, options.Extra = budget, t.offered(k)
	return t.try(ctx, i, k, options, nil)
}

// offered are plans that are tried beside the heuristic's: the user's, and that of an entry from
// elsewhere, or that is searched again.
func (t *tuning) offered(k *TunedKernel) []plan.Plan {
	list := slices.Clone(t.options.Search.Extra)
	if t.options.DB != nil {
		if e, ok, _ := t.options.DB.Find(t.key(k)); ok {
			if p, err := plan.Parse(e.Plan); err == nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// head begins what is said of a kernel.
func (t *tuning) head(i int, k *TunedKernel) string {
	return fmt.Sprintf("%s%d/%d %s (%.1f %% of the step)", t.prefix(), i+1, len(t.result.Kernels), k.Kernel.Name, 100*k.Share)
}

// try runs a search. The log has what others have tried, where they did.
func (t *tuning) try(ctx context.Context, i int, k *TunedKernel, options Options, others []Outcome) (*Result, error) {
	bench := t.bench(k, &options)
	head, said := t.head(i, k), time.Now()
	options.Progress = func(p Progress) {
		if time.Since(said) > time.Second {
			said = time.Now()
			t.options.Say("%s: %v", head, p)
		}
	}
	logged, err := t.logTo(k, &options, others)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	tester, err := t.testers.of(ctx, k, bench)
	if err != nil {
		return nil, err
	}
	if options.Budget > 0 { // of which the first call of the heuristic's plan is a part
		options.Budget = max(options.Budget-time.Since(begin), options.Budget/4, min(options.Budget, leastTime/2))
	}
	found, err := Run(ctx, Kernel{AST: k.Kernel.AST, Desc: t.step.Compiled.Target, Plan: k.Kernel.Plan}, tester, options)
	if err == nil {
		err = logged()
	}
	if err == nil {
		t.options.Say("%s: %d tried, %.4g us -> %.4g us", head, len(found.Outcomes), found.Before.Time, found.After.Time)
	}
	return found, err
}

// errLogging is wrapped by errors of the log: a tune that was asked for one does not go on without.
var errLogging = errors.New("log")

// logTo lets a search write to the log. What it could not write is an error of the function that
// comes back. What others have tried is written in place of what is tried to confirm it.
func (t *tuning) logTo(k *TunedKernel, options *Options, others []Outcome) (failed func() error, err error) {
	log, desc := t.options.Log, t.step.Compiled.Target
	wrap := func(err error) error {
		if err != nil {
			return fmt.Errorf("%w: %w", errLogging, err)
		}
		return nil
	}
	if log == nil {
		return func() error { return nil }, nil
	}
	if err := wrap(log.kernel(k, desc)); err != nil {
		return nil, err
	}
	options.tried = func(list []Outcome, prices map[string]priced) {
		if others != nil {
			list, others = others, []Outcome{}
		}
		if err == nil {
			err = wrap(log.candidates(k, desc, list, prices))
		}
	}
	return func() error { return err }, nil
}

// store puts what was found into the database. A disk that is full costs no result.
func (t *tuning) store(ctx context.Context, k *TunedKernel) error {
	if t.options.DB == nil {
		return nil
	}
	reason := k.Note
	if k.Why != "" {
		reason += ": " + k.Why
	}
	e, err := entryOf(ctx, Kernel{AST: k.Kernel.AST, Desc: t.step.Compiled.Target}, k.Before, k.After, reason)
	if err == nil {
		e.Kernel = k.Kernel.Name
		err = t.options.DB.Put(e)
	}
	if ctx.Err() != nil {
		return nil
	}
	if k.Stored = err == nil; !k.Stored {
		t.result.Unstored = fmt.Errorf("%s is not stored: %w", k.Kernel.Name, err)
		t.options.Say("%s%v", t.prefix(), t.result.Unstored)
	}
	return nil
}

func (t *tuning) free() {
	if t.decided != nil && t.decided != t.plain {
		t.decided.Free()
	}
	for _, s := range []*engine.Step{t.plain, t.current} {
		if s != nil {
			s.Free()
		}
	}
}
