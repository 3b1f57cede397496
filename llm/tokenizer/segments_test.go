package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Trusted segments are encoded as their joined text with special tokens, segments from
// outside as it without, however the text is cut.
func TestSegmentsAreTheirText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, o := range oracleVocabularies(t) {
		tok := o.tokenizer(t)
		for i, v := range o.vectors(t) {
			if i%7 != 0 || v.TextHex != "" {
				continue
			}
			var cut []Segment
			for rest := v.Text; rest != ""; {
				n := 1 + random.IntN(len(rest))
				cut = append(cut, Segment{rest[:n], !v.ParseSpecial})
				rest = rest[n:]
			}
			got, err := tok.EncodeSegments(cut)
			if err != nil {
				t.Fatal(err)
			}
			want, err := tok.Encode(v.Text, false, v.ParseSpecial)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) && !frames(tok, v.Text) {
				t.Errorf("%s: %q: got %v, want %v", o.name, v.Text, got, want)
			}
		}
	}
}

// frames tells whether a text names a token that only trusted text may name although
// it is user-defined.
func frames(t *Tokenizer, text string) bool {
	return slices.ContainsFunc(shownNames, func(name string) bool { return t.TokenID(name) != NoToken && strings.Contains(text, name) })
}

// No special token of any vocabulary comes out of text from outside, alone, beside
// trusted text, or where trusted text completes its name.
func TestNoControlTokenFromOutside(t *testing.T) {
	for _, o := range oracleVocabularies(t) {
		tok := o.tokenizer(t)
		seen := 0
		for id := range int32(tok.VocabSize()) {
			name := tok.TokenText(id)
			if !tok.IsSpecial(id) || len(name) < 3 {
				continue
			}
			if seen++; seen > 300 {
				break
			}
			half := len(name) / 2
			for _, c := range [][]Segment{
				{{name, true}},
				{{"a", false}, {name, true}, {"b", false}},
				{{name[:half], false}, {name[half:], true}},
				{{name[:half], true}, {name[half:], false}},
				{{name[:1], false}, {name[1 : len(name)-1], true}, {name[len(name)-1:], false}},
				{{name[:half], true}, {"", false}, {name[half:], true}},
			} {
				ids, err := tok.EncodeSegments(c)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(ids, id) {
					t.Errorf("%s: %q in %+v became token %d", o.name, name, c, id)
				}
			}
			ids, err := tok.EncodeSegments([]Segment{{"x", true}, {name, false}, {"x", true}})
			if err != nil || !slices.Contains(ids, id) {
				t.Errorf("%s: a trusted %q became %v (%v), want token %d among them", o.name, name, ids, err, id)
			}
		}
		if seen == 0 && !strings.HasPrefix(o.name, "small-") {
			t.Errorf("%s: no special token was tried", o.name)
		}
	}
}

// What frames messages in some models is text to nobody but the template.
func TestFramingTokensFromOutside(t *testing.T) {
	v := NewVocabulary("llama", "")
	v.Tokens = []string{"<unk>", "<s>", "</s>", "<|start|>", "<|message|>", "<think>", "a"}
	v.Types = []int32{TypeUnknown, TypeControl, TypeControl, TypeControl, TypeControl, TypeUserDefined, TypeNormal}
	v.BOS, v.EOS, v.UNK = 1, 2, 0
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.EncodeSegments([]Segment{{"<|start|>", false}, {"<|start|><think>", true}})
	if err != nil {
		t.Fatal(err)
	}
	if ids[0] != 3 || slices.Contains(ids[1:], 3) || ids[len(ids)-1] != 5 {
		t.Errorf("got %v, want <|start|> (3) once, at the beginning, and <think> (5) at the end", ids)
	}
}

// Tokens that spell the text otherwise stay up to a special token; what is left is
// encoded as ever.
func TestContinueSegments(t *testing.T) {
	for _, o := range oracleVocabularies(t) {
		tok := o.tokenizer(t)
		end := tok.EOS()
		if end == NoToken || !tok.IsSpecial(end) {
			continue
		}
		name := tok.TokenText(end)
		segments := []Segment{{"hello there", true}, {name, false}, {"once more", true}}
		want, err := tok.EncodeSegments(segments)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"hello there", "hello", "hello there and", ""} {
			var have []int32 // spelled letter by letter
			for i := range len(text) {
				ids, err := tok.Encode(text[i:i+1], false, false)
				if err != nil {
					t.Fatal(err)
				}
				have = append(have, ids...)
			}
			// What comes after the spelled text is another matter.
			letters := have[:min(len(have), len("hello there"))]
			spelled := string(tok.Decode(letters, true)) == "hello there"
			got, err := tok.ContinueSegments(append(have, end, end), segments)
			if err != nil {
				t.Fatal(err)
			}
			expected := want
			if spelled {
				expected = slices.Concat(letters, want[slices.Index(want, end):])
			}
			if !slices.Equal(got, expected) {
				t.Errorf("%s: after %q: got %v, want %v", o.name, text, got, expected)
			}
		}
	}
}
