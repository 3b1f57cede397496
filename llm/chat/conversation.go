package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tgc/llm"
	"tgc/llm/template"
)

// Options of a conversation.
type Options struct {
	Context  int // rows of the session's cache
	Tokens   int // most tokens of an answer; negative until the context is full
	Sampling llm.Sampling
	Stops    []string // texts that end an answer, besides the model's own ends
}

// Conversation is a chat with a model in one session. It is not safe for concurrent use.
type Conversation struct {
	session  *llm.Session
	template *Template
	options  Options

	system   string    // the system prompt, "" for none
	folded   bool      // into the first question: the template takes no system messages
	messages []Message // user and assistant in turn
	forgot   int       // messages at the beginning that the model no longer sees
	cached   []int32   // tokens in the session's cache
	total    Statistics
}

// Statistics say what a conversation took.
type Statistics struct {
	Answers   int
	Prompt    int // tokens of prompts
	Reused    int // of them were in the cache already
	Generated int // tokens of answers
	Prefill   time.Duration
	Decode    time.Duration
	Decoded   int // steps of one token that Decode is the time of
}

func (s *Statistics) add(o Statistics) {
	s.Answers += o.Answers
	s.Prompt += o.Prompt
	s.Reused += o.Reused
	s.Generated += o.Generated
	s.Prefill += o.Prefill
	s.Decode += o.Decode
	s.Decoded += o.Decoded
}

// New begins a conversation in a session, which must be fresh and used by nobody else.
func New(s *llm.Session, t *Template, system string, opt Options) (*Conversation, error) {
	if _, err := llm.NewStopMatcher(opt.Stops); err != nil {
		return nil, err
	}
	if err := opt.Sampling.Check(); err != nil {
		return nil, err
	}
	return &Conversation{session: s, template: t, options: opt, system: system}, nil
}

// FoldSystem finds out whether the template refuses system prompts. From then on the
// prompt stands at the beginning of the first question.
func (c *Conversation) FoldSystem(ctx context.Context) (folded bool, err error) {
	question := []Message{{User, "?"}}
	if _, err := c.template.Render(ctx, Variables(question)); err != nil {
		return false, err
	}
	_, err = c.template.Render(ctx, Variables(slices.Concat([]Message{{System, "."}}, question)))
	var fault *template.Error
	if errors.As(err, &fault) && fault.Raised {
		c.folded, err = true, nil
	}
	return c.folded, err
}

// Reset forgets all turns, but not the system prompt.
func (c *Conversation) Reset() { c.messages, c.forgot = nil, 0 }

// SetSystem changes the system prompt and forgets all turns.
func (c *Conversation) SetSystem(text string) {
	c.system = text
	c.Reset()
}

// Messages are all turns, with the system prompt.
func (c *Conversation) Messages() []Message {
	if c.system == "" {
		return slices.Clone(c.messages)
	}
	return slices.Concat([]Message{{System, c.system}}, c.messages)
}

// with puts the system prompt before turns, as the template can take it.
func (c *Conversation) with(messages []Message) []Message {
	switch {
	case c.system == "":
		return messages
	case c.folded && len(messages) > 0:
		first := Message{messages[0].Role, c.system + "\n\n" + messages[0].Content}
		return slices.Concat([]Message{first}, messages[1:])
	}
	return slices.Concat([]Message{{System, c.system}}, messages)
}

// Restore replaces the conversation by one of before. A system prompt comes first if at
// all; then user and assistant take turns, the user first and the assistant last.
func (c *Conversation) Restore(messages []Message) error {
	system := ""
	if len(messages) > 0 && messages[0].Role == System {
		system, messages = messages[0].Content, messages[1:]
	}
	for i, m := range messages {
		want := User
		if i%2 == 1 {
			want = Assistant
		}
		if m.Role != want {
			return fmt.Errorf("message %d is of the role %q, want %q", i+1, m.Role, want)
		}
	}
	if len(messages)%2 == 1 {
		return errors.New("the last message has no answer")
	}
	c.system, c.messages, c.forgot = system, slices.Clone(messages), 0
	return nil
}

// Statistics are those of all answers so far.
func (c *Conversation) Statistics() Statistics { return c.total }

// Used tells how many rows of the cache hold tokens, of how many.
func (c *Conversation) Used() (used, context int) { return len(c.cached), c.options.Context }

// TooLongError says that a message does not fit even alone.
type TooLongError struct{ Tokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the message takes %d tokens with all that must come before it, and the context holds %d: it was not sent (--ctx sets the size)", e.Tokens, e.Context)
}

// leastAnswer is how many tokens of an answer a prompt must leave room for.
const leastAnswer = 16

// prompt makes the tokens for messages with as many of the oldest turns dropped as must
// be, and tells how many messages those are. Once a turn must go, turns go until half of
// the context is free: what stays moves in the cache and is computed again, and that
// should not happen at every turn.
func (c *Conversation) prompt(ctx context.Context, messages []Message) (ids []int32, dropped int, err error) {
	room := c.options.Context - min(leastAnswer, c.options.Context/4)
	for limit := room; ; limit = c.options.Context / 2 {
		if ids, err = c.template.Prompt(ctx, c.with(messages[c.forgot+dropped:]), c.cached); err != nil {
			return nil, dropped, err
		}
		last := len(messages) - c.forgot - dropped
		switch {
		case len(ids) <= limit:
			return ids, dropped, nil
		case last == 1 && len(ids) <= room:
			return ids, dropped, nil
		case last == 1:
			return nil, 0, &TooLongError{len(ids), c.options.Context}
		}
		dropped += min(2, last-1) // a question and its answer
	}
}

// shared is the number of tokens at the beginning that are in the cache already. One at
// least is left to be fed: the answer begins with its logits.
func (c *Conversation) shared(ids []int32) int { return min(common(ids, c.cached), len(ids)-1) }
