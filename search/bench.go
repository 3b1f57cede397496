package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/runtime"
	"tgc/target"
)

// Status says what became of a candidate.
type Status string

// What may become of one.
const (
	Measured  Status = "measured"
	Duplicate Status = "duplicate" // another candidate's program
	Refused   Status = "refused"   // by lowering, rendering or assembling
	TooLarge  Status = "too large"
	TooLong   Status = "too long" // to lower, to assemble or to run
	Heavy     Status = "heavy"    // so many instructions that it cannot be fast
	Wrong     Status = "wrong"    // its values
	Crashed   Status = "crashed"  // the process that ran it, or its device

	Expected Status = "expected" // lowered, and what it may take (Expecter)

	running Status = "running"
)

// Outcome is what became of a candidate.
type Outcome struct {
	Plan   string  `json:"plan"`
	Status Status  `json:"status"`
	Reason string  `json:"reason,omitempty"`
	Source string  `json:"source,omitempty"` // hash of it
	Time   float64 `json:"us,omitempty"`     // of a call: the geometric mean over values of symbols

	// ColdBytes are the weights that calls read before one reads the same again.
	ColdBytes int64 `json:"cold_bytes,omitempty"`

	Figures *Figures `json:"figures,omitempty"` // of one that was measured
}

// Limits bound what a candidate may cost.
type Limits struct {
	Source  int           // bytes
	Compile time.Duration // lowering, rendering and assembling
	Run     time.Duration // all runs of one candidate
	Memory  int64         // bytes of a child's, beyond what its bench takes; 0: not bounded
}

// DefaultLimits are generous: ptxas takes a second for some good plans, the interpreter longer.
func DefaultLimits() Limits {
	return Limits{Source: 2 << 20, Compile: 6 * time.Second, Run: 20 * time.Second, Memory: 4 << 30}
}

// narrow bounds candidates by what the heuristic's plan takes: what is much larger, or compiles
// for much longer, is copies of code that no cache of instructions holds.
func (l *Limits) narrow(source int, compile time.Duration) {
	const larger, longer = 8, 8
	l.Source = min(l.Source, max(larger*source, 64<<10))
	l.Compile = min(l.Compile, max(longer*compile, 2*time.Second))
}

// BenchOptions say how candidates are tried.
type BenchOptions struct {
	Seed     uint64 `json:"seed"`
	Limits   Limits `json:"limits"`
	KeepBits bool   `json:"keep_bits,omitempty"` // of the heuristic's results
	Ranked   bool   `json:"ranked,omitempty"`    // candidates that are tried at once are ordered by what is expected of them
	Model    *Model `json:"model,omitempty"`     // what expects it; nil: an estimate
	Baseline string `json:"baseline"`            // the heuristic's plan
	Records  int    `json:"records,omitempty"`   // bits a weight of those whose rows are interleaved, as the step's target has them
	Name     string `json:"name,omitempty"`      // of programs: where it is the kernel's in the step, that finds their machine code in the cache
	Parallel int    `json:"parallel,omitempty"`  // candidates that are lowered and assembled at once; 0: one for each processor
}

// parallel is how many candidates are compiled at once.
func (o *BenchOptions) parallel() int {
	if o.Parallel > 0 {
		return o.Parallel
	}
	return goruntime.GOMAXPROCS(0)
}

// Bench is one kernel on a device, in this process.
type Bench struct {
	dev     runtime.Device
	options BenchOptions
	kernel  *engine.Compiled // by itself
	judge   judge
	points  []map[string]int64 // values of symbols at which calls are timed
	bytes   int64              // that a call must read and write

	loaded map[string]runtime.Executable // by plan
	seen   map[string]string             // source hash -> plan
	stuck  atomic.Bool                   // something goes on that was given up
	lost   bool                          // the device
	took   time.Duration                 // to check and time the heuristic's plan
	best   float64
	light  atomic.Uint64 // bits of the instructions of the fastest; 0: none was measured
	sizes  *ceilings
	report func(Outcome)      // before and after a candidate runs; may be nil
	sound  runtime.Executable // the heuristic's plan: runs while the device does
}

