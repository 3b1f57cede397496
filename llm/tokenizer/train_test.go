package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// The most frequent pair is merged first, ties by ids; the words of the text then
// encode to whole tokens.
func TestTrainBPE(t *testing.T) {
	words, ok := CountWords("gpt-2", []string{"low low low lower", "low newer newer"})
	if !ok || !slices.Contains(words, WeightedWord{" low", 2}) || !slices.Contains(words, WeightedWord{" newer", 2}) {
		t.Fatalf("words: %v, %v", words, ok)
	}
	tokens, merges := TrainBPE(words, 262)
	// l+o and o+w stand in six words each, and l has the smaller id; then lo+w, and
	// of the pairs in three words that with the smallest ids.
	if want := []string{"l o", "lo w", "e r"}; !slices.Equal(merges[:3], want) {
		t.Errorf("merges begin %q, want %q", merges[:3], want)
	}
	if len(tokens) != 262 || tokens[0] != "!" || tokens[256] != "lo" || len(merges) != 6 {
		t.Errorf("%d tokens, %d merges, first %q and %q", len(tokens), len(merges), tokens[0], tokens[256])
	}
	for i, merge := range merges {
		if joined := strings.ReplaceAll(merge, " ", ""); joined != tokens[256+i] {
			t.Errorf("merge %q makes %q", merge, tokens[256+i])
		}
	}
	if _, ok := CountWords("no such rules", nil); ok {
		t.Error("an unknown pre-tokenizer counts words")
	}
	if tokens, _ := TrainBPE(nil, 300); len(tokens) != 256 {
		t.Errorf("no words: %d tokens, want 256", len(tokens))
	}
}
