package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tgc/engine"
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
	Config    engine.Config
}

// Batch is a model with caches for several sequences that go on together: one
// step feeds a token of each, or a part of the prompt of each, and reads the
// weights once for all. Every sequence has its own position and length. It is not
// safe for concurrent use.
type Batch struct {
	session   *Session
	positions []int
}

// NewBatch puts a model's weights on a device and allocates the caches.
func NewBatch(ctx context.Context, m *Model, dev runtime.Device, opt BatchOptions) (*Batch, error) {
	if opt.Sequences < 1 {
		return nil, fmt.Errorf("llm: a batch of %d sequences, want at least 1", opt.Sequences)
	}
	if opt.Ahead < 1 {
		opt.Ahead = max(dev.Target().Tuning.RunsAhead, 1)
	}
	s, err := newSession(ctx, m, dev, SessionOptions{Context: opt.Context, Ahead: opt.Ahead, Mode: opt.Mode, Config: opt.Config, Prepare: opt.Prepare}, opt.Sequences, func(s *Session, p Preparation) wanted { return s.wants(p, true, false) })
	if err != nil {
		return nil, err
	}
	return &Batch{session: s, positions: make([]int, opt.Sequences)}, nil
}

// Positions are the numbers of tokens in the caches.
func (b *Batch) Positions() []int { return slices.Clone(b.positions) }

// Reset forgets the contents of all caches.
func (b *Batch) Reset() { clear(b.positions) }

// Seek moves every sequence to a position without computing what lies before it.
// Only measurements have a use for it.
func (b *Batch) Seek(position int) error {
	if position < 0 || position > b.session.options.Context {
		return fmt.Errorf("llm: position %d, want 0 to %d", position, b.session.options.Context)
	}
	for i := range b.positions {
		b.positions[i] = position
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
	if err := b.check(tokens); err != nil {
		return err
	}
	left := 0 // of the longest
	for _, list := range tokens {
		left = max(left, len(list))
	}
	for left > 0 {
		size := b.session.chunkFor(left)
		after := max(left-size, 0) // tokens that the last steps feed
		parts := make([][]int32, len(tokens))
		for i, list := range tokens {
			parts[i] = list[max(len(list)-left, 0):max(len(list)-after, 0)]
		}
		if err := b.step(ctx, size, parts); err != nil {
			return err
		}
		left = after
	}
	return nil
}

func (b *Batch) check(tokens [][]int32) error {
	s := b.session
	if len(tokens) != s.sequences {
		return fmt.Errorf("llm: tokens for %d sequences, want %d", len(tokens), s.sequences)
	}
	for i, list := range tokens {
		s.position = b.positions[i]
		if err := s.checkTokens(list); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return nil
}

// step feeds a part of each sequence, perhaps none.
func (b *Batch) step(ctx context.Context, size int, parts [][]int32) error {
	st, err := b.prepare(ctx, size, parts)
	if err != nil {
		return err
	}
	if err := st.engine.Run(ctx, b.vars(size)); err != nil {
		return err
	}
	for i, part := range parts {
		b.positions[i] += len(part)
	}
	return nil
}

// prepare writes what a step reads. Padding comes after the tokens: its cache rows
// are overwritten before any query sees them.
func (b *Batch) prepare(ctx context.Context, size int, parts [][]int32) (*step, error) {
	s := b.session
	st, err := s.step(ctx, size)
	if err != nil {
		return nil, err
	}
	padded, last := make([]int32, size*s.sequences), make([]int32, s.sequences)
	for i, part := range parts {
		copy(padded[i*size:], part)
		last[i] = int32(max(len(part)-1, 0))
	}
	if err := b.load(ctx, size, padded); err != nil {
		return nil, err
	}
	if _, ok := s.memory[BufferLast]; !ok {
		return st, nil
	}
	return st, s.write(ctx, BufferLast, last...)
}

// load writes the tokens of a step and the positions.
func (b *Batch) load(ctx context.Context, size int, tokens []int32) error {
	positions := make([]int32, len(b.positions))
	for i, p := range b.positions {
		positions[i] = int32(p)
	}
	if err := b.session.write(ctx, tokensKey(size), tokens...); err != nil {
		return err
	}
	return b.session.write(ctx, BufferPositions, positions...)
}

// vars are the variables of a step that goes ahead positions further.
func (b *Batch) vars(ahead int) map[string]int64 {
	return b.session.vars(slices.Max(b.positions) + ahead)
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
	return b.session.describe(st, b.vars(st.variant.Tokens)), nil
}

// Profile runs one step on tokens, as many for each sequence, without moving on, and
// returns the compiled step with the time of each of its calls in the order of its
// launches.
func (b *Batch) Profile(ctx context.Context, tokens [][]int32) (*CompiledStep, []time.Duration, error) {
	if err := b.check(tokens); err != nil {
		return nil, nil, err
	}
	st, err := b.prepare(ctx, b.session.chunkFor(len(tokens[0])), tokens)
	if err != nil {
		return nil, nil, err
	}
	vars := b.vars(st.variant.Tokens)
	times, err := st.engine.Profile(ctx, vars)
	return b.session.describe(st, vars), times, err
}

// Chain times some calls of the step that Profile ran, by their numbers in what it
// returned: see engine.Step.Chain.
func (b *Batch) Chain(ctx context.Context, tokens int, calls []int, times int) (time.Duration, error) {
	st, err := b.session.step(ctx, b.session.chunkFor(tokens))
	if err != nil {
		return 0, err
	}
	return st.engine.Chain(ctx, b.vars(st.variant.Tokens), calls, times)
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
		case r.SplitAt != 0 || r.Logits != nil:
			return nil, fmt.Errorf("llm: sequence %d: a batch neither splits prompts nor hands out logits", i)
		case (r.Sampling.Temperature == 0) != (requests[0].Sampling.Temperature == 0):
			return nil, errors.New("llm: some sequences of a batch draw greedily and some do not")
		}
	}
	start := time.Now()
	if err := b.Feed(ctx, prompts); err != nil {
		return nil, err
	}
	g := &generation{batch: b, requests: requests, over: make([]bool, len(requests))}
	for _, p := range prompts {
		g.results = append(g.results, &Result{PrefillTokens: len(p), Prefill: time.Since(start)})
	}
	return g.results, g.run(ctx)
}

