// Package shell is the dialogue of tgc chat: lines in, answers out, commands between. It
// knows no terminal; an [Input] does.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"tgc/llm/chat"
)

// ErrAborted is what an Input returns when the user throws a line away.
var ErrAborted = errors.New("the line was thrown away")

// Input is where lines come from.
type Input interface {
	// Line reads one, without its end. io.EOF ends the dialogue.
	Line(prompt string) (string, error)
}

// Shell is a dialogue.
type Shell struct {
	Conversation *chat.Conversation
	Input        Input
	Out, Err     io.Writer // answers; everything else
	// Interactive says that a person types: there are prompts, messages of several
	// lines and hints, and an error ends only the message that it is of.
	Interactive bool
	JSON        bool // an object a line for each answer, instead of text
	Statistics  bool // a line after each answer
	// Answering gives an answer its context, which Ctrl-C ends.
	Answering func(ctx context.Context) (context.Context, context.CancelFunc)
	// Escape makes answers safe for a terminal.
	Escape bool
}

// Run reads and answers until the input or ctx ends.
func (s *Shell) Run(ctx context.Context) error {
	for {
		message, err := s.read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, ErrAborted):
			s.note("(Ctrl-D or /exit leaves)")
			continue
		case err != nil:
			return err
		}
		leave, err := s.take(ctx, message)
		if leave {
			return nil
		}
		if err != nil && (!s.Interactive || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			s.note("error: %v", err)
		}
	}
}

// take acts on one message.
func (s *Shell) take(ctx context.Context, message string) (leave bool, err error) {
	switch {
	case strings.TrimSpace(message) == "":
		return false, nil
	case strings.HasPrefix(message, "//"):
		message = message[1:]
	case strings.HasPrefix(message, "/"):
		return s.command(ctx, message)
	}
	return false, s.answer(ctx, message)
}

// Prompts of lines.
const (
	firstPrompt = "> "
	morePrompt  = ". "
)

// block marks messages of several lines.
const block = `"""`

// read reads a message. A person may write it over several lines: one that ends in a
// backslash goes on, and """ begins and ends a block.
func (s *Shell) read(ctx context.Context) (string, error) {
	line, err := s.line(ctx, firstPrompt)
	if err != nil || !s.Interactive {
		return line, err
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), block); ok {
		return s.readBlock(ctx, rest)
	}
	var lines []string
	for {
		more, goesOn := strings.CutSuffix(line, `\`)
		lines = append(lines, more)
		if !goesOn {
			return strings.Join(lines, "\n"), nil
		}
		if line, err = s.line(ctx, morePrompt); errors.Is(err, io.EOF) {
			return strings.Join(lines, "\n"), nil
		} else if err != nil {
			return "", err
		}
	}
}

func (s *Shell) readBlock(ctx context.Context, line string) (string, error) {
	var lines []string
	for {
		before, closed := strings.CutSuffix(strings.TrimRight(line, " \t"), block)
		if closed {
			line = before
		}
		lines = append(lines, line)
		if closed {
			return strings.Trim(strings.Join(lines, "\n"), "\n"), nil
		}
		var err error
		if line, err = s.line(ctx, morePrompt); err != nil {
			return "", err
		}
	}
}

// line reads a line unless ctx ends before.
func (s *Shell) line(ctx context.Context, prompt string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if !s.Interactive {
		prompt = ""
	}
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := s.Input.Line(prompt)
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// answer sends a message and writes what comes.
func (s *Shell) answer(ctx context.Context, message string) error {
	own, done := s.Answering(ctx)
	defer done()
	last := byte('\n')
	reply, err := s.Conversation.Answer(own, message, func(text string) error {
		if s.JSON {
			return nil
		}
		last = text[len(text)-1]
		_, err := io.WriteString(s.Out, s.printable(text))
		return err
	})
	if !s.JSON && last != '\n' {
		if _, err := io.WriteString(s.Out, "\n"); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err // not only the answer was ended
	}
	if s.JSON {
		return s.printJSON(reply)
	}
	s.remark(reply)
	return nil
}

// reply is what JSON says of an answer.
type reply struct {
	Text    string  `json:"text"`
	End     string  `json:"finish_reason"`
	Prompt  int     `json:"prompt_tokens"`
	Cached  int     `json:"cached_tokens"`
	Tokens  int     `json:"completion_tokens"`
	Dropped int     `json:"dropped_messages"`
	Prefill float64 `json:"prefill_tok_s"`
	Decode  float64 `json:"decode_tok_s"`
}

func (s *Shell) printJSON(r *chat.Reply) error {
	e := json.NewEncoder(s.Out)
	e.SetEscapeHTML(false)
	return e.Encode(reply{r.Text, string(r.End), r.Prompt, r.Reused, r.Generated, r.Dropped,
		rate(r.Prompt-r.Reused, r.Prefill), rate(r.Decoded, r.Decode)})
}

// remark says what a person should know of an answer.
func (s *Shell) remark(r *chat.Reply) {
	if r.Dropped > 0 {
		s.note("(the context of %d tokens is full: the model no longer sees %s; /reset starts anew, --ctx makes room)",
			s.context(), count(r.Dropped, "older message"))
	}
	switch {
	case r.End == chat.EndInterrupt && r.Generated == 0:
		s.note("(stopped before the answer began; the message is taken back)")
	case r.End == chat.EndInterrupt:
		s.note("(stopped)")
	case r.End == chat.EndLength:
		s.note("(cut at %s; -n sets the limit)", count(r.Generated, "token"))
	case r.End == chat.EndContext:
		s.note("(cut: the context of %d tokens is full; the oldest messages will be dropped with your next one)", s.context())
	}
	if s.Statistics {
		s.note("(%s)", s.describe(r.Statistics))
	}
	if s.Interactive {
		fmt.Fprintln(s.Out)
	}
}

func (s *Shell) context() int {
	_, context := s.Conversation.Used()
	return context
}

// describe is statistics in words.
func (s *Shell) describe(t chat.Statistics) string {
	used, context := s.Conversation.Used()
	return fmt.Sprintf("%s at %s tok/s; prompt of %s, %d of them in the cache, the others at %s tok/s; %d of %d positions used",
		count(t.Generated, "token"), three(rate(t.Decoded, t.Decode)), count(t.Prompt, "token"), t.Reused,
		three(rate(t.Prompt-t.Reused, t.Prefill)), used, context)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func rate(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// three are a number's first three digits, without an exponent.
func three(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (s *Shell) note(format string, args ...any) {
	fmt.Fprintln(s.Err, s.printable(fmt.Sprintf(format, args...)))
}

// printable is text as the stream of answers takes it.
func (s *Shell) printable(text string) string {
	if !s.Escape {
		return text
	}
	return Printable(text)
}

// Printable replaces what could command a terminal: a model may write anything.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, text)
}
