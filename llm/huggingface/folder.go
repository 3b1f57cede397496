package huggingface

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tgc/gguf"
	"tgc/safetensors"
)

// Sizes of files that are read whole: those of published models are a tenth of them.
const (
	maxConfigBytes    = 4 << 20
	maxTokenizerBytes = 256 << 20
)

const configFile = "config.json"

// folder is an open folder.
type folder struct {
	path    string
	config  *config
	weights *safetensors.Sharded
}

// IsFolder reports whether a path is a folder with a model's config.json.
func IsFolder(path string) bool {
	info, err := os.Stat(filepath.Join(path, configFile))
	return err == nil && info.Mode().IsRegular()
}

// Open reads a folder as a model in memory, with its weights as they are stored. Closing
// the File gives the memory back.
func Open(ctx context.Context, path string) (*gguf.File, error) {
	d, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer d.close()
	w, err := d.writer(storedTypes)
	if err != nil {
		return nil, err
	}
	return w.Memory(ctx, path, nil)
}

// Convert writes a folder as a GGUF file, in a mixture of types by its name in lower case
// (as llm/synth has them) or, where that is empty, in the types of the weights.
func Convert(ctx context.Context, path, mixture, out string, progress gguf.Progress) error {
	d, err := openFolder(path)
	if err != nil {
		return err
	}
	defer d.close()
	types, err := d.mixtureTypes(mixture)
	if err != nil {
		return err
	}
	w, err := d.writer(types)
	if err != nil {
		return err
	}
	return w.WriteFile(ctx, out, progress)
}

func openFolder(path string) (*folder, error) {
	text, err := readLimited(filepath.Join(path, configFile), maxConfigBytes)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, configFile), err)
	}
	d := &folder{path: path, config: c}
	d.weights, err = safetensors.OpenSharded(path)
	return d, err
}

func (d *folder) close() { d.weights.Close() }

func readLimited(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: it has %d bytes, want at most %d", path, info.Size(), limit)
	}
	return os.ReadFile(path)
}

// writer describes the model as a GGUF file.
func (d *folder) writer(types typesOf) (*gguf.Writer, error) {
	w := gguf.NewWriter()
	w.Put("general.architecture", d.config.architecture)
	w.Put("general.type", "model")
	w.Put("general.name", filepath.Base(filepath.Clean(d.path)))
	for _, e := range d.config.keys {
		w.Put(d.config.architecture+"."+e.key, e.value)
	}
	tokens, err := d.tokenizer()
	if err != nil {
		return nil, err
	}
	for _, e := range tokens {
		w.Put(e.key, e.value)
	}
	list, err := d.tensors()
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		typ := types(t)
		fill, err := t.fill(typ)
		if err != nil {
			return nil, err
		}
		w.Add(t.name, typ, t.dims, fill)
	}
	return w, nil
}

// entry is one key with its value.
type entry struct {
	key   string
	value any
}
