package llm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tgc/engine"
	"tgc/target"
	"tgc/tensor"
)

// Compiling what a session runs: steps, the decode loop, samplers. Prepare does it
// ahead of time and several at once; what it left out is compiled when it is first
// needed.

// job is a graph to compile.
type job struct {
	what  string // unique in a session
	build func() (*tensor.Graph, error)
}

// compiledJob is its outcome.
type compiledJob struct {
	graph    *tensor.Graph
	compiled *engine.Compiled
	building time.Duration
}

func (s *Session) stepJob(k stepKey) job {
	v := s.stepVariant(k)
	return job{fmt.Sprintf("the step of %d tokens over %d rows", k.tokens, k.rows), func() (*tensor.Graph, error) {
		return BuildStep(s.model.Config, s.model.File, v)
	}}
}

func (s *Session) loopJob(k loopKey) job {
	v, ends, greedy := s.variant(stepKey{1, k.rows}), max(1, len(s.ends())), k.greedy
	return job{fmt.Sprintf("the decode loop over %d rows (greedy: %t)", k.rows, greedy), func() (*tensor.Graph, error) {
		return BuildLoop(s.model.Config, s.model.File, v, ends, greedy)
	}}
}

func (s *Session) samplerJob(greedy bool) job {
	vocabulary := s.model.Config.Vocabulary
	return job{fmt.Sprintf("the sampler (greedy: %t)", greedy), func() (*tensor.Graph, error) {
		if greedy {
			return BuildGreedy(s.sequences, vocabulary), nil
		}
		return BuildSampler(s.sequences, vocabulary), nil
	}}
}

// run compiles a job for a target; it touches nothing of a session.
func (j *job) run(ctx context.Context, desc *target.Desc, config engine.Config) (*compiledJob, error) {
	start := time.Now()
	g, err := j.build()
	if err != nil {
		return nil, err
	}
	out := &compiledJob{graph: g, building: time.Since(start)}
	if out.compiled, err = g.Compile(ctx, desc, config); err != nil {
		return nil, fmt.Errorf("compiling %s: %w", j.what, err)
	}
	return out, nil
}

// compile returns the outcome of a job, perhaps one that was compiled ahead.
func (s *Session) compile(ctx context.Context, j job) (*compiledJob, error) {
	if _, ok := s.ready[j.what]; !ok {
		if err := s.compileAhead(ctx, []job{j}); err != nil {
			return nil, err
		}
	}
	done := s.ready[j.what]
	delete(s.ready, j.what)
	s.compiled[j.what] = true
	return done, nil
}

// compileAhead compiles jobs, all at once: each works on an arena of its own. Where
// several fail, the error is that of the first.
func (s *Session) compileAhead(ctx context.Context, jobs []job) error {
	start := time.Now()
	done, errs := make([]*compiledJob, len(jobs)), make([]error, len(jobs))
	var workers sync.WaitGroup
	for i := range jobs {
		workers.Go(func() { done[i], errs[i] = jobs[i].run(ctx, s.device.Target(), s.options.Config) })
	}
	workers.Wait()
	s.compiling += time.Since(start)
	for i, err := range errs {
		if err != nil {
			return err
		}
		s.ready[jobs[i].what] = done[i]
		s.parts["graph"] += done[i].building
		for _, p := range done[i].compiled.Passes {
			s.parts[p.Name] += p.Time
		}
	}
	return nil
}

// loading notes the time that the device takes to load and record a step.
func (s *Session) loading(f func() error) error {
	start := time.Now()
	err := f()
	s.parts["load"] += time.Since(start)
	s.compiling += time.Since(start)
	return err
}

// Preparation is what Prepare is told.
type Preparation struct {
	Prompt   int // tokens
	Sampling Sampling
}

// fill loads the weights while what is wanted, if that is known, compiles.
func (s *Session) fill(ctx context.Context, w *wanted) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	compiled := make(chan error, 1)
	if w == nil {
		compiled <- nil
	} else {
		go func() { compiled <- s.compileAhead(ctx, s.jobs(*w)) }()
	}
	start := time.Now()
	err := s.allocate(ctx)
	s.filling = time.Since(start)
	if err != nil {
		stop()
		<-compiled
		return err
	}
	return <-compiled
}

