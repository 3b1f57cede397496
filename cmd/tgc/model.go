package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"tgc/gguf"
	"tgc/llm"
	"tgc/llm/huggingface"
	"tgc/llm/story"
	"tgc/llm/synth"
	"tgc/llm/tokenizer"
)

// openFile opens a model file, or a folder as Hugging Face has it; the name of a shape
// makes the model in memory, "stories" is the built-in one.
func openFile(ctx context.Context, name string) (*gguf.File, error) {
	if name == story.Name {
		return story.Open()
	}
	shape, unknown := synth.Lookup(name)
	if unknown == nil {
		return synth.Memory(ctx, shape, 0)
	}
	if huggingface.IsFolder(name) {
		return huggingface.Open(ctx, name)
	}
	f, err := gguf.Open(name)
	if errors.Is(err, fs.ErrNotExist) && synth.IsDescription(name) {
		return nil, unknown
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (want a GGUF file, a folder with config.json, %q, or one of the shapes %s)", err, story.Name, shapeNames())
	}
	return f, err
}

// openOutline is openFile for those who need no weights.
func openOutline(ctx context.Context, name string) (*gguf.File, error) {
	if shape, err := synth.Lookup(name); err == nil {
		return synth.Outline(ctx, shape)
	}
	return openFile(ctx, name)
}

// openModel opens a model, ready to run.
func openModel(ctx context.Context, name string, open func(context.Context, string) (*gguf.File, error)) (*llm.Model, error) {
	f, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	m, err := llm.NewModel(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// openTokenizer opens the vocabulary of a file, which need not hold a model.
func openTokenizer(ctx context.Context, name string) (*tokenizer.Tokenizer, func() error, error) {
	f, err := openOutline(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	t, err := llm.ReadTokenizer(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return t, f.Close, nil
}
