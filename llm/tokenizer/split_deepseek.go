package tokenizer

import (
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// deepseekIdeograph is [一-龥ࠀ-一가-퟿], white space excepted as in llama.cpp.
func deepseekIdeograph(r rune) bool {
	return (r >= 0x0800 && r <= 0x9FA5 || r >= 0xAC00 && r <= 0xD7FF) && classOf(r)&space == 0
}

// deepseek3CJK is [一-龥぀-ゟ゠-ヿ].
func deepseek3CJK(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF
}

// deepseekPunctuation is [!-/:-~！-／：-～‘-‟　-。], white space excepted.
func deepseekPunctuation(r rune) bool {
	return r >= '!' && r <= '/' || r >= ':' && r <= '~' || r >= 0xFF01 && r <= 0xFF0F ||
		r >= 0xFF1A && r <= 0xFF5E || r >= 0x2018 && r <= 0x201F || r >= 0x3001 && r <= 0x3002
}

// deepseekLetters is the published list of letters with case, as the inside of
// a bracket expression. Signs that normalisation would change are escaped.
const deepseekLetters = "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ" +
	"Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄ" +
	"Ⰰ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"

// deepseekLetterSpans is deepseekLetters as pairs of first and last rune, in
// ascending order.
var deepseekLetterSpans = sync.OnceValue(func() (spans [][2]rune) {
	for list := deepseekLetters; list != ""; {
		first, n := utf8.DecodeRuneInString(list)
		last := first
		if list = list[n:]; strings.HasPrefix(list, "-") {
			last, n = utf8.DecodeRuneInString(list[1:])
			list = list[1+n:]
		}
		spans = append(spans, [2]rune{first, last})
	}
	return spans
})

// deepseekLetter tells whether deepseekLetters holds a rune.
func deepseekLetter(r rune) bool {
	spans := deepseekLetterSpans()
	i := sort.Search(len(spans), func(i int) bool { return spans[i][1] >= r })
	return i < len(spans) && spans[i][0] <= r
}

// trailingSpaces isolates \s+$.
func trailingSpaces(s string) int {
	rest := strings.TrimRightFunc(s, func(r rune) bool { return classOf(r)&space != 0 })
	if len(rest) > 0 {
		return len(rest)
	}
	return len(s)
}
