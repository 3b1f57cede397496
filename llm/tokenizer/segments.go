package tokenizer

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
)

// A Segment is a part of a text, all of it trusted or not.
type Segment struct {
	Text string
	// Outside text is taken as it stands: the names of control tokens in it are
	// letters, even where a name begins or ends in a neighbour that is trusted.
	Outside bool
}

// EncodeSegments returns the ids of the segments' joined text. The borders between
// segments leave no trace but in what is seen as a special token: a word that is partly
// in one and partly in the next is encoded whole. User-defined tokens, which are text,
// are found everywhere, unless they frame messages (<|start|>). Nothing is added before
// or after.
func (t *Tokenizer) EncodeSegments(segments []Segment) ([]int32, error) {
	text, fragments, err := t.segmentFragments(segments)
	if err != nil {
		return nil, err
	}
	return t.encode(nil, text, fragments)
}

// ContinueSegments is EncodeSegments where the beginning of the text may be spelled by
// other tokens, such as those that a model generated: as many of have as spell it up to a
// special token or the end, and then the tokens of what is left.
func (t *Tokenizer) ContinueSegments(have []int32, segments []Segment) ([]int32, error) {
	text, fragments, err := t.segmentFragments(segments)
	if err != nil {
		return nil, err
	}
	kept := 0
	for len(fragments) > 0 {
		n, ok := t.spells(have[kept:], text, fragments[0])
		if !ok {
			break
		}
		kept, fragments = kept+n, fragments[1:]
	}
	return t.encode(slices.Clone(have[:kept]), text, fragments)
}

// spells returns how many of the first ids are exactly a fragment.
func (t *Tokenizer) spells(ids []int32, text string, f fragment) (n int, ok bool) {
	if f.id != NoToken {
		return 1, len(ids) > 0 && ids[0] == f.id
	}
	rest := text[f.start:f.end]
	if t.spm != nil && t.spm.prefixSpace {
		rest = " " + rest // as after every special token
	}
	for ; rest != ""; n++ {
		if n == len(ids) || !t.valid(ids[n]) || t.IsSpecial(ids[n]) {
			return 0, false
		}
		piece := t.pieces.piece(ids[n])
		if piece == "" || !strings.HasPrefix(rest, piece) {
			return 0, false
		}
		rest = rest[len(piece):]
	}
	return n, true
}

// segmentFragments joins segments and finds the special tokens in their text.
func (t *Tokenizer) segmentFragments(segments []Segment) (string, []fragment, error) {
	var b strings.Builder
	var outside []fragment // of the joined text; id is not used
	for _, s := range segments {
		if b.Len()+len(s.Text) > math.MaxInt32/8 {
			return "", nil, errors.New("tokenizer: the text is longer than 256 MiB")
		}
		if s.Outside && s.Text != "" {
			outside = append(outside, fragment{b.Len(), b.Len() + len(s.Text), NoToken})
		}
		b.WriteString(s.Text)
	}
	admit := func(start, end int, id int32) bool {
		if t.isText(id) {
			return true
		}
		// The first segment from outside that ends after the start must begin after the end.
		i, _ := slices.BinarySearchFunc(outside, start+1, func(f fragment, at int) int { return cmp.Compare(f.end, at) })
		return i == len(outside) || outside[i].start >= end
	}
	return b.String(), t.parsed.partition(b.String(), admit), nil
}

// isText tells whether a special token is text that a user may write: user-defined, and
// not one of those that frame messages.
func (t *Tokenizer) isText(id int32) bool {
	text := t.vocabulary.Tokens[id]
	return t.vocabulary.Types[id] == TypeUserDefined && !slices.Contains(shownNames, text) && !slices.Contains(endNames, text)
}
