package viz

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"

	"tgc/ir"
)

// texts keeps texts by their lines: each different line once, and a text as what differs
// from another one.
type texts struct {
	lines []Line
	list  []Text
	index map[string]int32          // by a line as it was printed
	known map[[sha256.Size]byte]int // by the hash of a whole text
	of    [][]int32                 // the lines of each text
}

// Line is a line of a form.
type Line struct {
	Text   string
	Origin int // the node of the graph for which it was made; 0: not known
}

// MarshalJSON writes the text alone where no origin is known, else both.
func (l Line) MarshalJSON() ([]byte, error) {
	if l.Origin == 0 {
		return json.Marshal(l.Text)
	}
	return json.Marshal([]any{l.Text, l.Origin})
}

// Text is a text as edits of another.
type Text struct {
	Base  int    `json:"b"` // the other text, before this one; -1: an empty one
	Edits []Edit `json:"e"`
}

// Edit takes lines out of a text and puts others there: where, counted in the base, how many
// go, then the first and the last of each run of neighbouring lines that come.
type Edit []int

func newTexts() *texts {
	return &texts{index: make(map[string]int32), known: make(map[[sha256.Size]byte]int)}
}

// none is the text that is not there.
const none = -1

// add keeps a text, as what differs from base if there is one, and returns its number.
func (t *texts) add(text string, base int) int {
	hash := sha256.Sum256([]byte(text))
	if at, ok := t.known[hash]; ok {
		return at
	}
	var lines []int32
	for line := range strings.Lines(text) {
		lines = append(lines, t.line(strings.TrimRight(line, "\r\n")))
	}
	t.known[hash] = t.addLines(lines, base)
	return t.known[hash]
}

// addLines keeps a text of lines that are known.
func (t *texts) addLines(lines []int32, base int) int {
	var before []int32
	if base != none {
		before = t.of[base]
	}
	kept := Text{Base: base, Edits: []Edit{}}
	for _, h := range differ(before, lines) {
		edit := Edit{h.at, h.gone}
		for _, id := range h.made {
			if last := len(edit) - 1; last > 2 && edit[last] == int(id)-1 {
				edit[last] = int(id)
			} else {
				edit = append(edit, int(id), int(id))
			}
		}
		kept.Edits = append(kept.Edits, edit)
	}
	t.list, t.of = append(t.list, kept), append(t.of, lines)
	return len(t.list) - 1
}

// line keeps a line as it was printed: an origin stands in a comment at its end.
func (t *texts) line(printed string) int32 {
	if at, ok := t.index[printed]; ok {
		return at
	}
	text, origin := cutOrigin(printed)
	t.lines = append(t.lines, Line{text, origin})
	t.index[printed] = int32(len(t.lines) - 1)
	return t.index[printed]
}

// lineOf keeps a line with its origin.
func (t *texts) lineOf(text string, origin int) int32 {
	if origin != 0 {
		text += ir.OriginMark + strconv.Itoa(origin)
	}
	return t.line(text)
}

// expanded is a text as it was added, without the comments of origins.
func (t *texts) expanded(text int) []string {
	list := make([]string, len(t.of[text]))
	for i, id := range t.of[text] {
		list[i] = t.lines[id].Text
	}
	return list
}
