package template

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind says what a token is.
type tokenKind uint8

const (
	tokenEnd       tokenKind = iota // of the source
	tokenData                       // text between tags
	tokenStatement                  // {%
	tokenPrint                      // {{
	tokenClose                      // %} or }}
	tokenName
	tokenString
	tokenInt
	tokenFloat
	tokenOperator
)

// token is a word of a template.
type token struct {
	kind tokenKind
	text string // unescaped, of a string
	line int
}

// describe names a token for messages.
func (t token) describe() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the template"
	case tokenClose:
		return "the end of the tag"
	case tokenData:
		return "text"
	case tokenString:
		return "the string " + clip(strconv.Quote(t.text))
	}
	return clip(strconv.Quote(t.text))
}

// clip keeps messages short.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// lexer cuts a source into tokens. Whitespace control happens here: trim_blocks and
// lstrip_blocks are on, and a "-" at a tag's edge takes all blanks on its side.
type lexer struct {
	source string
	at     int
	line   int
	// lineStart: the text at "at" begins a line, for lstrip_blocks.
	lineStart bool
	tokens    []token
}

// lex cuts a template into tokens. As in Jinja, one newline at the very end is dropped.
func lex(source string) ([]token, error) {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(source, "\uFFFD"))
	l := &lexer{source: strings.TrimSuffix(source, "\n"), line: 1, lineStart: true}
	for l.at < len(l.source) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	return append(l.tokens, token{tokenEnd, "", l.line}), nil
}

func (l *lexer) errorf(format string, args ...any) error {
	return &Error{Line: l.line, Text: fmt.Sprintf(format, args...)}
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.line})
}

// advance moves to an offset and counts lines.
func (l *lexer) advance(to int) {
	l.line += strings.Count(l.source[l.at:to], "\n")
	l.at = to
}

// next reads text up to a tag, and the tag.
func (l *lexer) next() error {
	open := tagStart(l.source[l.at:])
	if open < 0 {
		l.emit(tokenData, l.source[l.at:])
		l.advance(len(l.source))
		return nil
	}
	start := l.at + open
	kind := l.source[start+1]
	sign := byte(0)
	if start+2 < len(l.source) {
		sign = l.source[start+2]
	}
	l.data(l.source[l.at:start], kind, sign)
	l.advance(start)
	skip := 2
	if sign == '-' || sign == '+' {
		skip = 3
	}
	if kind == '#' {
		return l.comment(skip)
	}
	if body, ok := rawBody(l.source[start+skip:]); kind == '%' && ok {
		l.advance(start + skip + body)
		return l.raw()
	}
	if kind == '%' {
		l.emit(tokenStatement, "{%")
	} else {
		l.emit(tokenPrint, "{{")
	}
	l.advance(start + skip)
	return l.tag(kind)
}

// tagStart finds the first "{{", "{%" or "{#".
func tagStart(s string) int {
	for i := 0; ; i++ {
		at := strings.IndexByte(s[i:], '{')
		if at < 0 || i+at+1 >= len(s) {
			return -1
		}
		i += at
		if strings.IndexByte("{%#", s[i+1]) >= 0 {
			return i
		}
	}
}

// data emits the text before a tag, without what whitespace control takes.
func (l *lexer) data(text string, kind, sign byte) {
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && kind != '{':
		line := strings.LastIndexByte(text, '\n') + 1
		if (line > 0 || l.lineStart) && strings.TrimFunc(text[line:], isSpace) == "" {
			text = text[:line]
		}
	}
	if text != "" {
		l.emit(tokenData, text)
	}
}

// comment skips a comment.
func (l *lexer) comment(skip int) error {
	start := l.at + skip
	if start > len(l.source) {
		start = len(l.source)
	}
	end := strings.Index(l.source[start:], "#}")
	if end < 0 {
		return l.errorf("a comment without its end, want \"#}\"")
	}
	end += start
	sign := byte(0)
	if end > start {
		sign = l.source[end-1]
	}
	l.advance(end + 2)
	l.closed('#', sign)
	return nil
}

// closed takes the blanks after a tag that ended: with "-" all, else one newline after
// what is not a print.
func (l *lexer) closed(kind, sign byte) {
	rest := l.source[l.at:]
	taken := 0
	switch {
	case sign == '-':
		taken = len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
	case sign != '+' && kind != '{' && strings.HasPrefix(rest, "\n"):
		taken = 1
	}
	l.lineStart = taken > 0 && rest[taken-1] == '\n'
	l.advance(l.at + taken)
}

// rawBody tells whether a statement is "raw", and where its body begins.
func rawBody(s string) (int, bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeftFunc(s, isSpace), "raw")
	if !ok {
		return 0, false
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	if after, ok := strings.CutPrefix(rest, "-%}"); ok {
		rest = strings.TrimLeftFunc(after, isSpace)
	} else if after, ok := strings.CutPrefix(rest, "%}"); ok {
		rest = strings.TrimPrefix(after, "\n")
	} else {
		return 0, false
	}
	return len(s) - len(rest), true
}

// raw reads text as it is, up to "endraw".
func (l *lexer) raw() error {
	for from := l.at; ; {
		open := strings.Index(l.source[from:], "{%")
		if open < 0 {
			return l.errorf("raw without its end, want {%% endraw %%}")
		}
		open += from
		from = open + 2
		inner := l.source[from:]
		sign := byte(0)
		if inner != "" && (inner[0] == '-' || inner[0] == '+') {
			sign, inner = inner[0], inner[1:]
		}
		rest, ok := strings.CutPrefix(strings.TrimLeftFunc(inner, isSpace), "endraw")
		if !ok {
			continue
		}
		rest = strings.TrimLeftFunc(rest, isSpace)
		closing := byte(0)
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			closing, rest = rest[0], rest[1:]
		}
		if rest, ok = strings.CutPrefix(rest, "%}"); !ok {
			continue
		}
		l.lineStart = false
		l.data(l.source[l.at:open], '%', sign)
		l.advance(len(l.source) - len(rest))
		l.closed('%', closing)
		return nil
	}
}

