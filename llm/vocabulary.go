package llm

import (
	"fmt"

	"tgc/gguf"
	"tgc/llm/tokenizer"
)

// ReadTokenizer makes the tokenizer of a file's vocabulary.
func ReadTokenizer(f *gguf.File) (*tokenizer.Tokenizer, error) {
	v, err := tokenizer.FromMetadata(f.Optional())
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name(), err)
	}
	t, err := tokenizer.New(v)
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name(), err)
	}
	return t, nil
}
