package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"tgc/engine"
	"tgc/llm"
	"tgc/llm/tokenizer"
	"tgc/runtime/cpu"
)

// Every plot, with all its ways to say something, comes out as whole sentences
// that speak of one hero.
func TestStories(t *testing.T) {
	seen := make(map[string]bool)
	for n := range uint64(2000) {
		text := story(1, n)
		if text != story(1, n) {
			t.Fatalf("story %d is told in two ways", n)
		}
		seen[text] = true
		if strings.ContainsAny(text, "{}[]|") || strings.Contains(text, "  ") || strings.Contains(text, " .") {
			t.Errorf("story %d: %s", n, text)
		}
		if first := []rune(text)[0]; !unicode.IsUpper(first) {
			t.Errorf("story %d begins with %c", n, first)
		}
		if end := text[len(text)-1]; end != '.' && end != '!' && end != '"' {
			t.Errorf("story %d ends with %c", n, end)
		}
	}
	if len(seen) < 1990 {
		t.Errorf("%d of 2000 stories differ", len(seen))
	}
}

func TestPolish(t *testing.T) {
	for in, want := range map[string]string{
		`a owl came. it saw a apple.`:    `An owl came. It saw an apple.`,
		`"why?" asked Tom. "a old box!"`: `"Why?" asked Tom. "An old box!"`,
		`"oh no!" he said. he ran home.`: `"Oh no!" he said. He ran home.`,
		`"stay here." the dog sat down.`: `"Stay here." The dog sat down.`,
	} {
		if got := polish(in); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A tiny model is trained, written, read and run: the file has what tgc needs.
func TestTrainWriteRun(t *testing.T) {
	ctx := t.Context()
	dev, err := cpu.New(ctx, cpu.Options{Threads: 1})
	if errors.Is(err, cpu.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	folder := t.TempDir()
	var out bytes.Buffer
	opt := options{
		model: shape{vocabulary: 512, width: 64, layers: 1, heads: 2, shared: 1, hidden: 96, context: 64},
		steps: 40, batch: 4, length: 32, stories: 400, unseen: 20, every: 20, rate: 1e-2,
		device: "cpu", file: filepath.Join(folder, "m.gguf"), checkpoint: filepath.Join(folder, "m.safetensors"), out: &out,
	}
	if err := run(ctx, opt); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "step    20") || !strings.Contains(text, "step    40") {
		t.Errorf("output:\n%s", text)
	}
	model, err := llm.Open(opt.file)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	session, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: 64, Config: engine.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	prompt, err := model.Tokenizer.Encode("Once upon a time", true, true)
	if err != nil {
		t.Fatal(err)
	}
	if prompt[0] != model.Tokenizer.EOS() {
		t.Errorf("the prompt %v does not begin with the token in front of a story", prompt)
	}
	result, err := session.Generate(ctx, llm.Request{Prompt: prompt, Tokens: 8, Sampling: llm.Sampling{TopP: 1}, Token: func(int32) error { return nil }})
	if err != nil || result.DecodeTokens == 0 {
		t.Errorf("generated %+v, %v", result, err)
	}
}

// Text comes back from its tokens, and common words are single tokens.
func TestVocabulary(t *testing.T) {
	v, err := vocabulary(300, 700)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(v)
	if err != nil {
		t.Fatal(err)
	}
	text := story(heldOutSeries, 5)
	ids, err := tok.Encode(text, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tok.Decode(ids, false)); got != text {
		t.Errorf("got %s, want %s", got, text)
	}
	if len(ids)*3 > len(text) {
		t.Errorf("%d tokens for %d bytes", len(ids), len(text))
	}
}
