package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tgc/gguf"
	"tgc/llm/template"
	"tgc/llm/tokenizer"
)

// Message is one turn of a conversation, or the system prompt.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// The roles of messages.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// templateKey is where a model file keeps its template.
const templateKey = "tokenizer.chat_template"

// ErrNoTemplate says that a model file has no template of its own.
var ErrNoTemplate = errors.New("the model has no chat template (" + templateKey + ")")

// Template makes prompts for a model.
type Template struct {
	template  *template.Template
	tokenizer *tokenizer.Tokenizer
	// Now is the time that templates may ask for; nil leaves them without.
	Now template.Clock
}

// NewTemplate makes the template of a source for a vocabulary, which may be nil where
// only texts are wanted.
func NewTemplate(source string, t *tokenizer.Tokenizer) (*Template, error) {
	parsed, err := template.Parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{template: parsed, tokenizer: t}, nil
}

// Source returns the template that a model file carries.
func Source(f *gguf.File) (string, error) {
	if !f.Has(templateKey) {
		return "", fmt.Errorf("%s: %w", f.Name(), ErrNoTemplate)
	}
	return f.String(templateKey)
}

// Today is a clock for Template.Now.
func Today() time.Time { return time.Now() }

// Variables are what a template sees of messages.
func Variables(messages []Message) *template.Dict {
	list := make([]template.Value, len(messages))
	for i, m := range messages {
		d := template.NewDict()
		d.Set("role", template.Outside(m.Role))
		d.Set("content", template.Outside(m.Content))
		list[i] = d
	}
	vars := template.NewDict()
	vars.Set("messages", template.NewList(list...))
	vars.Set("add_generation_prompt", true)
	return vars
}

// Render fills the template. The vocabulary's special tokens are added to the variables
// where they are missing.
func (t *Template) Render(ctx context.Context, vars *template.Dict) ([]template.Piece, error) {
	if t.tokenizer != nil {
		for name, id := range map[string]int32{"bos_token": t.tokenizer.BOS(), "eos_token": t.tokenizer.EOS()} {
			if _, have := vars.Get(name); !have {
				vars.Set(name, template.Inside(t.tokenizer.TokenText(id)))
			}
		}
	}
	return t.template.Render(ctx, vars, template.Options{Clock: t.Now})
}

// Tokens encodes a rendered prompt. Only the template's own text makes control tokens.
// BOS comes first where the vocabulary wants it, once, whether or not the template
// writes it too.
func (t *Template) Tokens(pieces []template.Piece) ([]int32, error) {
	ids, err := t.tokenizer.EncodeSegments(segments(pieces))
	if err != nil || !t.lacksBOS(ids) {
		return ids, err
	}
	return append([]int32{t.tokenizer.BOS()}, ids...), nil
}

func (t *Template) lacksBOS(ids []int32) bool {
	return t.tokenizer.AddsBOS() && (len(ids) == 0 || ids[0] != t.tokenizer.BOS())
}

func segments(pieces []template.Piece) []tokenizer.Segment {
	list := make([]tokenizer.Segment, len(pieces))
	for i, p := range pieces {
		list[i] = tokenizer.Segment{Text: p.Text, Outside: p.Outside}
	}
	return list
}

// Prompt is the tokens after which a model answers messages. Where have, the tokens in
// a cache, spell its beginning in another way than the vocabulary would, as answers often
// do that a model generated, they are kept: what the model said need not be computed again.
func (t *Template) Prompt(ctx context.Context, messages []Message, have []int32) ([]int32, error) {
	pieces, err := t.Render(ctx, Variables(messages))
	if err != nil {
		return nil, err
	}
	ids, err := t.Tokens(pieces)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("the chat template makes an empty prompt of these messages")
	}
	var first []int32
	if len(have) > 0 && have[0] == t.tokenizer.BOS() && !opensWith(pieces, t.tokenizer.TokenText(have[0])) {
		first, have = have[:1], have[1:] // it is not of the template's text
	}
	kept, err := t.tokenizer.ContinueSegments(have, segments(pieces))
	if err != nil {
		return nil, err
	}
	if kept = slices.Concat(first, kept); common(kept, slices.Concat(first, have)) > common(ids, slices.Concat(first, have)) {
		return kept, nil
	}
	return ids, nil
}

// opensWith tells whether the template's own text begins with a token's name.
func opensWith(pieces []template.Piece, name string) bool {
	return len(pieces) > 0 && !pieces[0].Outside && strings.HasPrefix(pieces[0].Text, name)
}

// common is the number of tokens at the beginning that two lists share.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
