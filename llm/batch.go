package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/nn"
	"tgc/runtime"
)

// BatchOptions size a batch.
type BatchOptions struct {
	Sequences int
	Context   int          // rows of the cache of each sequence
	Ahead     int          // as in SessionOptions; a batch's loop is always the device's
	Prepare   *Preparation // as in SessionOptions
	Mode      nn.Numeric
	Cache     CacheType // of keys and values
	Config    engine.Config
	Weights   *Batch // of the same model on the same device, whose weights are used: it is closed last; may be nil
}

// Batch is a model with caches for several sequences that go on together: one
// step feeds a token of each, or a part of the prompt of each, and reads the
// weights once for all. Every sequence has its own position and length. It is not
// safe for concurrent use.
type Batch struct {
	session *Session
}

// NewBatch puts a model's weights on a device and allocates the caches.
func NewBatch(ctx context.Context, m *Model, dev runtime.Device, opt BatchOptions) (*Batch, error) {
	if opt.Sequences < 1 {
		return nil, fmt.Errorf("llm: a batch of %d sequences, want at least 1", opt.Sequences)
	}
	if opt.Ahead < 1 {
		opt.Ahead = max(dev.Target().Tuning.RunsAhead, 1)
	}
	options := SessionOptions{Context: opt.Context, Ahead: opt.Ahead, Mode: opt.Mode, Cache: opt.Cache, Config: opt.Config, Prepare: opt.Prepare}
	if opt.Weights != nil {
		options.weights = opt.Weights.session
	}
	s, err := newSession(ctx, m, dev, options, opt.Sequences, func(s *Session, p Preparation) wanted { return s.wants(p, true, false) })
	if err != nil {
		return nil, err
	}
	return &Batch{s}, nil
}

// Positions are the numbers of tokens in the caches.
func (b *Batch) Positions() []int { return slices.Clone(b.session.positions) }

// Reset forgets the contents of all caches.
func (b *Batch) Reset() { b.session.Reset() }

// Seek is as of a Session.
func (b *Batch) Seek(position int) error { return b.session.Seek(position) }

// ClearCaches writes zeros to all caches, for measurements at positions that were not fed: memory of a
// CPU that was never written is one page of zeros, which is read from the processor's own caches.
func (b *Batch) ClearCaches(ctx context.Context) error {
	zeros := make([]byte, 1<<20)
	for name, m := range b.session.memory {
		for at := int64(0); isCache(name) && at < m.Size(); at += int64(len(zeros)) {
			if err := m.Write(ctx, at, zeros[:min(int64(len(zeros)), m.Size()-at)]); err != nil {
				return fmt.Errorf("llm: buffer %q: %w", name, err)
			}
		}
	}
	return nil
}

// Close frees the device memory.
func (b *Batch) Close() { b.session.Close() }

// Prepare compiles the steps that feeding a prompt of n tokens and single ones after
// it take, and the sampler. Generate compiles its loop when it is first called.
func (b *Batch) Prepare(ctx context.Context, n int, opt Sampling) error {
	return b.session.prepare(ctx, b.session.wants(Preparation{n, opt}, true, false))
}

// FirstChunk is how many of n tokens of a sequence the first step takes.
func (b *Batch) FirstChunk(n int) int { return min(b.session.chunkFor(n), n) }

// LoadTime is as of a Session.
func (b *Batch) LoadTime() time.Duration { return b.session.LoadTime() }

// CompileTime is the time spent so far in compiling and loading steps.
func (b *Batch) CompileTime() time.Duration { return b.session.CompileTime() }

// CompileParts says what CompileTime was spent in.
func (b *Batch) CompileParts() map[string]time.Duration { return b.session.CompileParts() }

// Feed appends tokens to the caches, at least one to each. The numbers may differ:
// the shorter ones join late, so that the last token of each is fed in the last
// step, whose logits Logits returns.
func (b *Batch) Feed(ctx context.Context, tokens [][]int32) error {
	return b.session.feed(ctx, tokens, func(int) error { return nil })
}

// Logits are those of the last token fed of each sequence.
func (b *Batch) Logits(ctx context.Context) ([][]float32, error) {
	vocabulary := b.session.model.Config.Vocabulary
	raw := make([]byte, 4*vocabulary*b.session.sequences)
	if err := b.session.memory[BufferLogits].Read(ctx, 0, raw); err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(float32s(raw), vocabulary)), nil
}

// Compiled returns the compiled step that feeds a number of tokens to each sequence,
// as it is at the current positions.
func (b *Batch) Compiled(ctx context.Context, tokens int) (*CompiledStep, error) {
	st, err := b.session.step(ctx, b.session.chunkFor(tokens))
	if err != nil {
		return nil, err
	}
	return b.session.describe(st, b.session.vars(st.variant.Tokens)), nil
}

// Profile runs one step on tokens, as many for each sequence, without moving on, and
// returns the compiled step with the time of each of its calls in the order of its
// launches.
func (b *Batch) Profile(ctx context.Context, tokens [][]int32) (*CompiledStep, []time.Duration, error) {
	if err := b.session.check(tokens); err != nil {
		return nil, nil, err
	}
	st, err := b.session.load(ctx, b.session.chunkFor(len(tokens[0])), tokens)
	if err != nil {
		return nil, nil, err
	}
	vars := b.session.vars(st.variant.Tokens)
	times, err := st.engine.Profile(ctx, vars)
	return b.session.describe(st, vars), times, err
}

