package llm

import (
	"tgc/gguf"
	"tgc/internal/mapfile"
	"tgc/llm/tokenizer"
	"tgc/tensor"
)

// Model is an open model file: hyperparameters and tokenizer. Weights stay in
// the mapped file.
type Model struct {
	File      *gguf.File
	Config    *Config
	Tokenizer *tokenizer.Tokenizer // nil when the file holds no vocabulary
	Name      string
}

// Open opens a model file and checks it.
func Open(path string) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	var m *Model
	if err := mapfile.Guard(func() (err error) { m, err = NewModel(f); return err }); err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// NewModel makes a Model of an open file, which it then owns.
func NewModel(f *gguf.File) (*Model, error) {
	config, err := ReadConfig(f)
	if err != nil {
		return nil, err
	}
	m := &Model{File: f, Config: config, Name: f.Name()}
	if f.Has("tokenizer.ggml.model") {
		if m.Tokenizer, err = ReadTokenizer(f); err != nil {
			return nil, err
		}
		if n := m.Tokenizer.VocabSize(); n > config.Vocabulary {
			return nil, f.KeyErrorf("tokenizer.ggml.tokens", "holds %d tokens, want at most the %d rows of token_embd.weight", n, config.Vocabulary)
		}
	}
	// Building a step checks every tensor's presence and shape.
	g, err := BuildStep(config, f, Variant{Batch: 1, Tokens: 1, Context: 1})
	if err != nil {
		return nil, err
	}
	return m, checkAllUsed(f, g)
}

// checkAllUsed names a tensor that a model's step does not read: such a file is of
// another model than tgc would run.
func checkAllUsed(f *gguf.File, g *tensor.Graph) error {
	read := map[string]bool{ropeFactors: true, ropeFactorsShort: true, ropeFactorsLong: true} // part of constants
	for _, b := range g.Buffers() {
		read[b.Name] = true
	}
	for i, t := range f.Tensors() {
		if !read[t.Name] {
			return f.Errorf(&f.Tensors()[i], "is not known for this architecture, so what the model computes is not, either")
		}
	}
	return nil
}

// Close closes the file.
func (m *Model) Close() error { return m.File.Close() }
