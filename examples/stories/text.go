package main

import (
	"fmt"
	"math/rand/v2"

	"tgc/internal/lists"
	"tgc/llm/tokenizer"
	"tgc/nn"
	"tgc/nn/data"
)

// Stories of different series have nothing in common but the grammar.
const (
	trainingSeries = 1
	heldOutSeries  = 2
)

const (
	preTokenizer = "gpt-2"
	endOfText    = "<|endoftext|>"
)

// vocabulary learns tokens from the first stories of the training series, with
// endOfText as the last token.
func vocabulary(stories, size int) (*tokenizer.Vocabulary, error) {
	texts := lists.Make(stories, func(i int) string { return story(trainingSeries, uint64(i)) })
	words, ok := tokenizer.CountWords(preTokenizer, texts)
	if !ok {
		return nil, fmt.Errorf("no pre-tokenizer %q", preTokenizer)
	}
	tokens, merges := tokenizer.TrainBPE(words, size-1)
	if len(tokens) != size-1 {
		return nil, fmt.Errorf("%d stories give %d tokens, want %d", stories, len(tokens)+1, size)
	}
	v := tokenizer.NewVocabulary("gpt2", preTokenizer)
	v.Tokens, v.Merges, v.Types = append(tokens, endOfText), merges, make([]int32, size)
	for i := range v.Types {
		v.Types[i] = tokenizer.TypeNormal
	}
	v.Types[size-1] = tokenizer.TypeControl
	v.BOS, v.EOS = int32(size-1), int32(size-1)
	return v, nil
}

// corpus is stories as tokens, one after the other with endOfText in front of
// each.
func corpus(t *tokenizer.Tokenizer, series uint64, stories int) ([]int32, error) {
	var ids []int32
	for i := range stories {
		own, err := t.Encode(story(series, uint64(i)), false, false)
		if err != nil {
			return nil, err
		}
		ids = append(append(ids, t.EOS()), own...)
	}
	return ids, nil
}

// windows are pieces of text in batches, each from the start of a random story on, so that
// who a story is about is in it. A batch's pieces are drawn one after the other, by its number.
func windows(ids []int32, length, batch, batches int) data.Dataset {
	end := ids[0] // a corpus starts with the token in front of every story
	return data.Func{Samples: batch * batches, Make: func(samples []int) (nn.Values, error) {
		var text []int32
		for _, n := range samples {
			r, at := rand.New(rand.NewPCG(7, uint64(n/batch))), 0
			for range n%batch + 1 {
				at = r.IntN(len(ids) - length)
			}
			for at > 0 && ids[at] != end {
				at--
			}
			text = append(text, ids[at:at+length+1]...)
		}
		return data.Table{data.Of("text", text, length+1)}.Batch(lists.Upto(len(samples)))
	}}
}
