package gguf

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"tgc/internal/oracle"
)

// FuzzOpen opens arbitrary bytes: an error or a File all of whose parts can be
// read. The seeds hold every value type.
func FuzzOpen(f *testing.F) {
	w := NewWriter()
	putAllTypes(w)
	w.Add("a", F32, []int{3, 2}, FromBytes(make([]byte, 24)))
	w.Add("b", Q8_0, []int{32}, FromBytes(make([]byte, 34)))
	whole, err := w.Bytes(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := OpenBytes("fuzz.gguf", data)
		if err != nil {
			checkMessage(t, "fuzz", err)
			return
		}
		readAll(t, file)
	})
}

// BenchmarkOpen opens a vocabulary of 128,256 tokens and 280,147 merges.
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

// TestOracleFiles opens every reference file and checks that its tensors fill
// it: the block sizes of the type table are right.
func TestOracleFiles(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(oracle.Dir(t, "quant"), "*.gguf"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		x, ok := f.Tensor("x")
		ref, ok2 := f.Tensor("ref")
		if !ok || !ok2 {
			t.Errorf("%s: tensors x and ref are missing", path)
			continue
		}
		name, err := f.String("oracle.type")
		if typ, ok := TypeByName(name); err != nil || !ok || x.Type != typ {
			t.Errorf("%s: type is %v, want %s (%v)", path, x.Type, name, err)
		}
		gap := ref.Offset - x.Offset - int64(x.Bytes())
		if rest := f.Size() - ref.Offset - int64(ref.Bytes()); gap < 0 || gap >= 32 || rest < 0 || rest >= 32 {
			t.Errorf("%s: %v leaves gaps of %d and %d bytes, want under 32", path, x, gap, rest)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
