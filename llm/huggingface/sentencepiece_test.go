package huggingface

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
	"tgc/llm"
	tok "tgc/llm/tokenizer"
)

// Fields in the wire format.
func wireNumber(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func wireText(field int, parts ...[]byte) []byte {
	data := slices.Concat(parts...)
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3|2), uint64(len(data))), data...)
}

func wireFloat(field int, v float32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(nil, uint64(field)<<3|5), math.Float32bits(v))
}

// Specs of a model of merged pairs, as Llama's has them.
func merged(more ...[]byte) []byte {
	return slices.Concat(wireText(2, wireNumber(3, mergedPieces), wireNumber(40, 0)), wireText(3, append([][]byte{wireText(1, []byte("identity")), wireNumber(4, 0)}, more...)...))
}

func pieceOf(text string, score float32, kind int32) []byte {
	return wireText(1, wireText(1, []byte(text)), wireFloat(2, score), wireNumber(3, uint64(kind)))
}

var smallPieces = slices.Concat(
	pieceOf("<unk>", 0, tok.TypeUnknown), pieceOf("<s>", 0, tok.TypeControl), pieceOf("</s>", 0, tok.TypeControl), pieceOf("<0x0A>", 0, tok.TypeByte),
	wireText(1, wireText(1, []byte("a")), wireFloat(2, -3)), pieceOf("ab", -1, tok.TypeNormal))

// A vocabulary as tokenizer.model has it, with tokens that two files add.
func TestSentencePiece(t *testing.T) {
	settings := tokenizerConfig{EOS: json.RawMessage(`"<|end|>"`), Decoder: map[string]addedToken{"7": {Content: "<|user|>"}, "1": {Content: "<s>", Special: true}}}
	list, err := translateSentencePiece(append(merged(), smallPieces...), map[string]int32{"<|end|>": 6}, settings, &config{vocabulary: 9})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]any)
	for _, e := range list {
		got[strings.TrimPrefix(e.key, "tokenizer.ggml.")] = e.value
	}
	tokens := []string{"<unk>", "<s>", "</s>", "<0x0A>", "a", "ab", "<|end|>", "<|user|>", "[PAD8]"}
	types := []int32{tok.TypeUnknown, tok.TypeControl, tok.TypeControl, tok.TypeByte, 1, 1, tok.TypeControl, tok.TypeUserDefined, tok.TypeUnused}
	if !slices.Equal(got["tokens"].([]string), tokens) || !slices.Equal(got["token_type"].([]int32), types) {
		t.Errorf("tokens %q, types %v", got["tokens"], got["token_type"])
	}
	if s := got["scores"].([]float32); s[4] != -3 || s[5] != -1 {
		t.Errorf("scores %v", s)
	}
	for key, want := range map[string]any{"model": "llama", "add_space_prefix": true, "add_bos_token": true, "bos_token_id": uint32(1), "eos_token_id": uint32(6), "unknown_token_id": uint32(0)} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

func TestSentencePieceRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "no pieces"},
		"unigram":       {smallPieces, "model_type is 1, want 2 (BPE)"},
		"rules":         {append(merged(wireText(2, []byte{1})), smallPieces...), "rules for characters"},
		"blanks":        {append(merged(wireNumber(4, 1)), smallPieces...), "remove_extra_whitespaces"},
		"unescaped":     {append(merged(wireNumber(5, 0)), smallPieces...), "escape_whitespaces"},
		"too many":      {append(merged(), slices.Repeat(smallPieces, 2)...), "more than vocab_size"},
		"cut":           {append(merged(), smallPieces[:len(smallPieces)-1]...), "bytes, "},
		"cut in number": {[]byte{8, 0x80}, "has no number"},
		"cut in tag":    {[]byte{0x80}, "no tag"},
		"group":         {[]byte{11}, "kind 3"},
		"type":          {append(merged(), pieceOf("a", 0, 7)...), "type 7"},
		"NaN":           {append(merged(), pieceOf("a", float32(math.NaN()), 1)...), "NaN"},
		"not UTF-8":     {append(merged(), pieceOf("\xff", 0, 1)...), "UTF-8"},
	} {
		if _, err := translateSentencePiece(c.data, nil, tokenizerConfig{}, &config{vocabulary: 9}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	for _, c := range []struct {
		added   map[string]int32
		decoder map[string]addedToken
		want    string
	}{
		{map[string]int32{"x": 9}, nil, "outside vocab_size"}, {map[string]int32{"x": -1}, nil, "outside vocab_size"},
		{nil, map[string]addedToken{"x": {}}, "want a number"}, {nil, map[string]addedToken{"9": {}}, "outside vocab_size"},
	} {
		if _, err := translateSentencePiece(append(merged(), smallPieces...), c.added, tokenizerConfig{Decoder: c.decoder}, &config{vocabulary: 9}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: error %v, want one with %q", c.added, c.decoder, err, c.want)
		}
	}
}

// A folder with the vocabulary of Llama 2 as tokenizer.model gives the ids of the original.
func TestSentencePieceFolder(t *testing.T) {
	f, err := gguf.Open(oracle.Path(t, "tokenizer", "llama-spm.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := llm.ReadTokenizer(f)
	if err != nil {
		t.Fatal(err)
	}
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	types, _ := f.Ints("tokenizer.ggml.token_type")
	scores, _ := f.Floats("tokenizer.ggml.scores")
	data := merged()
	for id, text := range tokens {
		data = append(data, pieceOf(text, float32(scores[id]), int32(types[id]))...)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sentencePieceFile), data, 0o666); err != nil {
		t.Fatal(err)
	}
	list, err := (&folder{path: dir, config: &config{vocabulary: len(tokens)}}).tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	w := gguf.NewWriter()
	for _, e := range list {
		w.Put(e.key, e.value)
	}
	read, err := w.Memory(t.Context(), "folder", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	got, err := llm.ReadTokenizer(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"The people of the world", "  naïve 12345\n\n  x\t日本語 🙂", "<s>[INST] hi [/INST]</s>", ""} {
		a, _ := want.Encode(text, true, true)
		b, err := got.Encode(text, true, true)
		if err != nil || !slices.Equal(a, b) {
			t.Errorf("%q is %v (%v), want %v", text, b, err, a)
		}
	}
}

func FuzzSentencePiece(f *testing.F) {
	f.Add(append(merged(), smallPieces...), []byte(`{"bos_token": {"content": "a"}, "added_tokens_decoder": {"6": {"content": "x", "special": true}}}`), []byte(`{"y": 7}`))
	f.Fuzz(func(t *testing.T, data, settings, added []byte) {
		var s tokenizerConfig
		var more map[string]int32
		if json.Unmarshal(settings, &s) != nil || json.Unmarshal(added, &more) != nil {
			return
		}
		list, err := translateSentencePiece(data, more, s, &config{vocabulary: 64})
		if err != nil {
			return
		}
		// What is accepted is a vocabulary, or refused as one of a GGUF file would be.
		w := gguf.NewWriter()
		for _, e := range list {
			w.Put(e.key, e.value)
		}
		file, err := w.Memory(t.Context(), "fuzz", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if tokenizer, err := llm.ReadTokenizer(file); err == nil {
			_, _ = tokenizer.Encode("ab <s> \n", true, true)
		}
	})
}
