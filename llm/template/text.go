package template

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text is a string that knows where its characters came from.
type Text struct {
	s       string
	outside []span // of s, ascending, neither empty nor touching
	safe    bool   // HTML that needs no escaping (Jinja's Markup)
}

// span is a part of a string, in bytes.
type span struct{ start, end int }

// Inside is text of the template's author, or of whoever is trusted like one: names of
// special tokens in it become those tokens.
func Inside(s string) Text { return Text{s: strings.ToValidUTF8(s, "\uFFFD")} }

// Outside is text from anybody else.
func Outside(s string) Text {
	t := Inside(s)
	if t.s != "" {
		t.outside = []span{{0, len(t.s)}}
	}
	return t
}

// String is the text without its origins.
func (t Text) String() string { return t.s }

// slice is the part from byte start to byte end.
func (t Text) slice(start, end int) Text {
	out := Text{s: t.s[start:end], safe: t.safe}
	first, _ := slices.BinarySearchFunc(t.outside, start, func(o span, at int) int { return cmp.Compare(o.end, at+1) })
	for _, o := range t.outside[first:] {
		if o.start >= end {
			break
		}
		out.outside = append(out.outside, span{max(o.start, start) - start, min(o.end, end) - start})
	}
	return out
}

// runeMark is a character with its origin.
type runeMark struct {
	r       rune
	outside bool
}

// runes takes the text apart.
func (t Text) runes() []runeMark {
	list := make([]runeMark, 0, len(t.s))
	next := 0 // of t.outside
	for i, r := range t.s {
		for next < len(t.outside) && t.outside[next].end <= i {
			next++
		}
		list = append(list, runeMark{r, next < len(t.outside) && t.outside[next].start <= i})
	}
	return list
}

// mapRunes replaces every character; change also gets the one before it, or 0.
func (t Text) mapRunes(change func(before, r rune) string) Text {
	var b builder
	before := rune(0)
	for _, m := range t.runes() {
		b.add(Text{s: change(before, m.r)}.from(m.outside))
		before = m.r
	}
	out := b.text()
	out.safe = t.safe
	return out
}

// from gives all of the text one origin.
func (t Text) from(outside bool) Text {
	t.outside = nil
	if outside && t.s != "" {
		t.outside = []span{{0, len(t.s)}}
	}
	return t
}

// length is the number of characters.
func (t Text) length() int { return utf8.RuneCountInString(t.s) }

// builder joins texts.
type builder struct {
	s       strings.Builder
	outside []span
}

func (b *builder) add(t Text) {
	base := b.s.Len()
	b.s.WriteString(t.s)
	for _, o := range t.outside {
		o = span{o.start + base, o.end + base}
		if last := len(b.outside) - 1; last >= 0 && b.outside[last].end == o.start {
			b.outside[last].end = o.end
		} else {
			b.outside = append(b.outside, o)
		}
	}
}

func (b *builder) addString(s string) { b.s.WriteString(s) }

func (b *builder) text() Text { return Text{s: b.s.String(), outside: b.outside} }

func (b *builder) len() int { return b.s.Len() }

// Piece is a part of what a template made, of one origin.
type Piece struct {
	Text    string
	Outside bool // came from the variables: no special token may be seen in it
}

// pieces cuts a text where its origin changes.
func (t Text) pieces() []Piece {
	var list []Piece
	at := 0
	for _, o := range t.outside {
		if at < o.start {
			list = append(list, Piece{t.s[at:o.start], false})
		}
		list = append(list, Piece{t.s[o.start:o.end], true})
		at = o.end
	}
	if at < len(t.s) {
		list = append(list, Piece{t.s[at:], false})
	}
	return list
}

// Join is the text of pieces.
func Join(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}
