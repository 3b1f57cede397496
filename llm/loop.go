package llm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tgc/engine"
	"tgc/gguf"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// State of a decode loop in device buffers, besides tokens and positions. The
// step reads one version of it and assigns the next.
const (
	bufferDone = "loop.done" // i32 [B]: 1 once a token of ends was drawn
	bufferEnds = "loop.ends" // i32 [B, E]: tokens that end the generation, or -1
	bufferRing = "loop.ring" // i32 [B, ctx]: the token drawn after each position
)

// BuildLoop makes the graph of a step that goes on by itself: it feeds the tokens
// in BufferTokens, draws the next ones from the logits, and leaves them there for
// its next run, with the positions after them. With greedy the largest logit is taken,
// else floats and words are those of BuildSampler, and the counters of draws advance
// too. Once a sequence has drawn an end, a run changes nothing of it but the
// cache row at its position, which holds no token yet.
func BuildLoop(c *Config, f *gguf.File, v Variant, ends int, greedy bool) (*tensor.Graph, error) {
	if v.Tokens != 1 || v.All {
		return nil, fmt.Errorf("llm: a loop of %d tokens a step, want 1", v.Tokens)
	}
	g := tensor.NewGraph()
	in := stepInputs(g, v)
	logits, err := in.forward(c, f, v)
	if err != nil {
		return nil, err
	}
	done := g.Input(bufferDone, ir.I32, v.Batch)
	going := done.Eq(g.Scalar(ir.I32, 0)) // [B]
	// Coordinates out of range are not written.
	outside := func(size int) *tensor.Tensor { return g.Scalar(ir.I32, float64(size)) }
	sequences := g.Iota(ir.I32, g.Dims(v.Batch)[0])

	columns := going.Unsqueeze(1).Where(g.Iota(ir.I32, g.Dims(c.Vocabulary)[0]), outside(c.Vocabulary))
	logits = g.Input(BufferLogits, ir.F32, v.Batch, c.Vocabulary).AssignAt(logits, sequences.Unsqueeze(1), columns)
	g.Keep(logits)

	next := logits.Argmax(-1)
	if !greedy {
		words := g.Input(bufferWords, ir.U32, v.Batch, 3)
		next = drawToken(logits, g.Input(bufferFloats, ir.F32, v.Batch, 2), words)
		counter := g.Iota(ir.I32, g.Dims(3)[0]).Eq(g.Scalar(ir.I32, 2)).And(going.Unsqueeze(1))
		g.Store(words, words.Add(counter.Cast(ir.U32)))
	}
	row := going.Where(in.first, outside(v.Context))
	g.Keep(g.Input(bufferRing, ir.I32, v.Batch, v.Context).AssignAt(next, sequences, row))
	g.Store(in.tokens, going.Where(next, in.tokens.Reshape(v.Batch)).Unsqueeze(1))
	g.Store(in.first, in.first.Add(going.Cast(ir.I32)))
	ended := next.Unsqueeze(1).Eq(g.Input(bufferEnds, ir.I32, v.Batch, ends)).Cast(ir.I32).Max(1)
	g.Store(done, done.Maximum(ended))
	return g, g.Err()
}

// ahead is the number of steps of a generation that the device runs before the host
// looks at the tokens; 0 for the host's loop.
func (s *Session) ahead() int {
	switch {
	case s.options.All || s.options.Ahead < 0:
		return 0
	case s.options.Ahead > 0:
		return s.options.Ahead
	}
	return s.device.Target().Tuning.RunsAhead
}

// loop is a compiled decode loop, bound to the buffers of the session.
type loop struct {
	engine  *engine.Step
	several *engine.Step // of perGraph runs, nil where one launch starts one
	ends    int
	rows    int // of the cache that it may visit
	// perGraph is how many runs of the loop one graph holds.
	perGraph int
}

// graphs makes the graph of several runs where that pays or the options say so.
func (s *Session) graphs(ctx context.Context, l *loop) (err error) {
	l.perGraph = cmp.Or(s.options.PerGraph, s.device.Target().Tuning.GraphRuns(len(l.engine.Compiled.Launches)))
	return s.loading(func() error {
		l.several, err = l.engine.Repeat(ctx, l.perGraph)
		return err
	})
}

// start starts up to left runs, one or several, and returns their number. vars(n)
// are the variables of the run that comes after n others.
func (l *loop) start(ctx context.Context, left int, vars func(run int) map[string]int64) (int, error) {
	if l.several != nil && left >= l.perGraph {
		values := l.engine.Compiled.Values
		if first := vars(0); maps.Equal(values(first), values(vars(l.perGraph-1))) {
			return l.perGraph, l.several.Start(ctx, first)
		}
	}
	return 1, l.engine.Start(ctx, vars(0))
}

// wait waits for all that was started.
func (l *loop) wait() error {
	err := l.engine.Wait()
	if l.several != nil {
		err = errors.Join(err, l.several.Wait())
	}
	return err
}

func (l *loop) free() {
	if l.several != nil {
		l.several.Free()
	}
	l.engine.Free()
}

// loopKey is what a session chooses a decode loop by.
type loopKey struct {
	greedy bool
	rows   int // of the cache that it may visit
}

