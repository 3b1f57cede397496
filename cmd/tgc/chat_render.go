package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tgc/gguf"
	"tgc/llm"
	"tgc/llm/chat"
	"tgc/llm/template"
)

// renderPiece is a part of a rendered prompt, as chat --render --json prints it.
type renderPiece struct {
	Text    string `json:"text"`
	Outside bool   `json:"outside"`
}

// rendered is what chat --render --json prints.
type rendered struct {
	Text   string        `json:"text"`
	Pieces []renderPiece `json:"pieces"`
	Tokens []int32       `json:"tokens,omitempty"`
}

// render prints the prompt that a template makes of a file's variables.
func (o *chatFlags) render(cmd *cobra.Command, name string) error {
	t, closeModel, err := o.renderTemplate(cmd.Context(), name)
	if err != nil {
		return err
	}
	defer closeModel()
	text, err := readInput(cmd, o.renderFile)
	if err != nil {
		return err
	}
	vars, err := renderVariables(text, t)
	if err != nil {
		return fmt.Errorf("%s: %w", o.renderFile, err)
	}
	pieces, err := t.Render(cmd.Context(), vars)
	if err != nil {
		return err
	}
	if !o.json {
		_, err = fmt.Fprint(cmd.OutOrStdout(), template.Join(pieces))
		return err
	}
	out := rendered{Text: template.Join(pieces), Pieces: []renderPiece{}}
	for _, p := range pieces {
		out.Pieces = append(out.Pieces, renderPiece(p))
	}
	if name != "" {
		if out.Tokens, err = t.Tokens(pieces); err != nil {
			return err
		}
	}
	return printJSON(cmd, out)
}

// renderTemplate is the template of --template, or else that of the model.
func (o *chatFlags) renderTemplate(ctx context.Context, name string) (*chat.Template, func() error, error) {
	if name == "" {
		t, err := o.readTemplate(nil, nil)
		return t, func() error { return nil }, err
	}
	f, err := openOutline(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	t, err := o.readTemplate(f, nil)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return t, f.Close, nil
}

// readTemplate reads --template, or a model file's own template. m is the open model,
// where there is one.
func (o *chatFlags) readTemplate(f *gguf.File, m *llm.Model) (*chat.Template, error) {
	source := ""
	if o.template != "" {
		data, err := os.ReadFile(o.template)
		if err != nil {
			return nil, err
		}
		source = string(data)
	} else {
		var err error
		if source, err = chat.Source(f); errors.Is(err, chat.ErrNoTemplate) {
			return nil, fmt.Errorf("%w: give one with --template FILE.jinja", err)
		} else if err != nil {
			return nil, err
		}
	}
	if f == nil {
		return chat.NewTemplate(source, nil)
	}
	if m != nil {
		return chat.NewTemplate(source, m.Tokenizer)
	}
	tok, err := llm.ReadTokenizer(f)
	if err != nil {
		return nil, err
	}
	return chat.NewTemplate(source, tok)
}

// renderVariables reads the file of --render. The same file gives the same prompt on
// every day: templates have a clock only where the file's "strftime_now" stops it.
func renderVariables(text string, t *chat.Template) (*template.Dict, error) {
	v, err := template.FromJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	vars, ok := v.(*template.Dict)
	if !ok {
		return nil, errors.New(`want a JSON object with "messages"`)
	}
	if _, ok := vars.Get("messages"); !ok {
		return nil, errors.New(`the JSON object has no "messages"`)
	}
	for _, name := range []string{"bos_token", "eos_token"} {
		if token, ok := vars.Get(name); ok {
			if text, ok := token.(template.Text); ok {
				vars.Set(name, template.Inside(text.String()))
			}
		}
	}
	if day, ok := vars.Get("strftime_now"); ok {
		at, err := time.Parse(time.DateOnly, fmt.Sprint(day))
		if err != nil {
			return nil, fmt.Errorf(`"strftime_now" is %s, want a date such as "2024-07-26"`, gguf.Quote(fmt.Sprint(day)))
		}
		vars.Delete("strftime_now")
		t.Now = func() time.Time { return at }
	}
	return vars, nil
}
