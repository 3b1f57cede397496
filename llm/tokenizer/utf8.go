package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// sanitize returns text with every byte that is no part of a UTF-8 sequence
// replaced by U+FFFD, so that byte-level BPE never sees one. Like llama.cpp it
// reads overlong forms as what they encode and leaves surrogates alone; valid
// text comes back as it is.
func sanitize(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for i := 0; i < len(text); {
		r, n := lenientRune(text[i:])
		if r >= 0xD800 && r <= 0xDFFF {
			b.WriteString(text[i : i+n])
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// lenientRune decodes one sequence of up to four bytes by its bit pattern
// alone. What fits none, or is no code point, is U+FFFD of one byte.
func lenientRune(s string) (rune, int) {
	n := sequenceLength(s[0])
	if n == 1 {
		if s[0] < utf8.RuneSelf {
			return rune(s[0]), 1
		}
		return utf8.RuneError, 1
	}
	if len(s) < n || s[0] >= 0xF8 {
		return utf8.RuneError, 1
	}
	r := rune(s[0]) & (0x7F >> n)
	for _, b := range []byte(s[1:n]) {
		if b&0xC0 != 0x80 {
			return utf8.RuneError, 1
		}
		r = r<<6 | rune(b&0x3F)
	}
	if r > utf8.MaxRune {
		return utf8.RuneError, 1
	}
	return r, n
}

// sequenceLength is the length that the first byte of a UTF-8 sequence
// announces; 1 for a continuation byte.
func sequenceLength(first byte) int {
	switch {
	case first < 0xC0:
		return 1
	case first < 0xE0:
		return 2
	case first < 0xF0:
		return 3
	}
	return 4
}

// A byteAlphabet is GPT-2's mapping of bytes to printable characters, in which
// the tokens and merges of a BPE vocabulary are written: printable bytes stand
// for themselves, the others for U+0100 and up in order.
type byteAlphabet struct {
	char [256]rune
	back map[rune]byte
}

func newByteAlphabet() *byteAlphabet {
	a := &byteAlphabet{back: make(map[rune]byte, 256)}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if b < 0x21 || b > 0x7E && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		a.char[b] = r
		a.back[r] = byte(b)
	}
	return a
}

// appendBytes appends the bytes that a token's text stands for; ok is false if
// a character of it is not in the alphabet.
func (a *byteAlphabet) appendBytes(dst []byte, text string) (_ []byte, ok bool) {
	for i := 0; i < len(text); {
		if b := text[i]; b > 0x20 && b < 0x7F {
			dst = append(dst, b)
			i++
			continue
		}
		r, n := lenientRune(text[i:])
		b, known := a.back[r]
		if !known {
			return dst, false
		}
		dst = append(dst, b)
		i += n
	}
	return dst, true
}
