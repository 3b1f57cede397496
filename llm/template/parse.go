package template

import (
	"errors"
	"fmt"
	"slices"
)

// sourceLimit is the most bytes of a template: the longest of published models has
// some 30,000.
const sourceLimit = 1 << 20

// nestingLimit bounds how deep tags and brackets may be nested.
const nestingLimit = 100

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	body []statement
}

// Parse reads a template.
func Parse(source string) (*Template, error) {
	if len(source) > sourceLimit {
		return nil, &Error{Line: 1, Text: fmt.Sprintf("%d bytes of source, want at most %d", len(source), sourceLimit)}
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.block()
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

// parser reads tokens.
type parser struct {
	tokens []token
	next   int
	depth  int
	loops  int // around what is being read
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

// is tells whether an operator or a word comes next.
func (p *parser) is(text string) bool {
	t := p.peek()
	return (t.kind == tokenOperator || t.kind == tokenName) && t.text == text
}

// skip takes an operator or a word if it comes next.
func (p *parser) skip(text string) bool {
	if p.is(text) {
		p.next++
		return true
	}
	return false
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{Line: p.peek().line, Text: fmt.Sprintf(format, args...)}
}

// want takes an operator or word that must come next.
func (p *parser) want(text string) error {
	if !p.skip(text) {
		return p.errorf("got %s, want %q", p.peek().describe(), text)
	}
	return nil
}

// name takes a name that must come next.
func (p *parser) name(what string) (string, error) {
	if p.peek().kind != tokenName {
		return "", p.errorf("got %s, want the name of %s", p.peek().describe(), what)
	}
	return p.take().text, nil
}

// close takes the end of a tag.
func (p *parser) close() error {
	if p.peek().kind != tokenClose {
		return p.errorf("got %s, want the end of the tag", p.peek().describe())
	}
	p.next++
	return nil
}

// nested runs f one level deeper.
func (p *parser) nested(f func() error) error {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > nestingLimit {
		return p.errorf("nested deeper than %d", nestingLimit)
	}
	return f()
}

// block reads statements up to a tag that has one of the words, or to the end of the
// template where there are none. The tag's word is next then.
func (p *parser) block(endings ...string) (body []statement, err error) {
	err = p.nested(func() error {
		body, err = p.statements(endings)
		return err
	})
	return body, err
}

func (p *parser) statements(endings []string) ([]statement, error) {
	var body []statement
	for {
		t := p.take()
		switch t.kind {
		case tokenEnd:
			if len(endings) > 0 {
				return nil, p.errorf("the template ends, want {%% %s %%}", endings[len(endings)-1])
			}
			return body, nil
		case tokenData:
			body = append(body, &dataStatement{position{t.line}, t.text})
		case tokenPrint:
			e, err := p.tuple()
			if err != nil {
				return nil, err
			}
			if err := p.close(); err != nil {
				return nil, err
			}
			body = append(body, &printStatement{position{t.line}, e})
		case tokenStatement:
			if word := p.peek(); word.kind == tokenName && slices.Contains(endings, word.text) {
				return body, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			body = append(body, s)
		}
	}
}

// statementParsers are the tags that begin a statement.
var statementParsers map[string]func(*parser, position) (statement, error)

func init() {
	statementParsers = map[string]func(*parser, position) (statement, error){
		"if": (*parser).ifTag, "for": (*parser).forTag, "set": (*parser).setTag, "macro": (*parser).macroTag,
		"call": (*parser).callTag, "filter": (*parser).filterTag, "with": (*parser).withTag,
		"generation": (*parser).generationTag, "break": (*parser).jumpTag, "continue": (*parser).jumpTag, "do": (*parser).doTag,
		"block": (*parser).blockTag,
	}
}

// statement reads a tag after "{%".
func (p *parser) statement() (statement, error) {
	word, err := p.name("a statement")
	if err != nil {
		return nil, err
	}
	parse, ok := statementParsers[word]
	if !ok {
		p.next--
		return nil, p.errorf("the statement %s is not known here, or closes nothing", clip(fmt.Sprintf("%q", word)))
	}
	return parse(p, position{p.tokens[p.next-1].line})
}

// end reads a body and the tag that ends it.
func (p *parser) end(word string) ([]statement, error) {
	if err := p.close(); err != nil {
		return nil, err
	}
	body, err := p.block(word)
	if err != nil {
		return nil, err
	}
	p.next++
	if (word == "endmacro" || word == "endblock") && p.peek().kind == tokenName {
		p.next++ // the name again
	}
	return body, p.close()
}

func (p *parser) ifTag(at position) (statement, error) {
	s := &ifStatement{position: at}
	for {
		condition, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.close(); err != nil {
			return nil, err
		}
		body, err := p.block("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.branches = append(s.branches, branch{condition, body})
		switch p.take().text {
		case "else":
			s.otherwise, err = p.end("endif")
			return s, err
		case "endif":
			return s, p.close()
		}
	}
}

func (p *parser) forTag(at position) (_ statement, err error) {
	s := &forStatement{position: at}
	if s.targets, err = p.targets(); err != nil {
		return nil, err
	}
	if err := p.want("in"); err != nil {
		return nil, err
	}
	// "x if c" is no choice here: the if belongs to the loop.
	if s.items, err = p.tupleOf(p.or); err != nil {
		return nil, err
	}
	if p.skip("if") {
		if s.condition, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skip("recursive")
	if err := p.close(); err != nil {
		return nil, err
	}
	p.loops++
	s.body, err = p.block("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	if p.take().text == "else" {
		s.otherwise, err = p.end("endfor")
		return s, err
	}
	return s, p.close()
}

// targets reads the names before "in" or "=", perhaps in brackets.
func (p *parser) targets() ([]string, error) {
	bracket := p.skip("(")
	var names []string
	for {
		name, err := p.name("a variable")
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if !p.skip(",") || p.is("in") || p.is(")") {
			break
		}
	}
	if bracket {
		return names, p.want(")")
	}
	return names, nil
}

func (p *parser) setTag(at position) (_ statement, err error) {
	s := &setStatement{position: at}
	bracket := p.skip("(")
	for {
		var t setTarget
		if t.name, err = p.name("a variable"); err != nil {
			return nil, err
		}
		if p.skip(".") {
			if t.attribute, err = p.name("an attribute"); err != nil {
				return nil, err
			}
		}
		s.targets = append(s.targets, t)
		if !p.skip(",") || p.is("=") || p.is(")") {
			break
		}
	}
	if bracket {
		if err := p.want(")"); err != nil {
			return nil, err
		}
	}
	if p.skip("=") {
		if s.value, err = p.tuple(); err != nil {
			return nil, err
		}
		return s, p.close()
	}
	if len(s.targets) > 1 {
		return nil, p.errorf("got %s, want \"=\"", p.peek().describe())
	}
	for p.skip("|") {
		f, err := p.filterCall("a filter")
		if err != nil {
			return nil, err
		}
		s.filters = append(s.filters, f)
	}
	s.block, err = p.end("endset")
	return s, err
}

func (p *parser) macroTag(at position) (_ statement, err error) {
	s := &macroStatement{position: at}
	if s.name, err = p.name("a macro"); err != nil {
		return nil, err
	}
	if s.parameters, err = p.parameters(); err != nil {
		return nil, err
	}
	s.body, err = p.function("endmacro")
	return s, err
}

// function reads the body of a macro: loops around it are not its own.
func (p *parser) function(word string) ([]statement, error) {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	return p.end(word)
}

func (p *parser) parameters() ([]parameter, error) {
	if err := p.want("("); err != nil {
		return nil, err
	}
	var list []parameter
	for !p.is(")") {
		name, err := p.name("a parameter")
		if err != nil {
			return nil, err
		}
		q := parameter{name: name}
		if p.skip("=") {
			if q.otherwise, err = p.expression(); err != nil {
				return nil, err
			}
		}
		list = append(list, q)
		if !p.skip(",") {
			break
		}
	}
	return list, p.want(")")
}

func (p *parser) callTag(at position) (_ statement, err error) {
	s := &callStatement{position: at}
	if p.is("(") {
		if s.parameters, err = p.parameters(); err != nil {
			return nil, err
		}
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := e.(*callExpression)
	if !ok {
		return nil, p.errorf("{%% call %%} of what is no call, want the name of a macro with its arguments")
	}
	s.call = call
	s.body, err = p.function("endcall")
	return s, err
}

func (p *parser) filterTag(at position) (statement, error) {
	s := &filterStatement{position: at}
	for {
		f, err := p.filterCall("a filter")
		if err != nil {
			return nil, err
		}
		s.filters = append(s.filters, f)
		if !p.skip("|") {
			break
		}
	}
	var err error
	s.body, err = p.end("endfilter")
	return s, err
}

func (p *parser) withTag(at position) (statement, error) {
	s := &withStatement{position: at}
	for p.peek().kind == tokenName {
		name, err := p.name("a variable")
		if err != nil {
			return nil, err
		}
		if err := p.want("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.names, s.values = append(s.names, name), append(s.values, value)
		if !p.skip(",") {
			break
		}
	}
	var err error
	s.body, err = p.end("endwith")
	return s, err
}

func (p *parser) generationTag(at position) (statement, error) {
	body, err := p.end("endgeneration")
	return &blockStatement{at, body}, err
}

// blockTag reads a block that no other template can fill differently.
func (p *parser) blockTag(at position) (statement, error) {
	if _, err := p.name("a block"); err != nil {
		return nil, err
	}
	body, err := p.end("endblock")
	return &blockStatement{at, body}, err
}

// Jumps travel as errors up to their loop.
var (
	errBreak    = errors.New("break outside of a loop")
	errContinue = errors.New("continue outside of a loop")
)

func (p *parser) jumpTag(at position) (statement, error) {
	s := &jumpStatement{at, errBreak}
	if p.tokens[p.next-1].text == "continue" {
		s.jump = errContinue
	}
	if p.loops == 0 {
		return nil, p.errorf("%v", s.jump)
	}
	return s, p.close()
}

func (p *parser) doTag(at position) (statement, error) {
	e, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return &doStatement{at, e}, p.close()
}
