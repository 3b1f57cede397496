package tokenizer

import (
	"fmt"
	"math"
	"strings"
)

// spaceSign stands for a space in the tokens of a SentencePiece vocabulary.
const spaceSign = "\u2581"

// spm is the SentencePiece-style family: the text is one sequence of
// characters, and the neighbours whose joined text is the token with the best
// score merge first.
type spm struct {
	ids         map[string]int32
	priorities  []uint32   // per token id: smaller for a better score
	bytes       [256]int32 // byte tokens; noToken where there is none
	unknown     int32      // is used for bytes without a token; noToken: an error
	prefixSpace bool       // text after a special token, or at the start, gets a space
	wordwise    bool       // no token has a spaceSign after another character
}

func newSPM(v *Vocabulary, ids map[string]int32) (*spm, error) {
	m := &spm{
		ids: ids, unknown: v.UNK, wordwise: true,
		prefixSpace: v.AddSpacePrefix == nil || *v.AddSpacePrefix,
		priorities:  make([]uint32, len(v.Tokens)),
	}
	for id, text := range v.Tokens {
		score := float32(0)
		if len(v.Scores) > 0 {
			score = v.Scores[id]
		}
		if score != score {
			return nil, fmt.Errorf("tokenizer: tokenizer.ggml.scores[%d]: NaN orders nothing, want a number", id)
		}
		m.priorities[id] = scorePriority(score)
		if i := strings.LastIndex(text, spaceSign); i > 0 && strings.Trim(text[:i], spaceSign) != "" {
			m.wordwise = false
		}
	}
	for b := range 256 {
		m.bytes[b] = NoToken
		for _, name := range []string{fmt.Sprintf("<0x%02X>", b), string([]byte{byte(b)})} {
			if id, ok := ids[name]; ok {
				m.bytes[b] = id
				break
			}
		}
	}
	return m, nil
}

// scorePriority orders scores from the greatest to the smallest.
func scorePriority(score float32) uint32 {
	bits := math.Float32bits(score + 0) // +0: minus zero equals zero
	if bits>>31 == 0 {
		bits |= 1 << 31
	} else {
		bits = ^bits
	}
	return ^bits
}

// encode appends the ids of a text that has no special tokens in it.
func (m *spm) encode(out []int32, text string, afterSpecial bool, work *merger) ([]int32, error) {
	text = strings.ReplaceAll(text, " ", spaceSign)
	if m.prefixSpace && afterSpecial {
		text = spaceSign + text
	}
	pairs := &spmPairs{spm: m}
	for len(text) > 0 {
		n := len(text)
		if m.wordwise {
			n = untilWord(text)
		}
		pairs.text, text = text[:n], text[n:]
		var err error
		if out, err = pairs.encode(out, work); err != nil {
			return out, err
		}
	}
	return out, nil
}

// untilWord returns where the first spaceSign after another character is, or
// the length of text. No merge crosses it in a wordwise vocabulary, so what
// comes before it can be encoded alone.
func untilWord(text string) int {
	start := 0
	for strings.HasPrefix(text[start:], spaceSign) {
		start += len(spaceSign)
	}
	if i := strings.Index(text[start:], spaceSign); i >= 0 {
		return start + i
	}
	return len(text)
}

// spmPairs merges the symbols of one span of text.
type spmPairs struct {
	*spm
	text string
}

func (p *spmPairs) encode(out []int32, work *merger) ([]int32, error) {
	work.reset(len(p.text))
	for i := 0; i < len(p.text); {
		n := min(sequenceLength(p.text[i]), len(p.text)-i)
		work.add(NoToken, i, i+n)
		i += n
	}
	work.merge(p)
	for _, s := range work.symbols {
		text := p.text[s.start:s.end]
		if id, ok := p.ids[text]; ok {
			out = append(out, id)
			continue
		}
		for _, b := range []byte(text) {
			id := p.bytes[b]
			if id == NoToken {
				id = p.unknown
			}
			if id == NoToken {
				return out, fmt.Errorf("tokenizer: no token for byte 0x%02X, and no unknown token", b)
			}
			out = append(out, id)
		}
	}
	return out, nil
}

func (p *spmPairs) pair(left, right *symbol) (uint32, int32) {
	id, ok := p.ids[p.text[left.start:right.end]]
	if !ok {
		return noMerge, NoToken
	}
	return p.priorities[id], id
}