// LoadTime is the time that weights and caches took to reach the device; a part of
// CompileTime may lie in it.
func (s *Session) LoadTime() time.Duration { return s.filling }

// Prepare compiles what feeding a prompt of n tokens, generating after it and
// sampling need, so that nothing is compiled while a user waits for a token.
func (s *Session) Prepare(ctx context.Context, n int, opt Sampling) error {
	return s.prepare(ctx, s.wantsFor(Preparation{n, opt}))
}

// wantsFor is what a session wants of a preparation. Where the device's loop feeds what
// is generated, a step of one token is only for what is left of a prompt.
func (s *Session) wantsFor(p Preparation) wanted {
	loop := s.ahead() > 0 && !p.Sampling.onHost()
	return s.wants(p, !loop, loop)
}

// prepare compiles the steps of a prompt of n tokens, that of one token and the
// loop where they are wanted, and the sampler; then it loads them.
func (s *Session) prepare(ctx context.Context, w wanted) error {
	if err := s.compileAhead(ctx, s.jobs(w)); err != nil {
		return err
	}
	for _, size := range w.largestFirst() {
		if _, err := s.stepOf(ctx, s.stepKey(size, w.from)); err != nil {
			return err
		}
	}
	if w.loop {
		if _, err := s.loopOf(ctx, loopKey{w.greedy, s.stepKey(1, w.from).rows}); err != nil {
			return err
		}
	}
	if !w.sampler {
		return nil
	}
	_, err := s.sampler(ctx, w.greedy)
	return err
}

// wanted is what a session needs compiled: steps by their tokens, perhaps the sampler
// and the loop.
type wanted struct {
	sizes                 map[int]bool
	sampler, loop, greedy bool
	from                  int // the position from which single tokens are fed
}

func (w wanted) largestFirst() []int {
	sizes := slices.Sorted(maps.Keys(w.sizes))
	slices.Reverse(sizes)
	return sizes
}

// wants is what a prompt of p.Prompt tokens needs, and a generation after it: by the
// device's loop, or by steps of one token.
func (s *Session) wants(p Preparation, single, loop bool) wanted {
	w := wanted{sizes: s.promptSizes(p.Prompt), sampler: !p.Sampling.onHost(), loop: loop, greedy: p.Sampling.Temperature == 0, from: s.position() + p.Prompt}
	if single {
		w.sizes[1] = true
	}
	return w
}

// jobs lists what of it has not been compiled yet: where a text begins in the first rows of
// a long cache, also what goes on past them.
func (s *Session) jobs(w wanted) []job {
	var list []job
	for _, size := range w.largestFirst() {
		if size > 1 {
			list = append(list, s.stepJob(s.stepKey(size, w.from)))
		}
	}
	for at := w.from; at < s.options.Context; at = s.rowsFor(at) {
		rows := s.rowsFor(at)
		if w.sizes[1] {
			list = append(list, s.stepJob(stepKey{1, rows}))
		}
		if w.loop {
			list = append(list, s.loopJob(loopKey{w.greedy, rows}))
		}
	}
	if _, have := s.samplers[w.greedy]; w.sampler && !have {
		list = append(list, s.samplerJob(w.greedy))
	}
	return slices.DeleteFunc(list, s.has)
}

// has reports a job that has been compiled.
func (s *Session) has(j job) bool { return s.ready[j.what] != nil || s.compiled[j.what] }

// promptSizes are the steps that a prompt of n tokens takes.
func (s *Session) promptSizes(n int) map[int]bool {
	sizes := make(map[int]bool)
	for ; n > 0; n -= s.chunkFor(n) {
		sizes[s.chunkFor(n)] = true
	}
	return sizes
}

// CompileTime is the time spent so far in compiling and loading steps.
func (s *Session) CompileTime() time.Duration { return s.compiling }

// CompileParts is what that time was spent in: building graphs ("graph"), the
// compiler's passes by their names, and rendering, assembling and recording on the
// device ("load"). Several graphs are compiled at once, so that the parts may sum
// to more.
func (s *Session) CompileParts() map[string]time.Duration { return maps.Clone(s.parts) }
