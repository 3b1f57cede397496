package tokenizer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tgc/internal/oracle"
)

// The oracle's vocabularies and how its files for them end.
var oracleVocabularies = map[string]string{
	"llama-spm": ".gguf", "llama-bpe": ".gguf.gz", "qwen2": ".gguf.gz", "gpt-2": ".gguf.gz", "gpt-neox": ".gguf.gz",
	"olmo": ".gguf.gz", "falcon": ".gguf.gz", "starcoder": ".gguf.gz", "deepseek-coder": ".gguf.gz",
}

// metadata is a GGUF header as a map: enough of a reader for valid files.
type metadata map[string]any

func (m metadata) String(key string) (string, bool, error)    { return lookUp[string](m, key) }
func (m metadata) Bool(key string) (bool, bool, error)        { return lookUp[bool](m, key) }
func (m metadata) Strings(key string) ([]string, bool, error) { return lookUp[[]string](m, key) }
func (m metadata) Ints(key string) ([]int32, bool, error)     { return lookUp[[]int32](m, key) }
func (m metadata) Floats(key string) ([]float32, bool, error) { return lookUp[[]float32](m, key) }
func (m metadata) Uint(key string) (uint64, bool, error)      { return lookUp[uint64](m, key) }

func lookUp[T any](m metadata, key string) (value T, ok bool, err error) {
	any, ok := m[key]
	if !ok {
		return value, false, nil
	}
	if value, ok = any.(T); !ok {
		return value, true, fmt.Errorf("%s: got %T, want %T", key, any, value)
	}
	return value, true, nil
}

// A headerReader reads the little-endian header of a GGUF file.
type headerReader struct {
	r   *bufio.Reader
	err error
}

func (h *headerReader) bytes(n uint64) []byte {
	if h.err != nil || n > 1<<28 {
		h.err = fmt.Errorf("bad length %d (%v)", n, h.err)
		return make([]byte, 8)
	}
	b := make([]byte, n)
	_, h.err = io.ReadFull(h.r, b)
	return b
}

func (h *headerReader) u32() uint32 { return binary.LittleEndian.Uint32(h.bytes(4)) }
func (h *headerReader) u64() uint64 { return binary.LittleEndian.Uint64(h.bytes(8)) }

func (h *headerReader) value(kind uint32) any {
	switch kind {
	case 0:
		return uint64(h.bytes(1)[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(h.bytes(2)))
	case 4:
		return uint64(h.u32())
	case 5:
		return int32(h.u32())
	case 6:
		return math.Float32frombits(h.u32())
	case 7:
		return h.bytes(1)[0] != 0
	case 8:
		return string(h.bytes(h.u64()))
	case 9:
		return h.array(h.u32(), h.u64())
	case 10:
		return h.u64()
	}
	h.err = fmt.Errorf("value type %d", kind)
	return nil
}

func (h *headerReader) array(kind uint32, n uint64) any {
	var texts []string
	var ints []int32
	var floats []float32
	for range n {
		switch v := h.value(kind).(type) {
		case string:
			texts = append(texts, v)
		case int32:
			ints = append(ints, v)
		case float32:
			floats = append(floats, v)
		case uint64:
			ints = append(ints, int32(v))
		}
		if h.err != nil {
			return nil
		}
	}
	switch kind {
	case 8:
		return texts
	case 6:
		return floats
	}
	return ints
}

func readHeader(r io.Reader) (metadata, error) {
	h := &headerReader{r: bufio.NewReader(r)}
	if magic := string(h.bytes(4)); magic != "GGUF" {
		return nil, fmt.Errorf("magic %q", magic)
	}
	h.u32()
	h.u64()
	m := metadata{}
	for range h.u64() {
		key := string(h.bytes(h.u64()))
		m[key] = h.value(h.u32())
		if h.err != nil {
			return nil, fmt.Errorf("%s: %w", key, h.err)
		}
	}
	return m, nil
}

func readVocabulary(path string) (*Vocabulary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	m, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	return FromMetadata(m)
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