// operators, longest first.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=",
	"+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|", ";",
}

// tag reads the tokens of a tag up to its end.
func (l *lexer) tag(kind byte) error {
	closing := "%}"
	if kind == '{' {
		closing = "}}"
	}
	var open []byte // brackets
	for {
		l.advance(len(l.source) - len(strings.TrimLeftFunc(l.source[l.at:], isSpace)))
		rest := l.source[l.at:]
		if rest == "" {
			return l.errorf("a tag without its end, want %q", closing)
		}
		if len(open) == 0 {
			sign, skip := byte(0), 0
			if rest[0] == '-' || rest[0] == '+' && kind != '{' {
				sign, skip = rest[0], 1
			}
			if strings.HasPrefix(rest[skip:], closing) {
				l.emit(tokenClose, closing)
				l.advance(l.at + skip + 2)
				l.closed(kind, sign)
				return nil
			}
		}
		if err := l.word(&open); err != nil {
			return err
		}
	}
}

// word reads one token of a tag.
func (l *lexer) word(open *[]byte) error {
	rest := l.source[l.at:]
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		return l.quoted()
	case c >= '0' && c <= '9':
		return l.number()
	}
	if r, _ := utf8.DecodeRuneInString(rest); r == '_' || unicode.IsLetter(r) {
		n := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)
		})
		if n < 0 {
			n = len(rest)
		}
		l.emit(tokenName, rest[:n])
		l.advance(l.at + n)
		return nil
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			if err := l.bracket(op[0], open); err != nil {
				return err
			}
			l.emit(tokenOperator, op)
			l.advance(l.at + len(op))
			return nil
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return l.errorf("the character %q means nothing in a tag", r)
}

// bracket keeps account of what is open: "}}" in a dict is not the end of a print.
func (l *lexer) bracket(c byte, open *[]byte) error {
	switch c {
	case '(':
		*open = append(*open, ')')
	case '[':
		*open = append(*open, ']')
	case '{':
		*open = append(*open, '}')
	case ')', ']', '}':
		last := len(*open) - 1
		if last < 0 {
			return l.errorf("%q closes nothing", c)
		}
		if want := (*open)[last]; want != c {
			return l.errorf("got %q, want %q", c, want)
		}
		*open = (*open)[:last]
	}
	return nil
}

// number reads an integer or a float.
func (l *lexer) number() error {
	rest := l.source[l.at:]
	n := 0
	digits := func() {
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '_') {
			n++
		}
	}
	kind := tokenInt
	if len(rest) > 1 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		for n = 2; n < len(rest) && (rest[n] == '_' || unicode.Is(unicode.ASCII_Hex_Digit, rune(rest[n]))); n++ {
		}
	} else {
		digits()
		// A name may follow a point only after a value: 1.real is none.
		if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' && !l.afterPoint() {
			kind, n = tokenFloat, n+1
			digits()
		}
		if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
			from := n
			n++
			if n < len(rest) && (rest[n] == '+' || rest[n] == '-') {
				n++
			}
			if n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
				kind = tokenFloat
				digits()
			} else {
				n = from
			}
		}
	}
	l.emit(kind, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(l.at + n)
	return nil
}

// afterPoint tells whether the last token is ".", so that x.1.2 is two subscripts.
func (l *lexer) afterPoint() bool {
	last := l.tokens[len(l.tokens)-1]
	return last.kind == tokenOperator && last.text == "."
}

// quoted reads a string with Python's escapes.
func (l *lexer) quoted() error {
	rest := l.source[l.at:]
	var b strings.Builder
	for i := 1; i < len(rest); {
		switch {
		case rest[i] == rest[0]:
			l.emit(tokenString, b.String())
			l.advance(l.at + i + 1)
			return nil
		case rest[i] != '\\':
			b.WriteByte(rest[i])
			i++
		default:
			n, err := l.escape(&b, rest[i:])
			if err != nil {
				return err
			}
			i += n
		}
	}
	return l.errorf("a string without its end, want %c", rest[0])
}

// simpleEscapes are those of one letter.
var simpleEscapes = map[byte]string{
	'\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// escape reads an escape at the beginning of s and returns its length.
func (l *lexer) escape(b *strings.Builder, s string) (int, error) {
	if len(s) < 2 {
		return 1, nil // the string has no end
	}
	if text, ok := simpleEscapes[s[1]]; ok {
		b.WriteString(text)
		return 2, nil
	}
	digits, base, from := 0, 16, 2
	switch {
	case s[1] == 'x':
		digits = 2
	case s[1] == 'u':
		digits = 4
	case s[1] == 'U':
		digits = 8
	case s[1] >= '0' && s[1] <= '7':
		base, from = 8, 1
		for digits = 1; digits < 3 && from+digits < len(s) && s[from+digits] >= '0' && s[from+digits] <= '7'; digits++ {
		}
	default: // not an escape: Python keeps the backslash
		b.WriteByte('\\')
		return 1, nil
	}
	if from+digits > len(s) {
		return 0, l.errorf("the escape %s is cut", clip(strconv.Quote(s)))
	}
	code, err := strconv.ParseUint(s[from:from+digits], base, 32)
	if err != nil || code > unicode.MaxRune {
		return 0, l.errorf("the escape %s is no character", strconv.Quote(s[:from+digits]))
	}
	b.WriteRune(rune(code))
	return from + digits, nil
}

// isSpace is Python's notion of a blank.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
