package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of the parser: text is untrusted, so it cannot make more than this.
const (
	maxParsedNodes   = 1 << 20
	maxParsedSources = 1 << 12 // of one node
	maxParsedDigits  = 20      // of one number
)

// ParseError tells where the text stopped making sense.
type ParseError struct {
	Line, Col int // from 1; columns count bytes
	Message   string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("ir: line %d:%d: %s", e.Line, e.Col, e.Message)
}

// Parse reads the text form into an arena and returns the root, the node of
// the last line. Every node keeps the rules of the op table that can be seen
// in the node and its sources (VerifyNode); whole forms are for VerifyTensor
// and VerifyKernel.
func Parse(a *Arena, text string) (*UOp, error) {
	p := &parser{arena: a, names: make(map[string]*UOp)}
	root, err := p.nodes(text, false)
	if err == nil && root == nil {
		err = &ParseError{p.number, 1, "expected a node, got an empty text"}
	}
	return root, err
}

// ParseNodes reads the nodes among lines of other kinds, which begin with another
// byte than %. It returns them by name, without the %, and the last one, nil where
// there are none.
func ParseNodes(a *Arena, text string) (last *UOp, names map[string]*UOp, err error) {
	p := &parser{arena: a, names: make(map[string]*UOp)}
	last, err = p.nodes(text, true)
	return last, p.names, err
}

// nodes parses the lines; others tells that lines of other kinds are passed over.
func (p *parser) nodes(text string, others bool) (last *UOp, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		p.number++
		p.line, p.pos = strings.TrimSuffix(line, "\r"), 0
		p.skipSpace()
		if p.atEnd() || others && p.line[p.pos] != '%' {
			continue
		}
		if last, err = p.node(); err != nil {
			return nil, err
		}
	}
	return last, nil
}

type parser struct {
	arena  *Arena
	names  map[string]*UOp
	line   string
	number int // of the line, from 1
	pos    int // next byte of the line
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &ParseError{p.number, at + 1, fmt.Sprintf(format, args...)}
}

// expected reports what stands at a position instead of what should.
func (p *parser) expected(at int, what string) error {
	got := "the end of the line"
	if at < len(p.line) {
		word := p.line[at:]
		if i := strings.IndexAny(word, " \t"); i > 0 {
			word = word[:i]
		}
		if len(word) > 24 {
			word = word[:24]
		}
		got = strconv.Quote(word)
	}
	return p.fail(at, "expected %s, got %s", what, got)
}

func (p *parser) skipSpace() {
	for p.pos < len(p.line) && (p.line[p.pos] == ' ' || p.line[p.pos] == '\t') {
		p.pos++
	}
}

// atEnd reports the end of the line or a comment.
func (p *parser) atEnd() bool { return p.pos == len(p.line) || p.line[p.pos] == '#' }

// take consumes a byte if it is next.
func (p *parser) take(c byte) bool {
	if p.pos < len(p.line) && p.line[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// word consumes letters, digits and underscores.
func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.line) && isWordByte(p.line[p.pos]) {
		p.pos++
	}
	return p.line[start:p.pos]
}

// keyword consumes a word if it comes next, whole.
func (p *parser) keyword(word string) bool {
	p.skipSpace()
	at := p.pos
	if p.word() == word {
		return true
	}
	p.pos = at
	return false
}

// node parses one line.
func (p *parser) node() (*UOp, error) {
	start := p.pos
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if p.names[name] != nil {
		return nil, p.fail(start, "%%%s is defined twice", name)
	}
	p.skipSpace()
	if !p.take('=') {
		return nil, p.expected(p.pos, `"="`)
	}
	p.skipSpace()
	at := p.pos
	op, ok := ParseOp(p.word())
	if !ok {
		return nil, p.expected(at, "an op")
	}
	p.skipSpace()
	at = p.pos
	dtype, err := ParseDType(p.word())
	if err != nil {
		return nil, p.expected(at, "a dtype")
	}
	arg, err := p.bracket(op, dtype)
	if err != nil {
		return nil, err
	}
	src, err := p.sources()
	if err != nil {
		return nil, err
	}
	if len(p.names) == maxParsedNodes {
		return nil, p.fail(start, "more than %d nodes", maxParsedNodes)
	}
	probe := UOp{Op: op, DType: dtype, Arg: arg, Src: src}
	if err := VerifyNode(&probe); err != nil {
		return nil, p.fail(start, "%%%s: %s", name, err)
	}
	u := p.arena.Make(op, dtype, arg, src...)
	p.names[name] = u
	return u, nil
}

func (p *parser) name() (string, error) {
	at := p.pos
	if !p.take('%') {
		return "", p.expected(at, "a name such as %0")
	}
	name := p.word()
	if name == "" {
		return "", p.expected(at, "a name such as %0")
	}
	return name, nil
}

// bracket parses the arg, if the op has one.
func (p *parser) bracket(op Op, dtype DType) (Arg, error) {
	kind := op.Info().Arg
	if kind == ArgNone {
		return nil, nil
	}
	p.skipSpace()
	if !p.take('[') {
		return nil, p.expected(p.pos, fmt.Sprintf(`"[" and the arg of %s`, op))
	}
	arg, err := p.arg(kind, dtype)
	if err != nil {
		return nil, err
	}
	p.skipSpace()
	if !p.take(']') {
		return nil, p.expected(p.pos, `"]"`)
	}
	return arg, nil
}

func (p *parser) sources() ([]*UOp, error) {
	var src []*UOp
	for {
		p.skipSpace()
		if p.atEnd() {
			return src, nil
		}
		if len(src) == maxParsedSources {
			return nil, p.fail(p.pos, "more than %d sources", maxParsedSources)
		}
		s, err := p.source()
		if err != nil {
			return nil, err
		}
		src = append(src, s)
	}
}

// source parses a name or a constant.
func (p *parser) source() (*UOp, error) {
	at := p.pos
	if p.line[at] == '%' {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		u := p.names[name]
		if u == nil {
			return nil, p.fail(at, "expected a node defined above, got %%%s", name)
		}
		return u, nil
	}
	text := p.numberText()
	dtype := Idx
	if p.take(':') {
		from := p.pos
		var err error
		if dtype, err = ParseDType(p.word()); err != nil || dtype == Void {
			return nil, p.expected(from, "a dtype of values")
		}
	}
	arg, err := p.constant(at, text, dtype)
	if err != nil {
		return nil, err
	}
	return p.arena.Make(OpConst, dtype, arg), nil
}
