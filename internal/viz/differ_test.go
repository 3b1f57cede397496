package viz

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Hunks lead from one text to the other, and keep what is equal at both ends.
func TestDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Int32Range(0, 12)
		before := rapid.SliceOfN(line, 0, 40).Draw(t, "before")
		after := rapid.SliceOfN(line, 0, 40).Draw(t, "after")
		var got []int32
		at := 0
		for _, h := range differ(before, after) {
			if h.at < at || h.gone == 0 && len(h.made) == 0 {
				t.Fatalf("hunk %+v after line %d", h, at)
			}
			got = append(append(got, before[at:h.at]...), h.made...)
			at = h.at + h.gone
		}
		if got = append(got, before[at:]...); !slices.Equal(got, after) {
			t.Fatalf("the hunks make %v, want %v", got, after)
		}
	})
	if h := differ([]int32{1, 2, 3, 4, 5}, []int32{1, 3, 2, 4, 6, 5}); len(h) != 3 {
		t.Errorf("hunks %+v, want one line moved and one made", h)
	}
	if h := differ([]int32{1, 2, 3}, []int32{1, 2, 3}); len(h) != 0 {
		t.Errorf("hunks %+v of equal texts", h)
	}
}

// A text is read back from its edits, whatever it is an edit of.
func TestTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := newTexts()
		base := none
		for range rapid.IntRange(1, 6).Draw(t, "texts") {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c # from %3", "d", "", "e # from %x"}), 0, 12).Draw(t, "lines")
			text := ""
			for _, l := range lines {
				text += l + "\n"
			}
			base = texts.add(text, base)
			if again := texts.add(text, none); again != base {
				t.Fatalf("the same text is %d and %d", base, again)
			}
		}
		for i := range texts.list {
			if got := replay(texts, i); !slices.Equal(got, texts.of[i]) {
				t.Fatalf("text %d reads %v, want %v", i, got, texts.of[i])
			}
		}
	})
}

// replay carries out the edits of a text.
func replay(t *texts, text int) []int32 {
	if text == none {
		return nil
	}
	before := replay(t, t.list[text].Base)
	var out []int32
	at := 0
	for _, e := range t.list[text].Edits {
		out = append(out, before[at:e[0]]...)
		at = e[0] + e[1]
		for r := 2; r < len(e); r += 2 {
			for id := e[r]; id <= e[r+1]; id++ {
				out = append(out, int32(id))
			}
		}
	}
	return append(out, before[at:]...)
}
