package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tgc/gguf"
	"tgc/llm"
	"tgc/llm/huggingface"
	"tgc/llm/story"
	"tgc/llm/synth"
	"tgc/llm/tokenizer"
)

// openFile opens a model file, or a folder as Hugging Face has it or with one model's GGUF files; the name of a shape
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
	name, err := fileInFolder(name)
	if err != nil {
		return nil, err
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

// laterFile are names of the second and later files of a split model.
var laterFile = regexp.MustCompile(`-(0000[2-9]|000[1-9]\d|00[1-9]\d\d|0[1-9]\d{3}|[1-9]\d{4})-of-\d{5}\.gguf$`)

// fileInFolder is the GGUF file of a folder that holds one, or the first of one model's files;
// any other name is what it is.
func fileInFolder(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return name, nil // opening it says what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return "", err
	}
	var models []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".gguf") && !laterFile.MatchString(e.Name()) {
			models = append(models, e.Name())
		}
	}
	if len(models) != 1 {
		found := "none"
		if len(models) > 1 {
			found = gguf.Quote(strings.Join(models, ", "))
		}
		return "", fmt.Errorf("%s: want a config.json or the files of one GGUF model in this folder, found %s", name, found)
	}
	return filepath.Join(name, models[0]), nil
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