// generation is Generate after the prompts.
type generation struct {
	batch    *Batch
	requests []Request
	results  []*Result
	over     []bool
	sampler  *sampler
}

func (g *generation) run(ctx context.Context) error {
	s := g.batch.session
	greedy := g.requests[0].Sampling.Temperature == 0
	var err error
	if g.sampler, err = s.sampler(ctx, greedy); err != nil {
		return err
	}
	ids, err := g.sampler.draw(ctx, g.sampling(), s.model.Config.Vocabulary)
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
	if err := g.begin(ctx, l, ids); err != nil {
		return err
	}
	for slices.Contains(g.over, false) {
		if err := g.look(ctx, l, g.steps()); err != nil {
			return err
		}
	}
	for _, r := range g.results {
		r.Decode = time.Since(start)
	}
	return nil
}

func (g *generation) sampling() []Sampling {
	list := make([]Sampling, len(g.requests))
	for i, r := range g.requests {
		list[i] = r.Sampling
	}
	return list
}

// begin writes the state from which the loop goes on after the first tokens.
// Sequences that are over do not move.
func (g *generation) begin(ctx context.Context, l *loop, ids []int32) error {
	b, s := g.batch, g.batch.session
	if err := b.load(ctx, 1, ids); err != nil {
		return err
	}
	var ends []int32
	for _, r := range g.requests {
		own := slices.Repeat([]int32{-1}, l.ends)
		if !r.IgnoreEOS {
			copy(own, s.ends())
		}
		ends = append(ends, own...)
	}
	if err := s.write(ctx, bufferEnds, ends...); err != nil {
		return err
	}
	if err := g.stop(ctx); err != nil {
		return err
	}
	if g.requests[0].Sampling.Temperature == 0 {
		return nil
	}
	return writeSampling(ctx, s.memory[bufferFloats], s.memory[bufferWords], g.sampling(), g.sampler.draws, s.model.Config.Vocabulary)
}

// stop tells the device which sequences are over.
func (g *generation) stop(ctx context.Context) error {
	done := make([]int32, len(g.over))
	for i, over := range g.over {
		if over {
			done[i] = 1
		}
	}
	return g.batch.session.write(ctx, bufferDone, done...)
}

// steps is how many the device goes before the next look: no further than the
// sequence that wants most.
func (g *generation) steps() int {
	most, s := 0, g.batch.session
	for i, r := range g.requests {
		if g.over[i] {
			continue
		}
		n := s.options.Context - g.batch.positions[i]
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
	b, s := g.batch, g.batch.session
	err := error(nil)
	started := 0
	for started < steps && err == nil {
		var runs int
		runs, err = l.start(ctx, steps-started, func(run int) map[string]int64 { return b.vars(started + run + 1) })
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
			id := rows[i][b.positions[i]]
			b.positions[i]++
			g.results[i].DecodeTokens++
			if g.requests[i].Sampling.Temperature != 0 {
				g.sampler.draws[i]++
			}
			if err := g.accept(i, id); err != nil {
				return err
			}
		}
	}
	return g.stop(ctx)
}

// accept adds a token to a sequence.
func (g *generation) accept(i int, id int32) (err error) {
	s := g.batch.session
	s.position = g.batch.positions[i]
	g.over[i], err = s.accept(g.requests[i], g.results[i], id)
	return err
}
