package tokenizer

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"tgc/gguf"
)

// naive encodes as the descriptions say, with no regard for speed and nothing of
// the package but the types of tokens: published expressions, and merging by looking
// at every pair again.
type naive struct {
	t           *testing.T
	v           *Vocabulary
	ids, ranks  map[string]int32
	expressions []*regexp2.Regexp
	bytes       [256]string // how a byte-level vocabulary spells each byte
	wholeWord   bool
}

func newNaive(t *testing.T, v *Vocabulary) *naive {
	t.Helper()
	n := &naive{t: t, v: v, ids: make(map[string]int32), ranks: make(map[string]int32)}
	for id, text := range v.Tokens {
		n.ids[text] = int32(id)
	}
	if v.Model == modelSPM {
		return n
	}
	for rank, merge := range v.Merges {
		if _, again := n.ranks[merge]; !again {
			n.ranks[merge] = int32(rank)
		}
	}
	pre := v.Pre
	if pre == "" {
		pre = "default"
	}
	if expressions[pre] == nil {
		t.Fatalf("no expression for %q", pre)
	}
	for _, source := range expressions[pre] {
		n.expressions = append(n.expressions, regexp2.MustCompile(source, regexp2.None))
	}
	n.wholeWord = pre == "llama-bpe"
	next := rune(256)
	for b := range 256 {
		// Printable bytes of Latin-1 are spelled as themselves, others from 256 on.
		if r := rune(b); r > ' ' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' {
			n.bytes[b] = string(r)
			continue
		}
		n.bytes[b] = string(next)
		next++
	}
	return n
}

// encode is Tokenizer.Encode of valid UTF-8; types are those of the tokens.
func (n *naive) encode(text string, typeOf func(int32) int32, addBOS, parseSpecial bool) []int32 {
	var out, matched []int32
	if addBOS {
		out = append(out, n.v.BOS)
	}
	for id := range n.v.Tokens {
		switch typeOf(int32(id)) {
		case TypeUserDefined:
			matched = append(matched, int32(id))
		case TypeControl, TypeUnknown:
			if parseSpecial {
				matched = append(matched, int32(id))
			}
		}
	}
	afterSpecial := true
	for _, f := range partitionNaively(n.v, matched, text) {
		switch part := text[f.start:f.end]; {
		case part == "":
		case f.id != NoToken:
			out = append(out, f.id)
		case n.v.Model == modelSPM:
			out = append(out, n.sentence(part, afterSpecial)...)
		default:
			for _, word := range splitByExpressions(n.t, n.expressions, part) {
				out = append(out, n.word(word)...)
			}
		}
		afterSpecial = f.id != NoToken
	}
	return out
}

