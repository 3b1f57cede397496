package tokenizer

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
)

// smallBPE is a vocabulary with a token for every byte, some merges and some
// special tokens.
func smallBPE(merges []string, special map[string]int32) *Vocabulary {
	v := NewVocabulary("gpt2", "gpt-2")
	add := func(text string, tokenType int32) {
		v.Tokens = append(v.Tokens, text)
		v.Types = append(v.Types, tokenType)
	}
	for _, r := range newByteAlphabet().char {
		add(string(r), TypeNormal)
	}
	for _, merge := range merges {
		if text := strings.ReplaceAll(merge, " ", ""); !slices.Contains(v.Tokens, text) {
			add(text, TypeNormal)
		}
	}
	var names []string
	for name := range special {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, special[name])
	}
	v.Merges = merges
	return v
}

// smallSPM is a vocabulary with byte tokens and the given tokens, the first
// with the best score.
func smallSPM(tokens ...string) *Vocabulary {
	v := NewVocabulary("llama", "")
	add := func(text string, tokenType int32, score float32) {
		v.Tokens = append(v.Tokens, text)
		v.Types = append(v.Types, tokenType)
		v.Scores = append(v.Scores, score)
	}
	add("<unk>", TypeUnknown, 0)
	add("<s>", TypeControl, 0)
	add("</s>", TypeControl, 0)
	const hex = "0123456789ABCDEF"
	for b := range 256 {
		add("<0x"+hex[b>>4:b>>4+1]+hex[b&15:b&15+1]+">", TypeByte, 0)
	}
	for i, token := range tokens {
		add(token, TypeNormal, -float32(i))
	}
	v.UNK, v.BOS, v.EOS = 0, 1, 2
	return v
}