// Loaded returns the step that feeds tokens, as many to each sequence, at the current positions
// without moving on, and what captures another compilation of it on the same buffers.
func (b *Batch) Loaded(ctx context.Context, tokens [][]int32) (*CompiledStep, func(context.Context, *engine.Compiled) (*engine.Step, error), error) {
	if err := b.session.check(tokens); err != nil {
		return nil, nil, err
	}
	st, err := b.session.load(ctx, b.session.chunkFor(len(tokens[0])), tokens)
	if err != nil {
		return nil, nil, err
	}
	capture := func(ctx context.Context, c *engine.Compiled) (*engine.Step, error) {
		return b.session.capture(ctx, &compiledJob{graph: st.graph, compiled: c}, st.variant)
	}
	return b.session.describe(st, b.session.vars(st.variant.Tokens)), capture, nil
}

// Chain times some calls of the step that Profile ran, by their numbers in what it
// returned: see engine.Step.Chain.
func (b *Batch) Chain(ctx context.Context, tokens int, calls []int, times int) (time.Duration, error) {
	st, err := b.session.step(ctx, b.session.chunkFor(tokens))
	if err != nil {
		return 0, err
	}
	return st.engine.Chain(ctx, b.session.vars(st.variant.Tokens), calls, times)
}

// Generate answers one request a sequence: it feeds the prompts and generates
// until every sequence has ended. Requests draw greedily or not, all alike, and
// their SplitAt and Logits are not for batches. The results are those of a Session
// for each request, but for the last bits of sums.
func (b *Batch) Generate(ctx context.Context, requests []Request) ([]*Result, error) {
	prompts := make([][]int32, len(requests))
	for i, r := range requests {
		prompts[i] = r.Prompt
		switch err := r.Sampling.Check(); {
		case err != nil:
			return nil, fmt.Errorf("sequence %d: %w", i, err)
		case r.SplitAt != 0 || r.Logits != nil || r.Sampling.onHost():
			return nil, fmt.Errorf("llm: sequence %d: a batch neither splits prompts nor hands out logits, nor draws with min-p, penalty or bias", i)
		case (r.Sampling.Temperature == 0) != (requests[0].Sampling.Temperature == 0):
			return nil, errors.New("llm: some sequences of a batch draw greedily and some do not")
		}
	}
	start := time.Now()
	if err := b.Feed(ctx, prompts); err != nil {
		return nil, err
	}
	g := &generation{session: b.session, requests: requests, over: make([]bool, len(requests))}
	for _, p := range prompts {
		g.results = append(g.results, &Result{PrefillTokens: len(p), Prefill: time.Since(start)})
	}
	return g.results, g.run(ctx)
}

// generation is Generate after the prompts.
type generation struct {
	session  *Session
	requests []Request
	results  []*Result
	over     []bool
	sampler  *sampler
}

func (g *generation) run(ctx context.Context) error {
	s := g.session
	greedy := g.requests[0].Sampling.Temperature == 0
	var err error
	if g.sampler, err = s.sampler(ctx, greedy); err != nil {
		return err
	}
	ids, err := g.sampler.draw(ctx, samplings(g.requests), s.model.Config.Vocabulary)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if g.over[i] = g.requests[i].Tokens == 0; !g.over[i] {
			if err := g.accept(i, id); err != nil {
				return err
			}
		}
	}
	if !slices.Contains(g.over, false) {
		return nil
	}
	l, err := s.loop(ctx, greedy)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.begin(ctx, l, g.requests, ids, g.over); err != nil {
		return err
	}
	for slices.Contains(g.over, false) {
		if l, err = s.loop(ctx, greedy); err != nil {
			return err
		}
		steps := g.steps()
		if l.rows < s.options.Context {
			steps = min(steps, l.rows-s.position())
		}
		if err := g.look(ctx, l, steps); err != nil {
			return err
		}
	}
	for _, r := range g.results {
		r.Decode = time.Since(start)
	}
	return nil
}

func samplings(requests []Request) []Sampling {
	return lists.Map(requests, func(r Request) Sampling { return r.Sampling })
}

// steps is how many the device goes before the next look: no further than the
// sequence that wants most.
func (g *generation) steps() int {
	most, s := 0, g.session
	for i, r := range g.requests {
		if g.over[i] {
			continue
		}
		n := s.options.Context - s.positions[i]
		if r.Tokens > 0 {
			n = min(n, r.Tokens-len(g.results[i].Tokens))
		}
		most = max(most, n)
	}
	return min(most, s.options.Ahead)
}

// look runs the loop some steps and takes the tokens that they drew. What a
// sequence drew after its end does not count.
func (g *generation) look(ctx context.Context, l *loop, steps int) error {
	s := g.session
	err := error(nil)
	started := 0
	for started < steps && err == nil {
		var runs int
		runs, err = l.start(ctx, steps-started, func(run int) map[string]int64 { return s.vars(started + run + 1) })
		started += runs
	}
	if err := errors.Join(err, l.wait()); err != nil {
		return err
	}
	ring := make([]byte, 4*s.sequences*s.options.Context)
	if err := s.memory[bufferRing].Read(ctx, 0, ring); err != nil {
		return err
	}
	rows := slices.Collect(slices.Chunk(int32s(ring), s.options.Context))
	for i := range g.requests {
		for range steps {
			if g.over[i] {
				break
			}
			id := rows[i][s.positions[i]]
			s.positions[i]++
			g.results[i].DecodeTokens++
			if g.requests[i].Sampling.Temperature != 0 {
				g.sampler.draws[i]++
			}
			if err := g.accept(i, id); err != nil {
				return err
			}
		}
	}
	return s.writeDone(ctx, g.over)
}

// accept adds a token to a sequence.
func (g *generation) accept(i int, id int32) (err error) {
	g.over[i], err = g.session.accept(i, g.requests[i], g.results[i], id)
	if errors.Is(err, ErrStop) {
		g.results[i].Ended = true
		return nil
	}
	return err
}
