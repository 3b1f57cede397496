package gguf

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkOpen opens a file with 151,936 tokens and 280,147 merges.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "vocab.gguf")
	if err := os.WriteFile(path, largeVocabulary(b), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStrings decodes the tokens of such a vocabulary.
func BenchmarkStrings(b *testing.B) {
	f, err := OpenBytes("vocab", largeVocabulary(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Strings("tokenizer.ggml.tokens"); err != nil {
			b.Fatal(err)
		}
	}
}

// largeVocabulary returns a file with a vocabulary of real size and 300 tensors
// that together hold 64 MB.
func largeVocabulary(tb testing.TB) []byte {
	tokens := make([]string, 151936)
	for i := range tokens {
		tokens[i] = "token" + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
	}
	merges := make([]string, 280147)
	for i := range merges {
		merges[i] = "ab" + string(rune('a'+i%26)) + " cd" + string(rune('a'+i/26%26))
	}
	w := NewWriter()
	w.Put("general.architecture", "none")
	w.Put("tokenizer.ggml.tokens", tokens)
	w.Put("tokenizer.ggml.token_type", make([]int32, len(tokens)))
	w.Put("tokenizer.ggml.merges", merges)
	for i := range 300 {
		w.Add("blk."+string(rune('a'+i%26))+string(rune('a'+i/26))+".weight", Q8_0, []int{1024, 196}, func([]byte, int64) error { return nil })
	}
	data, err := w.Bytes(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