// NewBench makes a bench of a kernel, which must be in canonical form. The baseline itself is
// checked first: an error says that the kernel cannot be judged.
func NewBench(ctx context.Context, dev runtime.Device, ast *ir.UOp, options BenchOptions) (*Bench, error) {
	compiled, err := engine.Compile(ctx, ast, dev.Target(), engine.Config{Records: engine.Records(options.Records)})
	if err != nil {
		return nil, err
	}
	b := newLowering(compiled, options)
	b.dev = dev
	b.bytes = bytesOf(compiled.Kernels[0].AST, b.points[len(b.points)/2])
	if err := b.prepareJudge(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// newLowering makes a bench that lowers plans and runs none.
func newLowering(compiled *engine.Compiled, options BenchOptions) *Bench {
	b := &Bench{options: options, kernel: compiled, sizes: newCeilings(compiled), loaded: make(map[string]runtime.Executable), seen: make(map[string]string), best: math.Inf(1)}
	b.judge.ast = compiled.Kernels[0].AST
	b.points = symbolValues(b.judge.ast)
	return b
}

// symbolValues are low, middle and high values of a kernel's symbols.
func symbolValues(sink *ir.UOp) []map[string]int64 {
	points := []map[string]int64{{}, {}, {}}
	symbols := false
	for _, u := range ir.Toposort(sink) {
		v, ok := u.Arg.(ir.VarArg)
		if !ok || u.Op != ir.OpVar {
			continue
		}
		symbols = true
		for i, part := range []int64{16, 3, 1} {
			points[i][v.Name] = max(v.Lo, v.Hi/part)
		}
	}
	if !symbols {
		return points[:1]
	}
	return points
}

// MiddleOfSymbols are values of a kernel's symbols that stand for those at which it is timed.
func MiddleOfSymbols(sink *ir.UOp) map[string]int64 {
	points := symbolValues(sink)
	return points[len(points)/2]
}

// prepareJudge finds contents that the kernel accepts, and what its results are.
func (b *Bench) prepareJudge(ctx context.Context) (err error) {
	j := &b.judge
	j.keepBits = b.options.KeepBits
	j.trials = []*trial{{set: 0, vars: b.points[len(b.points)/2]}, {set: 1, vars: b.points[len(b.points)-1]}}
	if len(b.points) > 2 {
		j.trials = append(j.trials, &trial{set: 1, vars: b.points[0]})
	}
	j.calls = &Calls{kernel: b.kernel}
	if _, err := j.calls.describe(); err != nil {
		return err
	}
	if err := b.chooseContents(ctx); err != nil {
		return fmt.Errorf("no contents that the interpreter accepts: %w", err)
	}
	if j.calls, err = NewCalls(ctx, b.dev, b.kernel, seeds, j.contents); err != nil {
		return err
	}
	baseline, err := plan.Parse(b.options.Baseline)
	if err != nil {
		return err
	}
	start := time.Now()
	l := b.lower(ctx, baseline)
	exec, out := b.load(ctx, l)
	if exec == nil {
		return fmt.Errorf("the heuristic's plan: %s: %s", out.Status, out.Reason)
	}
	b.options.Limits.narrow(l.size, time.Since(start))
	b.sound = exec
	for _, t := range j.trials {
		if t.want, err = j.results(ctx, t, exec); err != nil {
			return err
		}
		if err := j.compare(ctx, t, t.want); err != nil {
			return fmt.Errorf("the heuristic's plan: %w", err)
		}
	}
	start = time.Now()
	if err := j.check(ctx, exec); err != nil {
		return fmt.Errorf("the heuristic's plan: %w", err)
	}
	_, err = b.time(ctx, exec, math.Inf(1)) // clocks and caches before the first that counts
	b.took = time.Since(start)
	return err
}

// chooseContents takes the largest integers that are within the bounds of what they index, and with which the kernel
// stores most: one that stores nothing, at a position beyond its cache, is always right and need not compute anything.
func (b *Bench) chooseContents(ctx context.Context) (err error) {
	j, most := &b.judge, -1.0
	var contents func(set, slot int, bytes int64) []byte
	var trials []trial
	for _, limit := range integerLimits {
		share, failed := b.trySamples(ctx, limit)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed != nil {
			err = failed
		} else if share > most {
			most, contents = share, j.contents
			trials = lists.Map(j.trials, func(t *trial) trial { return *t })
		}
		if most == 1 {
			break
		}
	}
	if most < 0 {
		return err
	}
	j.contents = contents
	for i, t := range j.trials {
		*t = trials[i]
	}
	return nil
}

// trySamples samples the kernel on integers up to a limit, and returns the part of the points at which it stores.
func (b *Bench) trySamples(ctx context.Context, limit int64) (share float64, err error) {
	b.judge.contents = contents{b.options.Seed, limit}.ofKernel(b.kernel)
	asked, stored := 0, 0
	for _, t := range b.judge.trials {
		if err := b.judge.sample(ctx, t); err != nil {
			return 0, err
		}
		asked, stored = asked+t.asked, stored+t.stored
	}
	return float64(stored) / float64(max(asked, 1)), nil
}

// lowered is a candidate on its way.
type lowered struct {
	outcome Outcome
	program *program.Program
	size    int // of its source, in bytes
	exec    runtime.Executable
}

// Try tries candidates: each is lowered and assembled, as many at once as Parallel says, while
// those before it are checked and timed, one after the other. Outcomes are in the order of the
// plans; where one candidate has taken the device with it, there are none of those that follow it.
// What was known when the context ends comes back with the error.
func (b *Bench) Try(ctx context.Context, plans []plan.Plan) ([]Outcome, error) {
	if !b.options.Ranked {
		return b.tryInOrder(ctx, plans, make([]*lowered, len(plans)))
	}
	return b.tryRanked(ctx, plans)
}

// tryInOrder tries candidates in their order, some of which were lowered.
func (b *Bench) tryInOrder(ctx context.Context, plans []plan.Plan, list []*lowered) ([]Outcome, error) {
	if b.lost {
		return nil, errors.New("search: a candidate has taken the device with it")
	}
	var out []Outcome
	line := b.compileAll(ctx, plans, list)
	defer line.wait()
	if b.kernel.Target.Kind != target.GPU {
		line.wait() // processors that run kernels themselves would disturb what is timed
	}
	for i := range plans {
		l := line.take(i)
		if l.exec != nil && ctx.Err() == nil {
			b.measure(ctx, l)
		}
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if out = append(out, l.outcome); l.outcome.Status == Crashed && !b.alive(ctx) {
			b.lost = true
			break
		}
	}
	return out, nil
}

// assembly is a list of candidates that are lowered and assembled.
type assembly struct {
	list  []*lowered
	ready []chan struct{} // closed when a candidate is
	done  chan struct{}
}

func (a *assembly) wait() { <-a.done }

func (a *assembly) take(i int) *lowered {
	<-a.ready[i]
	return a.list[i]
}

// compileAll lowers and assembles plans, the first first. Which of two equal programs goes on does
// not depend on which is lowered sooner: each waits for those before it to have been looked at.
func (b *Bench) compileAll(ctx context.Context, plans []plan.Plan, list []*lowered) *assembly {
	a := &assembly{list, make([]chan struct{}, len(plans)), make(chan struct{})}
	looked := make([]chan struct{}, len(plans)+1)
	for i := range looked {
		looked[i] = make(chan struct{})
	}
	for i := range a.ready {
		a.ready[i] = make(chan struct{})
	}
	close(looked[0])
	go func() {
		defer close(a.done)
		b.each(len(plans), func(i int) {
			defer close(a.ready[i])
			l := a.list[i]
			if l == nil {
				l = b.lowerUnlessLarge(ctx, plans[i])
				a.list[i] = l
				<-looked[i]
				b.look(plans[i], l)
			}
			close(looked[i+1])
			if l.program != nil {
				l.exec, l.outcome = b.load(ctx, l)
			}
		})
	}()
	return a
}

// look decides whether a candidate that was lowered is assembled.
func (b *Bench) look(p plan.Plan, l *lowered) {
	b.sizes.note(p, l.outcome.Status)
	b.skipDuplicate(l)
	b.skipHeavy(l)
}

// alive reports a device that still runs the heuristic's plan.
func (b *Bench) alive(ctx context.Context) bool {
	_, err := b.judge.results(ctx, b.judge.trials[0], b.sound)
	return err == nil || errors.Is(err, errWrong)
}

func (b *Bench) each(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(b.options.parallel())
	for i := range n {
		group.Go(func() error { f(i); return nil })
	}
	_ = group.Wait() // no f fails
}

// lower makes the program and its source, for a while.
func (b *Bench) lower(ctx context.Context, p plan.Plan) *lowered {
	l := &lowered{outcome: Outcome{Plan: p.String(), Status: Refused}}
	type made struct {
		program *program.Program
		source  string
		err     error
	}
	got, err := inTime(ctx, b.options.Limits.Compile, func(ctx context.Context) (m made) {
		defer func() {
			if cause := recover(); cause != nil {
				m.err = fmt.Errorf("compiler bug: %v", cause)
			}
		}()
		arena := ir.NewArena()
		if m.program, m.err = kernel.LowerWith(ctx, arena, arena.Import(b.judge.ast), p, b.kernel.Target, cmp.Or(b.options.Name, engine.ProgramName), nil); m.err == nil {
			m.source, m.err = engine.Source(m.program, b.kernel.Target)
		}
		return m
	})
	l.size = len(got.source)
	switch {
	case err != nil:
		l.outcome.Status, l.outcome.Reason = TooLong, "to lower: "+err.Error()
		b.giveUp(ctx)
	case outOfTime(got.err):
		l.outcome.Status, l.outcome.Reason = TooLong, "to lower: "+got.err.Error()
	case got.err != nil:
		l.outcome.Reason = got.err.Error()
	case len(got.source) > b.options.Limits.Source:
		l.outcome.Status, l.outcome.Reason = TooLarge, fmt.Sprintf("%d bytes of source, want at most %d", len(got.source), b.options.Limits.Source)
	default:
		l.program, l.outcome.Source = got.program, engine.SourceHash(got.source)
	}
	return l
}

// lowerUnlessLarge leaves out what is larger than a plan that was too large.
func (b *Bench) lowerUnlessLarge(ctx context.Context, p plan.Plan) *lowered {
	if other := b.sizes.over(p); other != "" {
		return &lowered{outcome: Outcome{Plan: p.String(), Status: TooLarge, Reason: "more copies than in " + other}}
	}
	return b.lower(ctx, p)
}

// skipHeavy leaves a candidate out that executes far more instructions than the fastest.
func (b *Bench) skipHeavy(l *lowered) {
	light := math.Float64frombits(b.light.Load())
	if l.program == nil || light == 0 {
		return
	}
	n := instructionsOf(l.program, b.kernel.Target, b.points[len(b.points)/2])
	if n > heavier*light {
		l.program = nil
		l.outcome.Status, l.outcome.Reason = Heavy, fmt.Sprintf("%.3g instructions, the fastest has %.3g", n, light)
	}
}

// skipDuplicate leaves a candidate out whose source another one has.
func (b *Bench) skipDuplicate(l *lowered) {
	if l.program == nil {
		return
	}
	if other, ok := b.seen[l.outcome.Source]; ok {
		l.program = nil
		l.outcome.Status, l.outcome.Reason = Duplicate, "of "+other
		return
	}
	b.seen[l.outcome.Source] = l.outcome.Plan
}

// load assembles a program.
func (b *Bench) load(ctx context.Context, l *lowered) (runtime.Executable, Outcome) {
	out := l.outcome
	if l.program == nil {
		return nil, out
	}
	type made struct {
		list []runtime.Executable
		err  error
	}
	got, err := inTime(ctx, b.options.Limits.Compile, func(ctx context.Context) (m made) {
		m.list, m.err = b.dev.Load(ctx, []*program.Program{l.program})
		return m
	})
	switch {
	case err != nil:
		b.giveUp(ctx)
		out.Status, out.Reason = TooLong, "to assemble: "+err.Error()
	case outOfTime(got.err):
		out.Status, out.Reason = TooLong, "to assemble: "+got.err.Error()
	case got.err != nil:
		out.Status, out.Reason = Refused, got.err.Error()
	default:
		return got.list[0], out
	}
	return nil, out
}

// giveUp notes that something goes on which no one waits for any more. What the end of the search has cut short was not
// slow: it ends soon.
func (b *Bench) giveUp(ctx context.Context) {
	if ctx.Err() == nil {
		b.stuck.Store(true)
	}
}

// errTime is why something was given up.
var errTime = errors.New("the time that a candidate has is over")

// outOfTime reports what was told to stop.
func outOfTime(err error) bool {
	return errors.Is(err, errTime) || errors.Is(err, context.DeadlineExceeded)
}

// obedient is how long what is told to stop may take to do so.
const obedient = 500 * time.Millisecond

// inTime runs f for so long, and tells it then to stop. The error is that it does not: it goes on
// by itself.
func inTime[T any](ctx context.Context, limit time.Duration, f func(ctx context.Context) T) (v T, err error) {
	told, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", errTime, limit))
	done := make(chan T, 1)
	go func() {
		defer cancel()
		done <- f(told)
	}()
	timer := time.NewTimer(limit + obedient)
	defer timer.Stop()
	select {
	case v = <-done:
		return v, nil
	case <-timer.C:
		return v, fmt.Errorf("%w: %v", errTime, limit)
	case <-ctx.Done():
	}
	select {
	case v = <-done:
		return v, nil
	case <-time.After(obedient):
		return v, context.Cause(ctx)
	}
}

// slowBy is how many times as long as the best a candidate may take and still be timed well.
const slowBy = 1.5

// measure checks values, then times.
func (b *Bench) measure(ctx context.Context, l *lowered) {
	out := &l.outcome
	if b.report != nil {
		b.report(Outcome{Plan: out.Plan, Status: running})
		defer func() {
			if ctx.Err() == nil || out.Status == Measured { // what was stopped came to no end
				b.report(*out)
			}
		}()
	}
	if err := b.judge.check(ctx, l.exec); err != nil {
		out.Status, out.Reason = Crashed, err.Error()
		if errors.Is(err, errWrong) {
			out.Status = Wrong
		}
		return
	}
	us, err := b.time(ctx, l.exec, slowBy*b.best)
	if err != nil {
		out.Status, out.Reason = Crashed, err.Error()
		return
	}
	out.Status, out.Time = Measured, us
	out.ColdBytes = b.judge.calls.coldBytes()
	out.Figures = FiguresOf(l.exec, b.kernel.Target, b.bytes, b.points[len(b.points)/2])
	if us < b.best {
		b.best = us
		b.light.Store(math.Float64bits(out.Figures.Instructions))
	}
	b.loaded[out.Plan] = l.exec
}

// time is the geometric mean over the values of symbols.
func (b *Bench) time(ctx context.Context, exec runtime.Executable, limit float64) (float64, error) {
	if math.IsInf(limit, 1) {
		limit = 0
	}
	logs := 0.0
	for _, vars := range b.points {
		us, err := b.judge.calls.Time(ctx, exec, vars, limit)
		if err != nil {
			return 0, err
		}
		logs += math.Log(us)
	}
	return math.Exp(logs / float64(len(b.points))), nil
}

// Compare times plans that were measured once more, in turn, so that what else runs on the
// machine disturbs all. A list of times for each plan comes back, none for one that failed.
func (b *Bench) Compare(ctx context.Context, plans []plan.Plan, rounds int) ([][]float64, error) {
	times := make([][]float64, len(plans))
	for i := range plans {
		if b.loaded[plans[i].String()] != nil {
			continue
		}
		l := b.lower(ctx, plans[i])
		if l.exec, l.outcome = b.load(ctx, l); l.exec != nil {
			b.measure(ctx, l)
		}
	}
	for range rounds {
		for i, p := range plans {
			exec := b.loaded[p.String()]
			if exec == nil {
				continue
			}
			us, err := b.time(ctx, exec, 0)
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], us)
		}
	}
	return times, nil
}

// Close frees the buffers.
func (b *Bench) Close() error {
	if b.judge.calls != nil {
		b.judge.calls.Free()
	}
	return nil
}
