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
	size := 0
	var b strings.Builder
	var outside []fragment // of the joined text; id is not used
	for _, s := range segments {
		if size += len(s.Text); size > math.MaxInt32/8 {
			return nil, errors.New("tokenizer: the text is longer than 256 MiB")
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
	return t.encode(nil, b.String(), t.parsed.partition(b.String(), admit))
}

// isText tells whether a special token is text that a user may write: user-defined, and
// not one of those that frame messages.
func (t *Tokenizer) isText(id int32) bool {
	text := t.vocabulary.Tokens[id]
	return t.vocabulary.Types[id] == TypeUserDefined && !slices.Contains(shownNames, text) && !slices.Contains(endNames, text)
}
