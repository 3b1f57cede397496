package shell

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tgc/engine"
	_ "tgc/internal/rarecollection"
	"tgc/llm"
	"tgc/llm/chat"
	"tgc/llm/synth"
	"tgc/runtime/devices"
)

// script is an Input of given lines; the line "^C" is thrown away.
type script struct {
	lines   []string
	prompts []string
}

func (s *script) Line(prompt string) (string, error) {
	s.prompts = append(s.prompts, prompt)
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	if line == "^C" {
		return "", ErrAborted
	}
	return line, nil
}

// echo is a template that is short and shows what was said.
const echo = `{% for m in messages %}{{ m.role[0] ~ ': ' ~ m.content ~ '\n' }}{% endfor %}`

// newShell makes a dialogue with the model "tiny", and its two streams.
func newShell(t *testing.T, lines ...string) (*Shell, *strings.Builder, *strings.Builder) {
	t.Helper()
	shape, err := synth.Lookup("tiny")
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Memory(t.Context(), shape, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	dev, _, err := devices.Open(t.Context(), "cpu", devices.Options{Threads: 1})
	if err != nil {
		if dev, _, err = devices.Open(t.Context(), "interp", devices.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 128, Config: engine.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		dev.Close()
		m.Close()
	})
	tmpl, err := chat.NewTemplate(echo, m.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := chat.New(s, tmpl, "", chat.Options{Context: 128, Tokens: 2, Sampling: llm.Sampling{TopP: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var out, notes strings.Builder
	return &Shell{
		Conversation: c, Input: &script{lines: lines}, Out: &out, Err: &notes, Interactive: true,
		Answering: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
	}, &out, &notes
}

// said are the user's messages.
func said(c *chat.Conversation) (list []string) {
	for _, m := range c.Messages() {
		if m.Role == chat.User {
			list = append(list, m.Content)
		}
	}
	return list
}

// Lines become messages: one each, or several where the user says so.
func TestMessages(t *testing.T) {
	s, out, notes := newShell(t,
		"one", "  ", "^C", "//slash", `two \`, `lines\`, "end", `"""a block`, "/help is text here", "", `of lines"""`, `"""short"""`, `"""`, "given up", "^C", "last\\")
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"one", "/slash", "two \nlines\nend", "a block\n/help is text here\n\nof lines", "short", "last"}
	if got := said(s.Conversation); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got the messages %q, want %q", got, want)
	}
	if strings.Count(notes.String(), "Ctrl-D") != 2 {
		t.Errorf("the notes are %q, want a hint for each line that was thrown away", notes)
	}
	if !strings.HasSuffix(out.String(), "\n\n") {
		t.Errorf("the answers end with %q", out.String()[max(len(out.String())-20, 0):])
	}
	if p := s.Input.(*script).prompts; p[0] != firstPrompt || p[5] != morePrompt {
		t.Errorf("prompts %q", p)
	}
}

// The commands.
func TestCommands(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.json")
	s, _, notes := newShell(t, "/system", "/system Be kind.", "/system", "hello", "/save "+name, "/reset", "/load "+name, "more",
		"/stats", "/stats on", "again", "/stats off", "/help", "/nosuch", "/save", "/reset now", "/stats maybe", "/load "+name+".none", "/exit", "never")
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"there is no system prompt", "a new conversation with this system prompt", "\nBe kind.\n", "(3 messages written to ",
		"(a new conversation)", "(3 messages read from ", "(2 answers: ", "positions used", "/load FILE", "/nosuch is no command",
		"/save wants FILE", "/reset takes nothing", "want on or off", "no such file",
	} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	if got := said(s.Conversation); strings.Join(got, "|") != "hello|more|again" {
		t.Errorf("got the messages %q", got)
	}
}

// From a pipe a line is a message as it stands, there is no prompt, and an error ends it.
func TestPipe(t *testing.T) {
	s, out, _ := newShell(t, `one\`, `"""two`, "/stats", "/nosuch", "never")
	s.Interactive, s.JSON = false, true
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "/nosuch") {
		t.Errorf("ended with %v, want the unknown command", err)
	}
	if got := said(s.Conversation); strings.Join(got, "|") != `one\|"""two` {
		t.Errorf("got the messages %q", got)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var r reply
	if len(lines) != 2 || json.Unmarshal([]byte(lines[1]), &r) != nil || r.End == "" || r.Prompt == 0 || r.Tokens == 0 {
		t.Errorf("printed %q, want two objects", out)
	}
	for _, p := range s.Input.(*script).prompts {
		if p != "" {
			t.Errorf("the prompt %q in a pipe", p)
		}
	}
}

// The end of the context ends a dialogue that waits for a line.
func TestEndOfContext(t *testing.T) {
	s, _, _ := newShell(t)
	forever := make(chan struct{})
	defer close(forever)
	s.Input = inputFunc(func(string) (string, error) { <-forever; return "", io.EOF })
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if err := s.Run(ctx); err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
}

type inputFunc func(string) (string, error)

func (f inputFunc) Line(prompt string) (string, error) { return f(prompt) }

// What a model writes cannot command a terminal.
func TestPrintable(t *testing.T) {
	s := &Shell{Escape: true}
	if got := s.printable("a\x1b[31m\x07\u009b\tb\r\né"); got != "a\uFFFD[31m\uFFFD\uFFFD\tb\uFFFD\né" {
		t.Errorf("got %q", got)
	}
}