// loop returns the compiled decode loop from the current positions on, greedy or not.
func (s *Session) loop(ctx context.Context, greedy bool) (*loop, error) {
	return s.loopOf(ctx, loopKey{greedy, s.stepKey(1, s.position()).rows})
}

func (s *Session) loopOf(ctx context.Context, k loopKey) (*loop, error) {
	if l, ok := s.loops[k]; ok {
		return l, nil
	}
	done, err := s.compile(ctx, s.loopJob(k))
	if err != nil {
		return nil, err
	}
	l := &loop{ends: max(1, len(s.ends())), rows: k.rows}
	if l.engine, err = s.capture(ctx, done, s.variant(stepKey{1, k.rows})); err != nil {
		return nil, err
	}
	if err := s.graphs(ctx, l); err != nil {
		l.free()
		return nil, err
	}
	s.loops[k] = l
	return l, nil
}

// ends lists the tokens that a generation ends at.
func (s *Session) ends() []int32 {
	if s.model.Tokenizer == nil {
		return nil
	}
	return s.model.Tokenizer.EndOfText()
}

// decodeAhead generates as decode does, n steps before each look at the tokens.
func (s *Session) decodeAhead(ctx context.Context, r Request, result *Result) error {
	n := s.ahead()
	if r.Tokens == 0 {
		return nil
	}
	id, err := s.Sample(ctx, r.Sampling)
	if err != nil {
		return err
	}
	if over, err := s.accept(0, r, result, id); over || err != nil {
		return err
	}
	l, err := s.loop(ctx, r.Sampling.Temperature == 0)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.checkTokens(0, []int32{id}); err != nil {
		return err
	}
	if err := s.begin(ctx, l, []Request{r}, []int32{id}, []bool{false}); err != nil {
		return err
	}
	for {
		if l, err = s.loop(ctx, r.Sampling.Temperature == 0); err != nil {
			return err
		}
		steps := min(n, l.rows-s.positions[0])
		if r.Tokens > 0 {
			steps = min(steps, r.Tokens-len(result.Tokens))
		}
		tokens, stopped := s.advance(ctx, l, steps)
		result.Decode += time.Since(start)
		if over, err := s.take(r, result, tokens); over || err != nil {
			return err
		}
		if stopped != nil {
			return stopped
		}
		start = time.Now()
	}
}

// begin writes the state from which the loop goes on after tokens ids. Sequences
// that are over do not move.
func (s *Session) begin(ctx context.Context, l *loop, requests []Request, ids []int32, over []bool) error {
	if err := s.writeTokens(ctx, 1, ids); err != nil {
		return err
	}
	var ends []int32
	for _, r := range requests {
		own := slices.Repeat([]int32{-1}, l.ends)
		if !r.IgnoreEOS {
			copy(own, s.ends())
		}
		ends = append(ends, own...)
	}
	if err := s.write(ctx, bufferEnds, ends...); err != nil {
		return err
	}
	if err := s.writeDone(ctx, over); err != nil || requests[0].Sampling.Temperature == 0 {
		return err
	}
	return writeSampling(ctx, s.memory[bufferFloats], s.memory[bufferWords], samplings(requests), s.samplers[false].draws, s.model.Config.Vocabulary)
}

// writeDone tells the device which sequences are over.
func (s *Session) writeDone(ctx context.Context, over []bool) error {
	done := make([]int32, len(over))
	for i, yes := range over {
		if yes {
			done[i] = 1
		}
	}
	return s.write(ctx, bufferDone, done...)
}

// advance runs the loop some steps and returns the tokens they drew. When ctx
// ends, the tokens of the steps that were started come with its cause.
func (s *Session) advance(ctx context.Context, l *loop, steps int) (tokens []int32, err error) {
	started := 0
	for started < steps && err == nil {
		var runs int
		runs, err = l.start(ctx, steps-started, func(run int) map[string]int64 { return s.vars(started + run + 1) })
		if err == nil {
			started += runs
		}
	}
	if waitErr := l.wait(); waitErr != nil {
		return nil, waitErr
	}
	if started == 0 {
		return nil, err
	}
	raw := make([]byte, 4*started)
	if readErr := s.memory[bufferRing].Read(context.WithoutCancel(ctx), 4*int64(s.positions[0]), raw); readErr != nil {
		return nil, readErr
	}
	return int32s(raw), err
}

// take accepts the tokens of steps that ran, and moves on past what was fed for
// each. Steps after the last token that counts were in vain.
func (s *Session) take(r Request, result *Result, tokens []int32) (over bool, err error) {
	for i, id := range tokens {
		s.positions[0]++
		s.fed, s.fedStep = 1, 1
		result.DecodeTokens++
		if p, ok := s.samplers[false]; ok && r.Sampling.Temperature != 0 {
			p.draws[0]++
		}
		if over, err = s.accept(0, r, result, id); err == nil && !over {
			err = s.checkTokens(0, []int32{id})
		}
		if err != nil && i < len(tokens)-1 {
			s.fed = 0 // the logits are those of a later token
		}
		if over || err != nil {
			return true, err
		}
	}
	return false, nil
}

func int32s(data []byte) []int32 {
	return lists.Make(len(data)/4, func(i int) int32 { return int32(binary.LittleEndian.Uint32(data[4*i:])) })
}
