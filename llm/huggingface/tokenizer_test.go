package huggingface

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tgc/llm"
	"tgc/llm/synth"
	tok "tgc/llm/tokenizer"
)

const llamaExpression = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`

// split is a pre_tokenizer as published files have it.
func split(expression string) string {
	return `{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "` + expression +
		`"}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}`
}

// A vocabulary written as tokenizer.json gives the ids of the original.
func TestTokenizer(t *testing.T) {
	shape, err := synth.Lookup(synth.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Outline(t.Context(), shape)
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
	merges, _ := f.Strings("tokenizer.ggml.merges")
	for _, pairs := range []bool{false, true} {
		vocabulary, added, joins := make(map[string]int), []map[string]any{}, []any{}
		for id, text := range tokens {
			switch int32(types[id]) {
			case tok.TypeNormal:
				vocabulary[text] = id
			case tok.TypeControl:
				added = append(added, map[string]any{"id": id, "content": text, "special": true})
			}
		}
		for _, m := range merges {
			if pairs {
				joins = append(joins, strings.Split(m, " "))
			} else {
				joins = append(joins, m)
			}
		}
		text, err := json.Marshal(map[string]any{
			"model":         map[string]any{"type": "BPE", "vocab": vocabulary, "merges": joins, "ignore_merges": true},
			"added_tokens":  added,
			"pre_tokenizer": json.RawMessage(split(llamaExpression)),
			"post_processor": json.RawMessage(`{"type": "Sequence", "processors": [{"type": "ByteLevel"},
				{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		settings := tokenizerConfig{BOS: json.RawMessage(`"<|begin_of_text|>"`), EOS: json.RawMessage(`{"content": "<|eot_id|>"}`), Template: json.RawMessage(`"{{ x }}"`)}
		list, err := translateTokenizer(text, settings, &config{vocabulary: shape.Vocabulary})
		if err != nil {
			t.Fatal(err)
		}
		m := make(map[string]any)
		for _, e := range list {
			m[e.key] = e.value
		}
		v := tok.NewVocabulary(m["tokenizer.ggml.model"].(string), m["tokenizer.ggml.pre"].(string))
		v.Tokens, v.Types, v.Merges = m["tokenizer.ggml.tokens"].([]string), m["tokenizer.ggml.token_type"].([]int32), m["tokenizer.ggml.merges"].([]string)
		v.BOS, v.EOS = int32(m["tokenizer.ggml.bos_token_id"].(uint32)), int32(m["tokenizer.ggml.eos_token_id"].(uint32))
		if add := m["tokenizer.ggml.add_bos_token"].(bool); !add || m["tokenizer.chat_template"] != "{{ x }}" || v.EOS != want.EOS() {
			t.Errorf("begin token %v, template %v, end %d, want true, {{ x }}, %d", add, m["tokenizer.chat_template"], v.EOS, want.EOS())
		}
		got, err := tok.New(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"The people of the world", "naïve 12345\n\n  x", "<|eot_id|>hi<|begin_of_text|>"} {
			a, _ := want.Encode(text, true, true)
			b, err := got.Encode(text, true, true)
			if err != nil || !slices.Equal(a, b) {
				t.Errorf("%q is %v (%v), want %v", text, b, err, a)
			}
		}
	}
}

// SentencePiece vocabularies have bytes, and scores by the order of their merges.
func TestTokenizerWithBytes(t *testing.T) {
	text := `{"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "b": 4, "ab": 5, "▁": 6, "▁ab": 7},
		"merges": ["a b", "▁ ab"]}, "added_tokens": [{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true}],
		"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace"}]}}`
	list, err := translateTokenizer([]byte(text), tokenizerConfig{}, &config{vocabulary: 9})
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]any)
	for _, e := range list {
		m[e.key] = e.value
	}
	types := []int32{tok.TypeUnknown, tok.TypeControl, tok.TypeByte, 1, 1, 1, 1, 1, tok.TypeUnused}
	if !slices.Equal(m["tokenizer.ggml.token_type"].([]int32), types) || m["tokenizer.ggml.add_space_prefix"] != true || m["tokenizer.ggml.model"] != "llama" {
		t.Errorf("types %v, model %v", m["tokenizer.ggml.token_type"], m["tokenizer.ggml.model"])
	}
	if s := m["tokenizer.ggml.scores"].([]float32); !(s[5] > s[7]) {
		t.Errorf("scores %v, want the first merge above the second", s)
	}
}

// A folder may have several templates, of which one is the usual one; and a Metaspace that
// puts no blank before a text.
func TestTokenizerSettings(t *testing.T) {
	for text, want := range map[string]string{
		`"a"`: "a", `[{"name": "tool_use", "template": "b"}, {"name": "default", "template": "c"}]`: "c",
		`[{"name": "rag", "template": "b"}]`: "", `null`: "", `3`: "", ``: "",
	} {
		if got := templateOf([]byte(text)); got != want {
			t.Errorf("%s: template %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		`{"type": "Metaspace", "replacement": "▁"}`: true, `{"type": "Metaspace", "prepend_scheme": "first"}`: true,
		`{"type": "Metaspace", "prepend_scheme": "never"}`: false, `{"type": "Metaspace", "add_prefix_space": false}`: false,
		`{"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Metaspace"}]}`: true, `{"type": "ByteLevel"}`: false, `null`: false,
	} {
		var p *preTokenizer
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if p.prepends() != want {
			t.Errorf("%s: prepends %t, want %t", text, !want, want)
		}
	}
}

func TestTokenizerRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                             "cannot unmarshal",
		`{"model": {"type": "Unigram"}}`: "Unigram",
		`{"model": {"type": "BPE", "vocab": {"a": 9}}}`:                        "vocab_size",
		`{"model": {"type": "BPE", "vocab": {"a": -1}}}`:                       "vocab_size",
		`{"model": {"type": "BPE", "merges": ["ab"]}}`:                         "merge 0",
		`{"model": {"type": "BPE", "merges": [["a", "b", "c"]]}}`:              "merge 0",
		`{"model": {"type": "BPE"}, "pre_tokenizer": ` + split("[a-z]+") + `}`: "[a-z]+",
		`{"model": {"type": "BPE"}, "pre_tokenizer": {"type": "Digits"}}`:      "pre_tokenizer",
	} {
		if _, err := translateTokenizer([]byte(text), tokenizerConfig{}, &config{vocabulary: 4}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %s", text, err, want)
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	f.Add([]byte(`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a", ["b", "c"]]}, "pre_tokenizer": `+split(llamaExpression)+`}`), []byte(`{"bos_token": {"content": "a"}}`))
	f.Fuzz(func(t *testing.T, text, settings []byte) {
		var s tokenizerConfig
		if json.Unmarshal(settings, &s) == nil {
			_, _ = translateTokenizer(text, s, &config{vocabulary: 64})
		}
	})
}
