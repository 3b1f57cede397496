package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the set of Unicode properties the pre-tokenizers ask for. Letter,
// number and space exclude each other.
type class uint8

const (
	letter   class = 1 << iota // \p{L}
	number                     // \p{N}
	space                      // \s: White_Space
	punct                      // \p{P}
	mark                       // \p{M}
	symbolic                   // \p{S}
	upper                      // \p{Lu}, \p{Lt}
	lower                      // \p{Ll}
)

// classTables pairs each class with its table of the unicode package.
var classTables = []struct {
	class class
	table *unicode.RangeTable
}{
	{letter, unicode.L}, {number, unicode.N}, {space, unicode.White_Space},
	{punct, unicode.P}, {mark, unicode.M}, {symbolic, unicode.S},
	{upper, unicode.Lu}, {upper, unicode.Lt}, {lower, unicode.Ll},
	{letter, cjkExtensionI},
}

// cjkExtensionI holds the letters of Unicode 15.1, the version llama.cpp's
// tables have, that are missing from Go's 15.0.
var cjkExtensionI = &unicode.RangeTable{
	R32: []unicode.Range32{{Lo: 0x2EBF0, Hi: 0x2EE5D, Stride: 1}},
}

// basicPlane holds the class of every rune below 0x10000, 64 KiB built on
// first use: a look-up instead of eight binary searches.
var basicPlane = sync.OnceValue(func() *[1 << 16]class {
	table := new([1 << 16]class)
	for _, c := range classTables {
		for _, r := range c.table.R16 {
			for code := uint32(r.Lo); code <= uint32(r.Hi); code += uint32(r.Stride) {
				table[code] |= c.class
			}
		}
	}
	return table
})

// asciiClass is the part of the table that most text needs.
var asciiClass = func() (table [utf8.RuneSelf]class) {
	for code := range table {
		table[code] = searchClass(rune(code))
	}
	return table
}()

// searchClass finds the class of a rune in the unicode tables.
func searchClass(r rune) (c class) {
	for _, t := range classTables {
		if unicode.Is(t.table, r) {
			c |= t.class
		}
	}
	return c
}

// classOf returns the class of a rune.
func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		return asciiClass[r]
	case r < 1<<16:
		return basicPlane()[r]
	}
	return searchClass(r)
}

// classAt returns the class and the length in bytes of the rune at s[i:]; past
// the end class and length are 0. Bytes that are not UTF-8 count as U+FFFD,
// one byte each.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classOf(r), n
}

// runOf returns the end of the run of runes from s[i:] on that have any class
// of any.
func runOf(s string, i int, any class) int {
	for i < len(s) {
		c, n := classAt(s, i)
		if c&any == 0 {
			break
		}
		i += n
	}
	return i
}

// runOfNone returns the end of the run of runes from s[i:] on that have no
// class of none.
func runOfNone(s string, i int, none class) int {
	for i < len(s) {
		c, n := classAt(s, i)
		if c&none != 0 {
			break
		}
		i += n
	}
	return i
}
