package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tgc/engine"
	"tgc/gguf"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/llm"
	modelbench "tgc/llm/bench"
	"tgc/llm/synth"
	"tgc/search"
	"tgc/search/database"
	"tgc/target"
)

// Candidates timed in the step. A chain of one kernel keeps in caches what a step does not,
// and its neighbours are as it is itself; so a plan may win there and lose where it is used.
// Here a step is captured with each candidate in turn, and timed beside the step as it is.

// The step in which candidates are timed.
const (
	stepContext = 256 // rows of caches
	stepDepth   = 64
	leastTime   = 0.5 // us of a call
)

// oneKernel gives one kernel a plan, and all others the heuristic's.
type oneKernel struct {
	key  database.Key
	plan plan.Plan
}

// Find is that of engine.Plans.
func (o oneKernel) Find(_ context.Context, sink *ir.UOp, desc *target.Desc) (engine.Found, bool, error) {
	if o.plan.Opts == nil || database.KeyOf(sink, desc) != o.key {
		return engine.Found{}, false, nil
	}
	return engine.Found{Plan: o.plan, Origin: engine.FromGiven}, true, nil
}

// stepBench times the kernels of one step.
type stepBench struct {
	*bench
	job     job
	loaded  *llm.CompiledStep
	capture func(ctx context.Context, c *engine.Compiled) (*engine.Step, error)
	base    *engine.Step
	timed   *search.TimedStep          // base
	atOnce  int                        // runs of it
	us      map[*engine.Kernel]float64 // of one call, in the step as it is
	calls   map[*engine.Kernel]float64
}

