package tokenizer

import (
	"fmt"
	"strings"
)

// bpe is the byte-level family: the text is cut into words, and inside a word
// the pairs of symbols merge that come first in the list of merges.
//
// A symbol is a token id, or a number from the end of the vocabulary on for
// what merges name but the vocabulary lacks.
type bpe struct {
	pre   *preTokenizer
	pairs *pairTable
	bytes [256]int32       // symbol of each byte
	words map[string]int32 // bytes of a token to its id, if whole words are taken
	// spelled holds, for the symbols from vocabulary on, which are no tokens, the
	// tokens to write instead: one for each byte that has one.
	spelled    [][]int32
	vocabulary int32 // number of tokens
}

func newBPE(v *Vocabulary, ids map[string]int32) (*bpe, error) {
	pre, ok := findPreTokenizer(v.Pre)
	if !ok {
		return nil, fmt.Errorf("tokenizer: tokenizer.ggml.pre: unknown pre-tokenizer %s", quote(v.Pre))
	}
	m := &bpe{pre: pre, vocabulary: int32(len(v.Tokens))}
	loader := &symbolLoader{bpe: m, ids: ids, alphabet: newByteAlphabet()}
	for b, r := range loader.alphabet.char {
		m.bytes[b] = loader.symbol(string(r))
	}
	if err := loader.loadMerges(v.Merges); err != nil {
		return nil, err
	}
	if pre.wholeWord {
		m.words = loader.wholeWords(v.Tokens)
	}
	return m, nil
}

// A symbolLoader numbers the symbols while the merges are read.
type symbolLoader struct {
	*bpe
	ids      map[string]int32
	extra    map[string]int32 // symbols that are no tokens
	alphabet *byteAlphabet
}

// loadMerges fills the table of pairs. Of equal merges the first counts.
func (l *symbolLoader) loadMerges(merges []string) error {
	l.pairs = newPairTable(len(merges))
	var joined []byte
	for rank, merge := range merges {
		// Any first character belongs to the left part, even a space.
		cut := -1
		if len(merge) > 1 {
			cut = strings.IndexByte(merge[1:], ' ') + 1
		}
		if cut < 1 || cut+1 == len(merge) {
			return fmt.Errorf("tokenizer: tokenizer.ggml.merges[%d]: got %s, want two parts and a space between", rank, quote(merge))
		}
		left, right := l.symbol(merge[:cut]), l.symbol(merge[cut+1:])
		joined = append(append(joined[:0], merge[:cut]...), merge[cut+1:]...)
		result, ok := l.ids[string(joined)]
		if !ok {
			result = l.symbol(string(joined))
		}
		l.pairs.add(left, right, int32(rank), result)
	}
	return nil
}

// symbol returns the number of a text in the byte alphabet.
func (l *symbolLoader) symbol(text string) int32 {
	if id, ok := l.ids[text]; ok {
		return id
	}
	if id, ok := l.extra[text]; ok {
		return id
	}
	var tokens []int32
	for _, r := range text {
		if id, ok := l.ids[string(r)]; ok {
			tokens = append(tokens, id)
		}
	}
	id := l.vocabulary + int32(len(l.spelled))
	l.spelled = append(l.spelled, tokens)
	if l.extra == nil {
		l.extra = map[string]int32{}
	}
	l.extra[text] = id
	return id
}

// wholeWords returns the tokens by the bytes that their texts mean.
func (l *symbolLoader) wholeWords(tokens []string) map[string]int32 {
	var all []byte
	ends := make([]int, len(tokens)) // 0: the text is not of the alphabet
	for id, text := range tokens {
		start := len(all)
		var ok bool
		if all, ok = l.alphabet.appendBytes(all, text); ok {
			ends[id] = len(all)
		} else {
			all = all[:start]
		}
	}
	words := make(map[string]int32, len(tokens))
	joined, start := string(all), 0
	for id, end := range ends {
		if end > start {
			words[joined[start:end]] = int32(id)
			start = end
		}
	}
	return words
}

// encode appends the ids of a text that has no special tokens in it.
func (m *bpe) encode(out []int32, text string, work *merger) []int32 {
	m.pre.split(sanitize(text), func(word string) {
		out = m.encodeWord(out, word, work)
	})
	return out
}

func (m *bpe) encodeWord(out []int32, word string, work *merger) []int32 {
	if m.words != nil {
		if id, ok := m.words[word]; ok {
			return append(out, id)
		}
	}
	work.reset(len(word))
	for i, b := range []byte(word) {
		work.add(m.bytes[b], i, i+1)
	}
	work.merge(m.pairs)
	for _, s := range work.symbols {
		if s.id < m.vocabulary {
			out = append(out, s.id)
		} else {
			out = append(out, m.spelled[s.id-m.vocabulary]...)
		}
	}
	return out
}

// A pairTable maps pairs of symbols to their merge: open addressing with a
// power of two of slots, at most half of them used.
type pairTable struct {
	slots []pairSlot
	shift uint // 64 minus the logarithm of the number of slots
}

type pairSlot struct {
	key    uint64 // left<<32 | right, plus 1; 0 in a free slot
	rank   int32
	result int32
}

func newPairTable(pairs int) *pairTable {
	shift := uint(63)
	for 1<<(64-shift) < 2*pairs {
		shift--
	}
	return &pairTable{slots: make([]pairSlot, 1<<(64-shift)), shift: shift}
}

func pairKey(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) + 1 }

// find returns the slot of a key, or the free slot where it belongs.
func (t *pairTable) find(key uint64) *pairSlot {
	const golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio: spreads keys over the high bits
	mask := uint64(len(t.slots) - 1)
	i := (key ^ key>>29) * golden >> t.shift
	for t.slots[i].key != 0 && t.slots[i].key != key {
		i = (i + 1) & mask
	}
	return &t.slots[i]
}

// add enters a merge, unless the pair has one.
func (t *pairTable) add(left, right, rank, result int32) {
	key := pairKey(left, right)
	if slot := t.find(key); slot.key == 0 {
		*slot = pairSlot{key: key, rank: rank, result: result}
	}
}

func (t *pairTable) pair(left, right *symbol) (uint32, int32) {
	slot := t.find(pairKey(left.id, right.id))
	if slot.key == 0 {
		return noMerge, NoToken
	}
	return uint32(slot.rank), slot.result
}