func mustNew(t testing.TB, v *Vocabulary) *Tokenizer {
	t.Helper()
	tokenizer, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// encode returns the pieces of a text's tokens.
func encode(t testing.TB, tokenizer *Tokenizer, text string, addSpecial, parseSpecial bool) []string {
	t.Helper()
	ids, err := tokenizer.Encode(text, addSpecial, parseSpecial)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer.pieceList(ids)
}

func TestEncode(t *testing.T) {
	special := map[string]int32{
		"<|im_end|>": TypeNormal, // control by its name
		"<user>":     TypeUserDefined,
		"<ctl>":      TypeControl,
	}
	bpe := mustNew(t, smallBPE([]string{"a b", "ab c", "Ġ ab"}, special))
	spm := mustNew(t, smallSPM("▁a", "ab", "▁ab", "a", "b", "▁"))
	for _, test := range []struct {
		tokenizer                *Tokenizer
		text                     string
		addSpecial, parseSpecial bool
		want                     []string
	}{
		{bpe, "", true, true, nil},
		{bpe, "abc abab", false, false, []string{"abc", " ab", "ab"}},
		{bpe, "ab<user>c", false, false, []string{"ab", "<user>", "c"}},
		{bpe, "<ctl><|im_end|>", false, true, []string{"<ctl>", "<|im_end|>"}},
		{bpe, "<ctl>", false, false, []string{"<", "c", "t", "l", ">"}},
		{bpe, "\xffb", false, false, []string{"\xef", "\xbf", "\xbd", "b"}},
		{spm, "", true, true, []string{"<s>"}},
		{spm, "", false, false, nil},
		{spm, "ab", true, false, []string{"<s>", " ab"}},
		{spm, "a  ab", false, false, []string{" a", " ", " ab"}},
		{spm, "bab", false, false, []string{" ", "b", "ab"}},
		{spm, "a</s>a</s>", false, true, []string{" a", "</s>", " a", "</s>"}},
		{spm, "é", false, false, []string{" ", "\xc3", "\xa9"}},
	} {
		got := encode(t, test.tokenizer, test.text, test.addSpecial, test.parseSpecial)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

// TestMergesOfUnknownTokens: a merge may make what the vocabulary lacks; it
// then comes out as its bytes.
func TestMergesOfUnknownTokens(t *testing.T) {
	v := smallBPE([]string{"a b", "Ġ ab"}, nil)
	v.Tokens[slices.Index(v.Tokens, "Ġab")] = "other"
	tokenizer := mustNew(t, v)
	if got, want := encode(t, tokenizer, " ab", false, false), []string{" ", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAddedTokens(t *testing.T) {
	yes, no := true, false
	v := smallSPM("▁", "a")
	v.AddBOS, v.AddEOS, v.AddSpacePrefix = &no, &yes, &no
	if got, want := encode(t, mustNew(t, v), "a", true, false), []string{"a", "</s>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	llama3 := smallBPE(nil, map[string]int32{"<s>": TypeControl})
	llama3.Pre, llama3.BOS = "llama-bpe", 256
	tokenizer := mustNew(t, llama3)
	if got, want := encode(t, tokenizer, "a", true, false), []string{"<s>", "a"}; !slices.Equal(got, want) || !tokenizer.AddsBOS() {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEndOfText(t *testing.T) {
	v := smallBPE(nil, map[string]int32{
		"<|im_end|>": TypeUserDefined, "<|endoftext|>": TypeControl, "<|im_start|>": TypeControl,
		"<|call|>": TypeControl, "<|return|>": TypeControl, "<|end|>": TypeControl, "<eos-of-file>": TypeControl,
	})
	v.EOS = int32(slices.Index(v.Tokens, "<eos-of-file>"))
	tokenizer := mustNew(t, v)
	for name, want := range map[string]bool{
		"<|im_end|>": true, "<|endoftext|>": true, "<|im_start|>": false, "<|call|>": true, "<|end|>": false,
		"<eos-of-file>": true, "a": false, "none": false,
	} {
		if got := tokenizer.IsEndOfText(tokenizer.TokenID(name)); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if !tokenizer.IsSpecial(tokenizer.TokenID("<|im_end|>")) {
		t.Error("<|im_end|> is not control")
	}
	if len(tokenizer.EndOfText()) != 5 {
		t.Errorf("ends: %v", tokenizer.EndOfText())
	}
	if v.Types[tokenizer.TokenID("<|im_end|>")] != TypeUserDefined {
		t.Error("New changed the caller's vocabulary")
	}
}

func TestBrokenVocabularies(t *testing.T) {
	for _, test := range []struct {
		name, want string
		vocabulary *Vocabulary
		damage     func(v *Vocabulary)
	}{
		{"no tokens", "tokenizer.ggml.tokens", NewVocabulary("gpt2", ""), func(v *Vocabulary) {}},
		{"model", `unknown model "bert"`, smallSPM("a"), func(v *Vocabulary) { v.Model = "bert" }},
		{"types", "got 3 types, want one for each of 260", smallSPM("a"), func(v *Vocabulary) { v.Types = v.Types[:3] }},
		{"type", "token_type[4]: got 9", smallSPM("a"), func(v *Vocabulary) { v.Types[4] = 9 }},
		{"scores", "got 2 scores", smallSPM("a"), func(v *Vocabulary) { v.Scores = v.Scores[:2] }},
		{"NaN", "scores[5]: NaN", smallSPM("a"), func(v *Vocabulary) { v.Scores[5] = float32(math.NaN()) }},
		{"byte", `byte token "<0x-1>"`, smallSPM("a"), func(v *Vocabulary) { v.Tokens[9] = "<0x-1>" }},
		{"twice", "tokens 259 and 260 are both", smallSPM("a", "a"), func(v *Vocabulary) {}},
		{"bos", "tokenizer.ggml.bos_token_id: got 260, want less than 260", smallSPM("a"), func(v *Vocabulary) { v.BOS = 260 }},
		{"negative", "tokenizer.ggml.eos_token_id: got -2", smallSPM("a"), func(v *Vocabulary) { v.EOS = -2 }},
		{"no bos", "tokenizer.ggml.bos_token_id is missing", smallSPM("a"), func(v *Vocabulary) {
			yes := true
			v.BOS, v.AddBOS = NoToken, &yes
		}},
		{"merge", `merges[1]: got "ab"`, smallBPE([]string{"a b"}, nil), func(v *Vocabulary) { v.Merges = []string{"a b", "ab"} }},
		{"half a merge", `merges[0]: got "a "`, smallBPE(nil, nil), func(v *Vocabulary) { v.Merges = []string{"a "} }},
		{"empty merge", `merges[0]: got ""`, smallBPE(nil, nil), func(v *Vocabulary) { v.Merges = []string{""} }},
	} {
		test.damage(test.vocabulary)
		_, err := New(test.vocabulary)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", test.name, err, test.want)
		}
	}
}

// metadata is a GGUF header as a map.
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

func TestFromMetadata(t *testing.T) {
	valid := metadata{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"<unk>", "<s>", "</s>", "a"},
		"tokenizer.ggml.eos_token_id": uint64(3), "tokenizer.ggml.add_space_prefix": false,
	}
	v, err := FromMetadata(valid)
	if err != nil {
		t.Fatal(err)
	}
	if v.BOS != 1 || v.EOS != 3 || v.UNK != 0 || v.PAD != NoToken || v.AddBOS != nil || *v.AddSpacePrefix {
		t.Errorf("got %+v", v)
	}
	for key, bad := range map[string]any{
		"tokenizer.ggml.model": 7, "tokenizer.ggml.tokens": "a", "tokenizer.ggml.scores": []string{"1"},
		"tokenizer.ggml.bos_token_id": uint64(1 << 40), "tokenizer.ggml.add_bos_token": "yes",
		"tokenizer.ggml.suppress_tokens": []int32{3},
	} {
		m := metadata{}
		for k, value := range valid {
			m[k] = value
		}
		m[key] = bad
		if _, err := FromMetadata(m); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %v: got %v", key, bad, err)
		}
	}
	for _, key := range []string{"tokenizer.ggml.model", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"} {
		m := metadata{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.merges": []string{}}
		delete(m, key)
		if _, err := FromMetadata(m); err == nil || !strings.Contains(err.Error(), key+" is missing") {
			t.Errorf("without %s: got %v", key, err)
		}
	}
}

func TestDecodeHidesSpecialTokens(t *testing.T) {
	tokenizer := mustNew(t, smallSPM("▁a"))
	ids := []int32{1, 259, 0, 259, 2, -1, 1000, math.MaxInt32}
	if got := string(tokenizer.Decode(ids, false)); got != " a a" {
		t.Errorf("hidden: got %q", got)
	}
	if got := string(tokenizer.Decode(ids, true)); got != "<s> a<unk> a</s>" {
		t.Errorf("shown: got %q", got)
	}
}

func TestStream(t *testing.T) {
	tokenizer := mustNew(t, smallBPE(nil, map[string]int32{"<ctl>": TypeControl}))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "valid") {
			text = []byte(rapid.String().Draw(t, "text"))
		}
		stream := tokenizer.NewStream(false)
		var out []byte
		for _, b := range text {
			chunk := stream.Next(int32(b))
			if utf8.Valid(text) && !utf8.ValidString(chunk) {
				t.Fatalf("%q: chunk %q is cut inside a character", text, chunk)
			}
			out = append(out, chunk...)
			if waiting := len(stream.pending); waiting > 3 {
				t.Fatalf("%d bytes wait", waiting)
			}
		}
		stream.Next(256) // hidden
		if out = append(out, stream.Flush()...); !bytes.Equal(out, text) {
			t.Fatalf("got %q, want %q", out, text)
		}
	})
}

// TestMergeWays compares scanning and the priority queue with each other.
func TestMergeWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := newPairTable(40)
		for rank := range rapid.IntRange(0, 40).Draw(t, "merges") {
			part := rapid.Int32Range(0, 8+int32(rank))
			pairs.add(part.Draw(t, "left"), part.Draw(t, "right"), int32(rank), 9+int32(rank))
		}
		ids := rapid.SliceOfN(rapid.Int32Range(0, 4), 2, 60).Draw(t, "symbols")
		run := func(way func(*merger, pairer)) (spans [][3]int32) {
			m := new(merger)
			for i, id := range ids {
				m.add(id, i, i+1)
			}
			way(m, pairs)
			for _, s := range m.symbols {
				spans = append(spans, [3]int32{s.id, s.start, s.end})
			}
			return spans
		}
		short, long := run((*merger).mergeShort), run((*merger).mergeLong)
		if !slices.Equal(short, long) {
			t.Fatalf("short %v, long %v", short, long)
		}
	})
}

// partitionNaively applies the rule of specials token by token to the text.
func partitionNaively(v *Vocabulary, ids []int32, text string) []fragment {
	order := slices.Clone(ids)
	slices.SortStableFunc(order, func(a, b int32) int { return len(v.Tokens[b]) - len(v.Tokens[a]) })
	fragments := []fragment{{0, len(text), NoToken}}
	for _, id := range order {
		var next []fragment
		for _, f := range fragments {
			for f.id == NoToken {
				i := strings.Index(text[f.start:f.end], v.Tokens[id])
				if i < 0 {
					break
				}
				at, end := f.start+i, f.start+i+len(v.Tokens[id])
				next = append(next, fragment{f.start, at, NoToken}, fragment{at, end, id})
				f.start = end
			}
			next = append(next, f)
		}
		fragments = slices.DeleteFunc(next, func(f fragment) bool { return f.start == f.end })
	}
	return fragments
}

func TestSpecialsFollowTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewVocabulary("gpt2", "")
		v.Tokens = rapid.SliceOfNDistinct(rapid.StringMatching(`[abc]{1,4}`), 1, 12, rapid.ID).Draw(t, "tokens")
		v.Types = make([]int32, len(v.Tokens))
		var all []int32
		for id := range v.Tokens {
			all = append(all, int32(id))
		}
		text := rapid.StringMatching(`[abcd]{0,40}`).Draw(t, "text")
		got := newSpecials(v, func(int32) bool { return true }).partition(text, admitAll)
		if want := partitionNaively(v, all, text); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestLongTextsAreFast encodes what makes naive tokenizers quadratic.
func TestLongTextsAreFast(t *testing.T) {
	var deep []string
	for n, part := 0, "a"; n < 12; n, part = n+1, part+part {
		deep = append(deep, part+" "+part, strings.ReplaceAll(part, "a", "Ġ")+" "+strings.ReplaceAll(part, "a", "Ġ"))
	}
	special := map[string]int32{"<|im_start|>": TypeControl, "  ": TypeUserDefined, "   ": TypeUserDefined}
	bpe := smallBPE(deep, special)
	spmTokens := []string{"a▁", "▁", "▁▁", "▁▁▁▁", "a", "aa", "aaaa", "aaaaaaaa"}
	for name, tokenizer := range map[string]*Tokenizer{
		"bpe": mustNew(t, bpe), "spm": mustNew(t, smallSPM(spmTokens...)), "spm by words": mustNew(t, smallSPM(spmTokens[1:]...)),
	} {
		for _, unit := range []string{"a", " ", "<|im_start|>", "\xff", "\xe4\xbd", "<|im_start", "é", "ab"} {
			text := strings.Repeat(unit, 400_000/len(unit))
			ids, err := tokenizer.Encode(text, true, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(tokenizer.Decode(ids, true)); utf8.ValidString(text) && !strings.HasSuffix(got, text) {
				t.Errorf("%s: %q: lost bytes", name, unit)
			}
		}
	}
}

// TestRandomTextsComeBack: byte-level tokens joined are the text.
func TestRandomTextsComeBack(t *testing.T) {
	for _, o := range oracleVocabularies(t) {
		tokenizer := o.tokenizer(t)
		r := rand.New(rand.NewPCG(3, 4))
		for range 1000 {
			text := randomText(r, 60)
			checkRoundTrip(t, tokenizer, text)
		}
	}
}

func checkRoundTrip(t testing.TB, tokenizer *Tokenizer, text string) {
	t.Helper()
	for _, parseSpecial := range []bool{false, true} {
		ids, err := tokenizer.Encode(text, false, parseSpecial)
		if err != nil {
			t.Fatal(err)
		}
		got := string(tokenizer.Decode(ids, true))
		switch {
		case tokenizer.spm != nil:
			// A space before the text, and behind each special token.
			if spaced := " " + text; text != "" && !parseSpecial && got != spaced && !strings.Contains(text, spaceSign) {
				t.Fatalf("got %q, want %q", got, spaced)
			}
		case tokenizer.hasAllBytes() && got != sanitize(text):
			t.Fatalf("got %q, want %q", got, sanitize(text))
		}
	}
}

// hasAllBytes tells whether no byte of a text can be lost.
func (t *Tokenizer) hasAllBytes() bool {
	for _, symbol := range t.bpe.bytes {
		if symbol >= t.bpe.vocabulary {
			return false
		}
	}
	return true
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "Hello world", " <|im_end|>\n\n 12345 'Ll", "\xff\xed\xa0\x80\xc0\x80", "  \u3000中文ab", "</s>a"} {
		f.Add(seed)
	}
	special := map[string]int32{"<|im_end|>": TypeControl, "ab": TypeUserDefined, "  ": TypeUserDefined}
	var tokenizers []*Tokenizer
	for _, row := range preTokenizers {
		v := smallBPE([]string{"l l", "Ġ a", "a c", "1 2", "Ċ Ċ"}, special)
		v.Pre = row.names[0]
		tokenizers = append(tokenizers, mustNew(f, v))
	}
	tokenizers = append(tokenizers, mustNew(f, smallSPM("▁a", "a", "▁", "ll", "l")))
	f.Fuzz(func(t *testing.T, text string) {
		for _, tokenizer := range tokenizers {
			checkRoundTrip(t, tokenizer, text)
		}
	})
}

// FuzzNew feeds vocabularies made of arbitrary bytes: an error or a tokenizer
// that works, never a panic.
func FuzzNew(f *testing.F) {
	f.Add("llama", "", "<unk>,<s>,</s>,a,▁,ab", []byte{2, 3, 3, 1, 1, 1}, "", int32(1), "ab a")
	f.Add("gpt2", "qwen2", "a,b,ab,Ġ,<|im_end|>", []byte{1, 1, 1, 1, 3}, "a b,Ġ ab", int32(-1), "ab <|im_end|>")
	f.Fuzz(func(t *testing.T, model, pre, tokens string, types []byte, merges string, bos int32, text string) {
		v := NewVocabulary(model, pre)
		v.Tokens, v.BOS = strings.Split(tokens, ","), bos
		for _, b := range types {
			v.Types = append(v.Types, int32(int8(b)))
			v.Scores = append(v.Scores, float32(b))
		}
		if merges != "" {
			v.Merges = strings.Split(merges, ",")
		}
		tokenizer, err := New(v)
		if err != nil {
			return
		}
		for _, special := range []bool{false, true} {
			ids, err := tokenizer.Encode(text, special, special)
			if err == nil {
				tokenizer.Decode(ids, special)
			}
			for _, id := range ids {
				if !tokenizer.valid(id) {
					t.Fatalf("id %d of %d", id, tokenizer.VocabSize())
				}
			}
		}
	})
}