// stepJob goes through the products of a job's step, those first that take most of it.
func (b *bench) stepJob(ctx context.Context, j job) error {
	model, mode, err := j.open(func(shape synth.Shape) (*gguf.File, error) { return synth.Memory(ctx, shape, 1) })
	if err != nil {
		return err
	}
	defer model.Close()
	batch, err := llm.NewBatch(ctx, model, b.dev, llm.BatchOptions{Sequences: j.batch, Context: stepContext, Mode: mode})
	if err != nil {
		return err
	}
	defer batch.Close()
	if err := batch.Seek(stepDepth); err != nil {
		return err
	}
	s := &stepBench{bench: b, job: j}
	if s.loaded, s.capture, err = batch.Loaded(ctx, modelbench.Tokens(j.batch, j.tokens, model.Config.Vocabulary)); err != nil {
		return err
	}
	if s.base, err = s.capture(ctx, s.loaded.Compiled); err != nil {
		return err
	}
	defer s.base.Free()
	if s.atOnce, err = search.AtOnce(ctx, s.base, s.loaded.Binding.Vars); err != nil {
		return err
	}
	if s.timed, err = search.NewTimedStep(ctx, s.base, s.atOnce); err != nil {
		return err
	}
	defer s.timed.Free()
	if err := s.profile(ctx); err != nil {
		return err
	}
	kernels := slices.Collect(maps.Keys(s.us))
	slices.SortFunc(kernels, func(x, y *engine.Kernel) int {
		return int(math.Copysign(1, s.us[y]*s.calls[y]-s.us[x]*s.calls[x]))
	})
	for _, k := range kernels {
		if err := s.kernel(ctx, k); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	return nil
}

// profile notes what one call of each kernel takes, and how many there are. A profile waits for each
// call, which takes as long for all: together they take as long as the step. Parts of a launch are
// left out: other plans may keep them from sharing it.
func (s *stepBench) profile(ctx context.Context) error {
	times, err := s.base.Profile(ctx, s.loaded.Binding.Vars)
	if err != nil {
		return err
	}
	whole, err := s.timed.Time(ctx, s.loaded.Binding.Vars, search.Screening.Each)
	if err != nil {
		return err
	}
	apart := -whole // what all calls take one after the other and not beside each other
	for _, t := range times {
		apart += t.Seconds() * 1e6
	}
	apart /= float64(len(times))
	s.us, s.calls = make(map[*engine.Kernel]float64), make(map[*engine.Kernel]float64)
	i := 0
	for _, launch := range s.base.Compiled.Launches {
		for _, call := range launch {
			if len(call.Kernel.Parts) == 0 {
				s.us[call.Kernel] += max(times[i].Seconds()*1e6-apart, leastTime)
				s.calls[call.Kernel]++
			}
			i++
		}
	}
	for k := range s.us {
		s.us[k] /= s.calls[k]
	}
	return nil
}

// kernel times candidates of one kernel.
func (s *stepBench) kernel(ctx context.Context, k *engine.Kernel) error {
	desc := s.base.Compiled.Target
	key := database.KeyOf(k.AST, desc)
	name := fmt.Sprint(key)
	if s.seen[name] {
		return nil
	}
	s.seen[name] = true
	arena := ir.NewArena()
	ast := arena.Import(k.AST)
	all, err := heuristic.Candidates(arena, ast, desc, heuristic.Knobs{})
	if err != nil || len(all) == 0 {
		return err
	}
	wanted := s.wanted(ast, desc, all, s.choose(all), pair{Shape: s.job.shape, Mode: s.job.mode, Batch: s.job.batch, Tokens: s.job.tokens, Kernel: k.Name})
	if wanted, err = s.prepare(ctx, ast, desc, k.Name, wanted); err != nil {
		return err
	}
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	replanned := make(chan *engine.Compiled, 1) // the next one, while one is timed
	group.Go(func() error {
		defer close(replanned)
		for _, l := range wanted {
			c, err := s.base.Compiled.Exchange(ctx, engine.Config{Plans: oneKernel{key, l.plan}, IgnoreDB: true})
			if err != nil {
				return err
			}
			select {
			case replanned <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		i := 0
		for c := range replanned {
			delta, err := s.compare(ctx, c)
			if err != nil {
				return err
			}
			wanted[i].pair.Time = s.us[k] + delta/s.calls[k]
			if err := s.out.Encode(wanted[i].pair); err != nil {
				return err
			}
			i++
		}
		return nil
	})
	err = group.Wait()
	log.Printf("%s %s: %d of %d candidates, %.1f s, %.0f calls of %.2f us", s.job, k.Name, len(wanted), len(all), time.Since(begin).Seconds(), s.calls[k], s.us[k])
	return err
}

// prepare compiles candidates beside each other, so that the step finds them in the cache, and
// notes what is known of their code. Those that are refused are left out.
func (s *stepBench) prepare(ctx context.Context, ast *ir.UOp, desc *target.Desc, name string, wanted []*lowered) ([]*lowered, error) {
	if err := lowerAll(ctx, ast, desc, name, wanted); err != nil {
		return nil, err
	}
	wanted = slices.DeleteFunc(wanted, func(l *lowered) bool { return l.program == nil })
	programs, pairs := different(wanted)
	execs, pairs, err := s.load(ctx, programs, pairs)
	if err != nil {
		return nil, err
	}
	figures := make(map[string]*search.Figures)
	for i, exec := range execs {
		figures[pairs[i].Plan] = search.FiguresOf(exec, desc, int64(pairs[i].Features["bytes"]), s.loaded.Binding.Vars)
	}
	for _, l := range wanted {
		l.pair.Figures = figures[l.pair.Plan]
	}
	return slices.DeleteFunc(wanted, func(l *lowered) bool { return l.pair.Figures == nil }), nil
}

// compare is by how many microseconds a step is longer than that without its plan, the median of turns.
func (s *stepBench) compare(ctx context.Context, c *engine.Compiled) (float64, error) {
	step, err := s.capture(ctx, c)
	if err != nil {
		return 0, err
	}
	defer step.Free()
	timed, err := search.NewTimedStep(ctx, step, s.atOnce)
	if err != nil {
		return 0, err
	}
	defer timed.Free()
	times, err := search.InTurn(ctx, []*search.TimedStep{s.timed, timed}, s.loaded.Binding.Vars, search.Screening)
	if err != nil {
		return 0, err
	}
	return search.Longer(times[0], times[1]), nil
}
