package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
)

// The oracle's vocabularies and how its files for them end.
var oracleVocabularies = map[string]string{
	"llama-spm": ".gguf", "llama-bpe": ".gguf.gz", "qwen2": ".gguf.gz", "gpt-2": ".gguf.gz", "gpt-neox": ".gguf.gz",
	"olmo": ".gguf.gz", "falcon": ".gguf.gz", "starcoder": ".gguf.gz", "deepseek-coder": ".gguf.gz",
}

func readVocabulary(path string) (*Vocabulary, error) {
	data, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, ".gz") {
		var r io.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(r)
		}
	}
	if err != nil {
		return nil, err
	}
	return parseVocabulary(path, data)
}

func parseVocabulary(name string, data []byte) (*Vocabulary, error) {
	file, err := gguf.OpenBytes(name, data)
	if err != nil {
		return nil, err
	}
	return FromMetadata(file.Optional())
}

var oracleCache sync.Map // name to *Tokenizer

// oracleTokenizer loads a vocabulary once for all tests.
func oracleTokenizer(t testing.TB, name string) *Tokenizer {
	t.Helper()
	if cached, ok := oracleCache.Load(name); ok {
		return cached.(*Tokenizer)
	}
	v, err := readVocabulary(filepath.Join(oracle.Dir(t, "tokenizer"), name+oracleVocabularies[name]))
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	oracleCache.Store(name, tokenizer)
	return tokenizer
}

// A vector is one text and what llama.cpp makes of it.
type vector struct {
	Text         string  `json:"text"`
	TextHex      string  `json:"text_hex"`
	AddSpecial   bool    `json:"add_special"`
	ParseSpecial bool    `json:"parse_special"`
	IDs          []int32 `json:"ids"`
	Pieces       string  `json:"pieces"`
	PiecesHex    string  `json:"pieces_hex"`
	InvalidUTF8  bool    `json:"invalid_utf8"`
}

func plainOrHex(t testing.TB, plain, inHex string) string {
	if inHex == "" {
		return plain
	}
	b, err := hex.DecodeString(inHex)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOracleVectors(t *testing.T) {
	dir := oracle.Dir(t, "tokenizer")
	for name := range oracleVocabularies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokenizer := oracleTokenizer(t, name)
			var file struct{ Vectors []vector }
			data, err := os.ReadFile(filepath.Join(dir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &file); err != nil {
				t.Fatal(err)
			}
			agree := map[bool]int{}
			total := map[bool]int{}
			for i, v := range file.Vectors {
				text := plainOrHex(t, v.Text, v.TextHex)
				total[v.InvalidUTF8]++
				ids, err := tokenizer.Encode(text, v.AddSpecial, v.ParseSpecial)
				if err != nil {
					t.Errorf("vector %d, %q: %v", i, text, err)
					continue
				}
				if pieces := plainOrHex(t, v.Pieces, v.PiecesHex); string(tokenizer.Decode(v.IDs, true)) != pieces {
					t.Errorf("vector %d, %v: pieces %q, want %q", i, v.IDs, tokenizer.Decode(v.IDs, true), pieces)
				}
				if slices.Equal(ids, v.IDs) {
					agree[v.InvalidUTF8]++
				} else if !v.InvalidUTF8 {
					t.Errorf("vector %d, %q, special %v %v:\n got %v %q\nwant %v %q", i, text, v.AddSpecial, v.ParseSpecial,
						ids, tokenizer.pieceList(ids), v.IDs, tokenizer.pieceList(v.IDs))
				}
			}
			t.Logf("%d of %d agree; not UTF-8: %d of %d", agree[false], total[false], agree[true], total[true])
		})
	}
}

func (t *Tokenizer) pieceList(ids []int32) (list []string) {
	for _, id := range ids {
		list = append(list, string(t.Piece(id)))
	}
	return list
}

// TestOracleOriginal compares with the ids of the models' own tokenizers.
func TestOracleOriginal(t *testing.T) {
	dir := oracle.Dir(t, "tokenizer")
	input, err := os.ReadFile(filepath.Join(dir, "llama-spm.inp"))
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(strings.TrimSuffix(string(input), "\n__ggml_vocab_test__\n"), "\n__ggml_vocab_test__\n")
	compared := 0
	for name := range oracleVocabularies {
		want, err := os.ReadFile(filepath.Join(dir, name+".out"))
		if err != nil {
			continue
		}
		tokenizer := oracleTokenizer(t, name)
		lines := bytes.Split(bytes.TrimSuffix(want, []byte("\n")), []byte("\n"))
		if len(lines) != len(texts) {
			t.Fatalf("%s: %d lines for %d texts", name, len(lines), len(texts))
		}
		for i, line := range lines {
			var ids []string
			got, err := tokenizer.Encode(texts[i], false, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range got {
				ids = append(ids, strconv.Itoa(int(id)))
			}
			if !slices.Equal(ids, strings.Fields(string(line))) {
				t.Errorf("%s: %q: got %v, want %s", name, texts[i], ids, line)
			}
			compared++
		}
	}
	t.Logf("%d texts compared", compared)
}
