package chat

import (
	"context"
	"errors"
	"strings"

	"tgc/llm"
	"tgc/llm/tokenizer"
)

// End says why an answer ended.
type End string

// Ends of answers.
const (
	EndOfTurn    End = "stop"        // by the model, or by a text of Options.Stops
	EndLength    End = "length"      // Options.Tokens are generated
	EndContext   End = "context"     // the context is full
	EndInterrupt End = "interrupted" // the context of the call ended
)

// Reply is what an answer took.
type Reply struct {
	Text    string
	End     End
	Dropped int // messages that the model sees no more since this answer
	Statistics
}

// Answer adds what the user says, generates the answer and adds it. Text comes to write
// as it is generated, cut between characters. When ctx ends, the answer as far as it
// went is kept, and the reply says so; on any other error the conversation is as before.
func (c *Conversation) Answer(ctx context.Context, text string, write func(text string) error) (*Reply, error) {
	messages := append(c.messages[:len(c.messages):len(c.messages)], Message{User, text})
	ids, dropped, err := c.prompt(ctx, messages)
	if err != nil {
		return nil, err
	}
	shared := c.shared(ids)
	if err := c.session.Seek(shared); err != nil {
		return nil, err
	}
	w, err := newWriter(c.template.tokenizer, c.options.Stops, write)
	if err != nil {
		return nil, err
	}
	result, err := c.session.Generate(ctx, llm.Request{
		Prompt: ids[shared:], Before: ids[:shared], Tokens: c.options.Tokens, Sampling: c.options.Sampling, Token: w.token,
	})
	if result == nil {
		result = &llm.Result{} // it ended within the prompt
	}
	c.cached = append(append(c.cached[:0], ids...), result.Tokens...)[:c.session.Position()]
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		return nil, err
	}
	if err := w.end(); err != nil {
		return nil, err
	}
	reply := &Reply{Text: w.text.String(), End: c.end(result, interrupted), Dropped: dropped, Statistics: Statistics{
		Answers: 1, Prompt: len(ids), Reused: shared, Generated: len(result.Tokens),
		Prefill: result.Prefill, Decode: result.Decode, Decoded: result.DecodeTokens,
	}}
	if interrupted && len(result.Tokens) == 0 {
		return reply, nil // nothing was said: the message is taken back
	}
	c.forgot += dropped
	c.messages = append(messages, Message{Assistant, reply.Text})
	c.total.add(reply.Statistics)
	return reply, nil
}

// end tells why a generation ended.
func (c *Conversation) end(r *llm.Result, interrupted bool) End {
	switch {
	case interrupted:
		return EndInterrupt
	case r.Ended:
		return EndOfTurn
	case len(r.Tokens) == c.options.Tokens:
		return EndLength
	}
	return EndContext
}

// writer turns tokens into text and looks for stops.
type writer struct {
	stream *tokenizer.Stream
	stops  *llm.StopMatcher
	write  func(string) error
	text   strings.Builder
}

func newWriter(t *tokenizer.Tokenizer, stops []string, write func(string) error) (*writer, error) {
	m, err := llm.NewStopMatcher(stops)
	return &writer{stream: t.NewStream(false), stops: m, write: write}, err
}

func (w *writer) token(id int32) error {
	text, stopped := w.stops.Next(w.stream.Next(id))
	if err := w.put(text); err != nil {
		return err
	}
	if stopped {
		return llm.ErrStop
	}
	return nil
}

func (w *writer) put(text string) error {
	text = strings.ToValidUTF8(text, "\uFFFD")
	w.text.WriteString(text)
	if text == "" {
		return nil
	}
	return w.write(text)
}

// end writes what was held back.
func (w *writer) end() error {
	text, _ := w.stops.Next(w.stream.Flush())
	return errors.Join(w.put(text), w.put(w.stops.Flush()))
}
