package llm

import (
	"errors"
	"fmt"
	"math"

	"tgc/gguf"
	"tgc/llm/tokenizer"
)

// vocabulary shows a file's metadata to package tokenizer.
type vocabulary struct{ file *gguf.File }

var _ tokenizer.Metadata = vocabulary{}

// found splits a getter's error: a missing key is no error.
func found[T any](v T, err error) (T, bool, error) {
	if errors.Is(err, gguf.ErrMissing) {
		var zero T
		return zero, false, nil
	}
	return v, err == nil, err
}

func (v vocabulary) String(key string) (string, bool, error) { return found(v.file.String(key)) }
func (v vocabulary) Uint(key string) (uint64, bool, error)   { return found(v.file.Uint(key)) }
func (v vocabulary) Bool(key string) (bool, bool, error)     { return found(v.file.Bool(key)) }
func (v vocabulary) Strings(key string) ([]string, bool, error) {
	return found(v.file.Strings(key))
}

// Ints narrows to int32, the range of token types.
func (v vocabulary) Ints(key string) ([]int32, bool, error) {
	list, ok, err := found(v.file.Ints(key))
	if !ok {
		return nil, ok, err
	}
	out := make([]int32, len(list))
	for i, n := range list {
		if n < math.MinInt32 || n > math.MaxInt32 {
			return nil, false, v.file.KeyErrorf(key, "element %d is %d, want a 32-bit number", i, n)
		}
		out[i] = int32(n)
	}
	return out, true, nil
}

// Floats accepts arrays of floats or integers.
func (v vocabulary) Floats(key string) ([]float32, bool, error) {
	if ints, ok, err := found(v.file.Ints(key)); ok && err == nil {
		out := make([]float32, len(ints))
		for i, n := range ints {
			out[i] = float32(n)
		}
		return out, true, nil
	}
	list, ok, err := found(v.file.Floats(key))
	out := make([]float32, len(list))
	for i, f := range list {
		out[i] = float32(f)
	}
	return out, ok, err
}

func readTokenizer(f *gguf.File) (*tokenizer.Tokenizer, error) {
	v, err := tokenizer.FromMetadata(vocabulary{f})
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name(), err)
	}
	t, err := tokenizer.New(v)
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name(), err)
	}
	return t, nil
}
