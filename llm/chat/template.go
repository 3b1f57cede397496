package chat

import (
	"context"
	"errors"
	"fmt"
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
	segments := make([]tokenizer.Segment, len(pieces))
	for i, p := range pieces {
		segments[i] = tokenizer.Segment{Text: p.Text, Outside: p.Outside}
	}
	ids, err := t.tokenizer.EncodeSegments(segments)
	if err != nil {
		return nil, err
	}
	if bos := t.tokenizer.BOS(); t.tokenizer.AddsBOS() && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	return ids, nil
}

// Prompt is the tokens after which a model answers messages.
func (t *Template) Prompt(ctx context.Context, messages []Message) ([]int32, error) {
	pieces, err := t.Render(ctx, Variables(messages))
	if err != nil {
		return nil, err
	}
	ids, err := t.Tokens(pieces)
	if err == nil && len(ids) == 0 {
		err = errors.New("the chat template makes an empty prompt of these messages")
	}
	return ids, err
}
