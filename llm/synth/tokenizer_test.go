package synth_test

import (
	"context"
	"testing"

	"tgc/llm/synth"
	"tgc/llm/tokenizer"
)

// TestTokenize encodes a sentence with every stand-in vocabulary: common words
// are single tokens unless the vocabulary is very small, any bytes come back, special tokens are recognised.
func TestTokenize(t *testing.T) {
	const text = "The people of the world know water, naïve or not.\n\n\x00🙂"
	for _, s := range synth.Shapes() {
		f, err := synth.Outline(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		vocabulary, err := tokenizer.FromMetadata(f.Optional())
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		tok, err := tokenizer.New(vocabulary)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		ids, err := tok.Encode(text, false, false)
		if back := string(tok.Decode(ids, true)); err != nil || back != text {
			t.Errorf("%s: %q came back as %q (%v)", s.Name, text, back, err)
		}
		if ids, err = tok.Encode(" people of the world", false, false); err != nil || len(ids) != 4 && s.Vocabulary >= 2048 {
			t.Errorf("%s: four common words became %v (%v), want four tokens", s.Name, ids, err)
		}
		end := tok.TokenText(tok.EOS())
		if ids, err = tok.Encode(end, false, true); err != nil || len(ids) != 1 || ids[0] != tok.EOS() {
			t.Errorf("%s: %q became %v (%v), want %d", s.Name, end, ids, err, tok.EOS())
		}
	}
}
