package childprocess

import (
	"slices"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	for text, want := range map[string][]int{"1 2\n3": {1, 2, 3}, "": nil, "4 five 6": {4}} {
		to := make(chan int)
		go Answers(strings.NewReader(text), to)
		var got []int
		for v := range to {
			got = append(got, v)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
