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

// oracleVocabulary is a vocabulary with recorded vectors.
type oracleVocabulary struct {
	name string
	json string // path of the vectors
}

func oracleVocabularies(t testing.TB) (list []oracleVocabulary) {
	t.Helper()
	for _, path := range oracle.Files(t, "tokenizer", "*.json") {
		list = append(list, oracleVocabulary{strings.TrimSuffix(filepath.Base(path), ".json"), path})
	}
	return list
}

// vectorFile is what a file of vectors holds.
type vectorFile struct {
	Vocabulary string // file of the vocabulary; empty: the name of the vectors
	Pre        string // pre-tokenizer, in place of the file's
	Vectors    []vector
}

func (o oracleVocabulary) read(t testing.TB) (file vectorFile) {
	t.Helper()
	data, err := os.ReadFile(o.json)
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func (o oracleVocabulary) vectors(t testing.TB) []vector { return o.read(t).Vectors }

func (o oracleVocabulary) vocabulary(t testing.TB) *Vocabulary {
	t.Helper()
	file := o.read(t)
	path := filepath.Join(filepath.Dir(o.json), file.Vocabulary)
	if file.Vocabulary == "" {
		path = strings.TrimSuffix(o.json, ".json") + ".gguf"
		if _, err := os.Stat(path); err != nil {
			path += ".gz"
		}
	}
	v, err := readVocabulary(path)
	if err != nil {
		t.Fatal(err)
	}
	if file.Pre != "" {
		v.Pre = file.Pre
	}
	return v
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

// tokenizer loads a vocabulary once for all tests.
func (o oracleVocabulary) tokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	if cached, ok := oracleCache.Load(o.name); ok {
		return cached.(*Tokenizer)
	}
	tokenizer := mustNew(t, o.vocabulary(t))
	oracleCache.Store(o.name, tokenizer)
	return tokenizer
}

// oracleTokenizer loads a vocabulary by its name.
func oracleTokenizer(t testing.TB, name string) *Tokenizer {
	t.Helper()
	return oracleVocabulary{name, oracle.Path(t, "tokenizer", name+".json")}.tokenizer(t)
}

// A vector is one text and what llama.cpp makes of it.
type vector struct {
	Text         string  `json:"text"`
	TextHex      string  `json:"text_hex,omitempty"`
	AddSpecial   bool    `json:"add_special"`
	ParseSpecial bool    `json:"parse_special"`
	IDs          []int32 `json:"ids"`
	Pieces       string  `json:"pieces"`
	PiecesHex    string  `json:"pieces_hex,omitempty"`
	InvalidUTF8  bool    `json:"invalid_utf8,omitempty"`
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
	for _, o := range oracleVocabularies(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			tokenizer := o.tokenizer(t)
			agree := map[bool]int{}
			total := map[bool]int{}
			for i, v := range o.vectors(t) {
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
	path := oracle.Path(t, "tokenizer", "llama-spm.inp")
	input, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(strings.TrimSuffix(string(input), "\n__ggml_vocab_test__\n"), "\n__ggml_vocab_test__\n")
	compared := 0
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.out"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no ids (%v)", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".out")
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
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
