package tokenizer

// casedRules are the choices in which the expressions of GPT-4o and Tekken
// differ. With U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and
// W = [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
//
//	[^\r\n\p{L}\p{N}]?U*W+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?U+W*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
type casedRules struct {
	digits       int  // most numbers in a piece
	contractions bool // a word takes the contraction after it
}

func (rules casedRules) words(s string) int {
	if end := rules.word(s); end > 0 {
		return end
	}
	c, n := classAt(s, 0)
	if c&number != 0 {
		return llama3Rules{digits: rules.digits}.numbers(s)
	}
	const none = letter | number | space
	if next, size := classAt(s, n); s[0] == ' ' && size > 0 && next&none == 0 {
		c, n = next, n+size
	}
	if c&none != 0 {
		return spacesOrLines(s)
	}
	end := runOfNone(s, n, none)
	for end < len(s) && (isLineEnd(s[end]) || s[end] == '/') {
		end++
	}
	return end
}

// word matches the first two alternatives, or returns 0. Each is tried with
// the optional rune before it, then without.
func (rules casedRules) word(s string) int {
	c, n := classAt(s, 0)
	starts := [2]int{0, 0}
	count := 1
	if c&(letter|number) == 0 && !isLineEnd(s[0]) {
		starts[0], count = n, 2
	}
	for _, match := range [...]func(string, int) int{endsLower, startsUpper} {
		for _, start := range starts[:count] {
			end := match(s, start)
			if end == 0 {
				continue
			}
			if rules.contractions {
				end += contraction(s[end:], true)
			}
			return end
		}
	}
	return 0
}

// inUpper and inLower tell membership in U and W.
func inUpper(c class) bool { return c&mark != 0 || c&letter != 0 && c&lower == 0 }
func inLower(c class) bool { return c&mark != 0 || c&letter != 0 && c&upper == 0 }

// endsLower matches U*W+ from s[start:] on and returns where it ends, or 0.
func endsLower(s string, start int) int {
	i, lastBoth := start, 0 // lastBoth: end of the last rune of U* that is in W too
	for {
		c, n := classAt(s, i)
		if n == 0 || !inUpper(c) {
			break
		}
		i += n
		if inLower(c) {
			lastBoth = i
		}
	}
	if end := runLower(s, i); end > i {
		return end
	}
	return lastBoth // U* gives back until W+ has a rune
}

// startsUpper matches U+W* from s[start:] on and returns where it ends, or 0.
func startsUpper(s string, start int) int {
	i := start
	for {
		c, n := classAt(s, i)
		if n == 0 || !inUpper(c) {
			break
		}
		i += n
	}
	if i == start {
		return 0
	}
	return runLower(s, i)
}

func runLower(s string, i int) int {
	for {
		c, n := classAt(s, i)
		if n == 0 || !inLower(c) {
			return i
		}
		i += n
	}
}

// deepseek3Word matches
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
//	 ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Numbers and control characters match nothing and are left as gaps.
func deepseek3Word(s string) int {
	const symbols, word = punct | symbolic, letter | mark
	c, n := classAt(s, 0)
	next, size := classAt(s, n)
	if s[0] < 0x80 && c&symbols != 0 && size == 1 && next&letter != 0 {
		return asciiLetters(s, 1)
	}
	switch {
	case c&word != 0:
		return runOf(s, n, word)
	case c&symbols == 0 && !isLineEnd(s[0]) && next&word != 0:
		return runOf(s, n+size, word)
	}
	if s[0] == ' ' && next&symbols != 0 {
		c, n = next, n+size
	}
	switch {
	case c&symbols != 0:
		return lineEnds(s, runOf(s, n, symbols))
	case c&space != 0:
		return spacesOrLines(s)
	}
	return 0
}

func asciiLetters(s string, i int) int {
	for i < len(s) && s[i] < 0x80 && asciiClass[s[i]]&letter != 0 {
		i++
	}
	return i
}
