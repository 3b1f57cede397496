package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Request is one generation.
type Request struct {
	Prompt    []int32
	Before    []int32 // tokens in the cache already: a repeat penalty looks at them too
	Tokens    int     // most tokens to generate; negative until the context is full
	Sampling  Sampling
	IgnoreEOS bool // go on after an end-of-text token
	SplitAt   int  // feed the prompt in two parts, this many tokens first; 0 in one
	// Token is called with every generated token as it comes; an error ends
	// the generation with that error, ErrStop without one.
	Token func(id int32) error
	// Logits is called with rows of logits in order of position: every prompt
	// position (SessionOptions.All), then one row after each fed token.
	Logits func(rows []float32) error
}

// Result says what a generation did.
type Result struct {
	Tokens        []int32
	Ended         bool // by an end-of-text token or ErrStop, not for want of room
	PrefillTokens int
	Prefill       time.Duration
	DecodeTokens  int // steps of one token
	Decode        time.Duration
}

// Generate feeds the prompt and generates tokens. The last token is not fed.
func (s *Session) Generate(ctx context.Context, r Request) (*Result, error) {
	if err := r.Sampling.Check(); err != nil {
		return nil, err
	}
	if len(r.Prompt) == 0 {
		return nil, errors.New("llm: the prompt is empty")
	}
	if r.SplitAt < 0 || r.SplitAt >= len(r.Prompt) {
		return nil, fmt.Errorf("llm: split at %d, want 0 to %d (the prompt has %d tokens)", r.SplitAt, len(r.Prompt)-1, len(r.Prompt))
	}
	result := &Result{PrefillTokens: len(r.Prompt)}
	start := time.Now()
	for _, part := range [][]int32{r.Prompt[:r.SplitAt], r.Prompt[r.SplitAt:]} {
		if len(part) > 0 {
			if err := s.Feed(ctx, part, r.Logits); err != nil {
				return nil, err
			}
		}
	}
	result.Prefill = time.Since(start)
	decode := s.decode
	if s.ahead() > 0 && r.Logits == nil && !r.Sampling.onHost() {
		decode = s.decodeAhead
	}
	err := decode(ctx, r, result)
	if errors.Is(err, ErrStop) {
		result.Ended, err = true, nil
	}
	return result, err
}

// decode is the host's loop: sample, look, feed.
func (s *Session) decode(ctx context.Context, r Request, result *Result) error {
	recent := slices.Concat(r.Before, r.Prompt)
	for r.Tokens < 0 || len(result.Tokens) < r.Tokens {
		id, err := s.next(ctx, r.Sampling, recent)
		if err != nil {
			return err
		}
		if over, err := s.accept(0, r, result, id); over || err != nil {
			return err
		}
		recent = append(recent, id)
		start := time.Now()
		if err := s.Feed(ctx, []int32{id}, r.Logits); err != nil {
			return err
		}
		result.Decode += time.Since(start)
		result.DecodeTokens++
	}
	return nil
}

// accept adds a token that a sequence generated and tells whether it is the last one.
func (s *Session) accept(sequence int, r Request, result *Result, id int32) (over bool, err error) {
	result.Tokens = append(result.Tokens, id)
	if r.Token != nil {
		if err := r.Token(id); err != nil {
			return true, err
		}
	}
	if !r.IgnoreEOS && s.model.Tokenizer != nil && s.model.Tokenizer.IsEndOfText(id) {
		result.Ended = true
		return true, nil
	}
	return len(result.Tokens) == r.Tokens || s.positions[sequence] == s.options.Context, nil
}
