package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A splitter returns the length in bytes, at least 1, of the first piece of a
// text that is not empty. Applied again and again it cuts the text as the
// regular expression named in its comment does when every match and every gap
// between matches becomes a piece. It looks at nothing but the text given: the
// expressions have no look-behind, and their look-ahead ends with the piece
// that an earlier expression left.
type splitter func(s string) int

// gpt2Words is
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func gpt2Words(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	start := 0
	c, n := classAt(s, 0)
	if s[0] == ' ' {
		if next, size := classAt(s, 1); size > 0 && next&space == 0 {
			start, c, n = 1, next, size
		}
	}
	switch {
	case c&letter != 0:
		return runOf(s, start+n, letter)
	case c&number != 0:
		return runOf(s, start+n, number)
	case c&space == 0:
		return runOfNone(s, start+n, letter|number|space)
	}
	return spaces(s)
}

// contraction returns the length of 's|'t|'re|'ve|'m|'ll|'d at the start of s,
// or 0. Only ASCII letters count, also with anyCase.
func contraction(s string, anyCase bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	fold := byte(0)
	if anyCase {
		fold = 0x20 // 'S' | 0x20 == 's'
	}
	switch first := s[1] | fold; first {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if len(s) > 2 {
			second := s[2] | fold
			if first == 'l' && second == 'l' || first != 'l' && second == 'e' {
				return 3
			}
		}
	}
	return 0
}

// spaces is \s+(?!\S)|\s+ on a text that starts with white space: the run
// without its last rune, which goes with the next word; the whole run if
// nothing follows or there is only one rune.
func spaces(s string) int {
	end, last := 0, 0
	for end < len(s) {
		c, n := classAt(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
	}
	if end < len(s) && last > 0 {
		return last
	}
	return end
}

// spacesOrLines is \s*[\r\n]+|\s+(?!\S)|\s+ on a text that starts with white
// space.
func spacesOrLines(s string) int {
	run := s[:runOf(s, 0, space)]
	if i := strings.LastIndexAny(run, "\r\n"); i >= 0 {
		return i + 1
	}
	return spaces(s)
}

// lineEnds returns the end of the run of \r and \n from s[i:] on.
func lineEnds(s string, i int) int {
	for i < len(s) && isLineEnd(s[i]) {
		i++
	}
	return i
}

func isLineEnd(b byte) bool { return b == '\r' || b == '\n' }

// llama3Rules are the choices in which the expressions derived from Llama 3's
// differ:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type llama3Rules struct {
	digits        int   // most numbers in a piece: \p{N}{1,digits}; 0 means \p{N}+
	letters       class // what a word is made of: \p{L}, or [\p{L}\p{M}]
	noContraction bool  // the first alternative is missing
	bareSymbols   bool  // symbols take no line ends: ` ?[^\s\p{L}\p{N}\r\n]+`
}

func (rules llama3Rules) words(s string) int {
	if n := contraction(s, true); n > 0 && !rules.noContraction {
		return n
	}
	c, n := classAt(s, 0)
	next, size := classAt(s, n)
	switch {
	case c&rules.letters != 0:
		return runOf(s, n, rules.letters)
	case c&number != 0:
		return rules.numbers(s)
	case next&rules.letters != 0 && !isLineEnd(s[0]):
		return runOf(s, n+size, rules.letters)
	}
	none := rules.letters | number | space
	if s[0] == ' ' && size > 0 && next&none == 0 {
		c, n = next, n+size
	}
	if c&none != 0 {
		return spacesOrLines(s)
	}
	end := runOfNone(s, n, none)
	if rules.bareSymbols {
		return end
	}
	return lineEnds(s, end)
}

// numbers is \p{N}{1,digits} on a text that starts with a number.
func (rules llama3Rules) numbers(s string) int {
	end := 0
	for count := 0; rules.digits == 0 || count < rules.digits; count++ {
		c, n := classAt(s, end)
		if c&number == 0 {
			break
		}
		end += n
	}
	return end
}

// isolate cuts a text into the matches of an expression and the gaps between
// them. match returns the length of a match at the start of its text, or 0; it
// must fail in bounded time, or a long gap costs quadratic time.
func isolate(match func(s string) int) splitter {
	return func(s string) int {
		for i := 0; i < len(s); {
			if n := match(s[i:]); n > 0 {
				if i > 0 {
					return i // the gap; the match comes next
				}
				return n
			}
			if s[i] < utf8.RuneSelf {
				i++
			} else {
				_, n := utf8.DecodeRuneInString(s[i:])
				i += n
			}
		}
		return len(s)
	}
}

// eachNumber matches \p{N}.
func eachNumber(s string) int {
	if c, n := classAt(s, 0); c&number != 0 {
		return n
	}
	return 0
}

// upToThreeNumbers matches \p{N}{1,3}.
func upToThreeNumbers(s string) int {
	return llama3Rules{digits: 3}.numbers(s)
}

// numberRun matches \p{N}+.
func numberRun(s string) int { return runOf(s, 0, number) }

// threeDigits matches [0-9][0-9][0-9].
func threeDigits(s string) int {
	if len(s) >= 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]) {
		return 3
	}
	return 0
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// punctuationRun matches [\p{P}extra]+, with extra ASCII symbols.
func punctuationRun(extra string) func(s string) int {
	var isExtra [utf8.RuneSelf]bool
	for i := range len(extra) {
		isExtra[extra[i]] = true
	}
	return func(s string) int {
		end := 0
		for end < len(s) {
			c, n := classAt(s, end)
			if c&punct == 0 && (s[end] >= utf8.RuneSelf || !isExtra[s[end]]) {
				break
			}
			end += n
		}
		return end
	}
}

// eachLineEnd matches [\r\n].
func eachLineEnd(s string) int {
	if isLineEnd(s[0]) {
		return 1
	}
	return 0
}

// spacedRun matches \s?X+ for a class X.
func spacedRun(of class) func(s string) int {
	return func(s string) int {
		c, start := classAt(s, 0)
		if c&space == 0 {
			start = 0
		}
		if end := runOf(s, start, of); end > start {
			return end
		}
		return 0
	}
}

// runIn matches [..]+ for the runes that in accepts.
func runIn(in func(r rune) bool) func(s string) int {
	return func(s string) int {
		for i, r := range s {
			if !in(r) {
				return i
			}
		}
		return len(s)
	}
}

// spacedRunIn matches \s?[..]+ for the runes that in accepts.
func spacedRunIn(in func(r rune) bool) func(s string) int {
	run := runIn(in)
	return func(s string) int {
		if c, n := classAt(s, 0); c&space != 0 {
			if n < len(s) {
				if end := run(s[n:]); end > 0 {
					return n + end
				}
			}
			return 0
		}
		return run(s)
	}
}