// word merges the bytes of a word: always the pair that the list of merges has first.
func (n *naive) word(word string) (out []int32) {
	var parts []string
	for _, b := range []byte(word) {
		parts = append(parts, n.bytes[b])
	}
	if id, ok := n.ids[strings.Join(parts, "")]; ok && n.wholeWord {
		return []int32{id}
	}
	for {
		best, at := int32(len(n.v.Merges)), -1
		for i := range len(parts) - 1 {
			if rank, ok := n.ranks[parts[i]+" "+parts[i+1]]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
	for _, part := range parts {
		if id, ok := n.ids[part]; ok {
			out = append(out, id)
			continue
		}
		for _, r := range part {
			if id, ok := n.ids[string(r)]; ok {
				out = append(out, id)
			}
		}
	}
	return out
}

// sentence merges the characters of a text: always the pair whose token has the
// best score.
func (n *naive) sentence(text string, afterSpecial bool) (out []int32) {
	if afterSpecial {
		text = " " + text
	}
	parts := strings.Split(strings.ReplaceAll(text, " ", spaceSign), "")
	for {
		best, at := float32(0), -1
		for i := range len(parts) - 1 {
			if id, ok := n.ids[parts[i]+parts[i+1]]; ok && (at < 0 || n.v.Scores[id] > best) {
				best, at = n.v.Scores[id], i
			}
		}
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
	for _, part := range parts {
		if id, ok := n.ids[part]; ok {
			out = append(out, id)
			continue
		}
		for _, b := range []byte(part) {
			out = append(out, n.ids[fmt.Sprintf("<0x%02X>", b)])
		}
	}
	return out
}

// TestNaive: the naive encoding gives every recorded vector, so that the vectors it
// records are worth as much.
func TestNaive(t *testing.T) {
	for _, o := range oracleVocabularies(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			tokenizer := o.tokenizer(t)
			n := newNaive(t, tokenizer.vocabulary)
			for i, v := range o.vectors(t) {
				text := plainOrHex(t, v.Text, v.TextHex)
				if v.InvalidUTF8 || len(text) > 4000 || testing.Short() && i%4 != 0 {
					continue
				}
				if got := n.encode(text, tokenizer.TokenType, v.AddSpecial && tokenizer.AddsBOS(), v.ParseSpecial); !slices.Equal(got, v.IDs) {
					t.Errorf("vector %d, %q, special %v %v:\n got %v\nwant %v", i, text, v.AddSpecial, v.ParseSpecial, got, v.IDs)
				}
			}
		})
	}
}

var record = flag.Bool("record", false, "write the vocabularies and vectors of the repository again")

// recordedTexts are put into vectors; random ones of the alphabet follow.
var recordedTexts = []string{
	"", " ", "   ", "\n", "\t\t x", " \n\n  y  \r\n", "Hello", " Hello", "Hello world", "the people of the world know water",
	"It's he'll WE'VE I'D don't DON'T ’tis O'Brien's", "1 12 123 1234 12345 3.14159 1,000,000 ½ Ⅷ ² ٣٤",
	"for (int i = 0; i < n; i++) { a[i] += b->c * 0.25; } // done\n", "x==y!=z && a||b ?? c::d => e ... $%^&*(){}[]<>~`@#\\|",
	"naïve café Füße ÆØÅ ñandú e\u0301", "Привет, мир! Как дела?", "你好，世界！这是一个测试。", "こんにちは カタカナ 漢字",
	"مرحبا بالعالم שלום", "สวัสดี नमस्ते दुनिया", "😀👩\u200d💻🇩🇪 \u200b\ufeff \u00a0\u2003\u3000", "A\x00B\x1b\x7f", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"iPhone XMLHttpRequest camelCase SHOUTING mIxEd", "one<|endoftext|>two <tool>three</tool> <s>four</s><unk>", "<|endoftext|>", "<tool>", " <tool> ",
}

// TestRecordVectors writes a byte-level vocabulary with vectors of every
// pre-tokenizer, and a SentencePiece one.
func TestRecordVectors(t *testing.T) {
	if !*record {
		t.Skip("-record writes the vectors again")
	}
	dir := filepath.Join("..", "..", "internal", "oracle", "testdata", "tokenizer")
	words, err := os.ReadFile(filepath.Join("..", "synth", "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var weighted []WeightedWord
	for i, word := range append(strings.Fields(string(words))[:600], strings.Fields(strings.Join(recordedTexts, " "))...) {
		weighted = append(weighted, WeightedWord{Text: " " + word, Weight: 1 + 4000/(i+8)}, WeightedWord{Text: word, Weight: 1 + 500/(i+8)})
	}
	tokens, merges := TrainBPE(weighted, 800)
	bytePair := NewVocabulary("gpt2", "")
	bytePair.Tokens, bytePair.Merges = append(slices.Clone(tokens), "<|endoftext|>", "<tool>"), merges
	bytePair.Types = append(slices.Repeat([]int32{TypeNormal}, len(tokens)), TypeControl, TypeUserDefined)
	bytePair.BOS, bytePair.EOS = int32(len(tokens)), int32(len(tokens))
	writeVocabulary(t, filepath.Join(dir, "small-bpe.gguf"), bytePair)
	for _, pre := range slices.Sorted(keys(expressions)) {
		v := *bytePair
		v.Pre = pre
		recordVectors(t, filepath.Join(dir, "small-"+pre+".json"), "small-bpe.gguf", &v)
	}

	var pieces []string
	for _, token := range tokens[256:] {
		if piece := strings.ReplaceAll(token, "Ġ", spaceSign); !strings.ContainsFunc(piece, func(r rune) bool { return r > '~' && r != '▁' }) {
			pieces = append(pieces, piece)
		}
	}
	sentence := smallSPM(append(pieces, strings.Split(spaceSign+"etaoinshrdlucmfwypvbgkjqxzETAOINSHRD.,'é中", "")...)...)
	sentence.Tokens, sentence.Types, sentence.Scores = append(sentence.Tokens, "<tool>"), append(sentence.Types, TypeUserDefined), append(sentence.Scores, 0)
	writeVocabulary(t, filepath.Join(dir, "small-spm.gguf"), sentence)
	recordVectors(t, filepath.Join(dir, "small-spm.json"), "small-spm.gguf", sentence)
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func writeVocabulary(t *testing.T, path string, v *Vocabulary) {
	t.Helper()
	w := gguf.NewWriter()
	w.Put(keyPrefix+"model", v.Model)
	w.Put(keyPrefix+"tokens", v.Tokens)
	w.Put(keyPrefix+"token_type", v.Types)
	if v.Model == modelSPM {
		w.Put(keyPrefix+"scores", v.Scores)
	} else {
		w.Put(keyPrefix+"merges", v.Merges)
	}
	w.Put(keyPrefix+"bos_token_id", uint32(v.BOS))
	w.Put(keyPrefix+"eos_token_id", uint32(v.EOS))
	if err := w.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
}

// recordVectors writes what the naive encoding makes of the texts.
func recordVectors(t *testing.T, path, vocabulary string, v *Vocabulary) {
	t.Helper()
	n, tokenizer := newNaive(t, v), mustNew(t, v)
	texts := slices.Clone(recordedTexts)
	r := rand.New(rand.NewPCG(5, 6))
	for range 16 {
		texts = append(texts, randomText(r, 30))
	}
	var list []string
	for i, text := range texts {
		if !utf8.ValidString(text) {
			t.Fatalf("%q is no UTF-8", text)
		}
		// Vectors take turns to add and to parse special tokens.
		x := vector{Text: text, AddSpecial: i%2 == 0, ParseSpecial: i%3 == 0}
		x.IDs = n.encode(text, tokenizer.TokenType, x.AddSpecial && tokenizer.AddsBOS(), x.ParseSpecial)
		for _, id := range x.IDs {
			x.Pieces += n.piece(id)
		}
		line, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(line))
	}
	text := fmt.Sprintf("{\"vocabulary\":%q,\"pre\":%q,\"vectors\":[\n%s\n]}\n", vocabulary, v.Pre, strings.Join(list, ",\n"))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// piece spells a token as text.
func (n *naive) piece(id int32) string {
	text := n.v.Tokens[id]
	if t := n.v.Types[id]; t != TypeNormal && t != TypeByte {
		return text
	}
	if n.v.Model == modelSPM {
		var b byte
		if _, err := fmt.Sscanf(text, "<0x%02X>", &b); err == nil && n.v.Types[id] == TypeByte {
			return string([]byte{b})
		}
		return strings.ReplaceAll(text, spaceSign, " ")
	}
	var out []byte
	for _, r := range text {
		out = append(out, byte(slices.Index(n.bytes[:], string(r))))
	}
	return string(out)
}
