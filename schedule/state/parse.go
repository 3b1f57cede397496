package state

import (
	"fmt"
	"strconv"
	"strings"

	"tgc/ir"
)

// stateParser reads the text of a state. The first fault is kept; what is read
// after it is not used.
type stateParser struct {
	s     *State
	nodes map[string]*ir.UOp
	line  int
	words []string // what is left of the line
	err   error
}

// ParseState reads the text form of values or kernels, see text.go.
func ParseState(a *ir.Arena, text string, opt Options) (*State, error) {
	nodes, err := ir.ParseNodes(a, text)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	p := &stateParser{s: New(a, opt), nodes: nodes}
	for line := range strings.SplitSeq(text, "\n") {
		p.line++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line[0] == '%' {
			continue
		}
		if p.words, err = splitWords(line); err != nil {
			p.fail("%v", err)
		}
		p.statement(p.next())
		if p.err != nil {
			return nil, p.err
		}
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	return p.s, nil
}

// splitWords cuts a line at spaces; a quoted word may hold some.
func splitWords(line string) ([]string, error) {
	var words []string
	for line != "" {
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("a quoted word has no end")
			}
			words = append(words, quoted)
			line = line[len(quoted):]
		} else {
			i := strings.IndexByte(line+" ", ' ')
			words = append(words, line[:i])
			line = line[i:]
		}
		line = strings.TrimLeft(line, " ")
	}
	return words, nil
}

func (p *stateParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("schedule: line %d: %s", p.line, fmt.Sprintf(format, args...))
	}
}

// next takes a word, "" at the end of the line.
func (p *stateParser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

func (p *stateParser) number() int {
	word := p.next()
	n, err := strconv.Atoi(word)
	if err != nil {
		p.fail("expected a number, got %q", word)
	}
	return n
}

func (p *stateParser) quoted() string {
	word := p.next()
	text, err := strconv.Unquote(word)
	if err != nil {
		p.fail("expected a quoted word, got %q", word)
	}
	return text
}

// node takes the name of a node.
func (p *stateParser) node() *ir.UOp {
	word := p.next()
	name, ok := strings.CutPrefix(word, "%")
	if u := p.nodes[name]; ok && u != nil {
		return u
	}
	p.fail("expected a node, got %q", word)
	return p.s.A.Index(0)
}

// list takes the names of nodes as long as there are any; it is never nil.
func (p *stateParser) list() []*ir.UOp {
	list := []*ir.UOp{}
	for len(p.words) > 0 && p.words[0][0] == '%' {
		list = append(list, p.node())
	}
	return list
}

// statement reads a line that begins with a word.
func (p *stateParser) statement(word string) {
	s := p.s
	switch word {
	case "values":
		s.Initial = p.number()
		p.expect("ranges")
		s.NextRange = p.number()
	case "version":
		p.version()
	case "value":
		p.value()
	case "kernels":
		s.Out = &Schedule{}
		p.expect("of")
		s.Initial = p.number()
		p.expect("values")
		p.expect("arena")
		s.Out.ArenaBytes, s.Out.Values = int64(p.number()), s.Initial
	case "buffer":
		p.buffer()
	case "launch":
		s.Launches = append(s.Launches, nil)
		if s.Out != nil {
			s.Launches = nil
			s.Out.Launches = append(s.Out.Launches, Launch{})
		}
	case "kernel":
		p.kernel()
	default:
		p.fail("no line begins with %q", word)
	}
	if len(p.words) > 0 {
		p.fail("%q is too much", p.words[0])
	}
}

func (p *stateParser) expect(word string) {
	if got := p.next(); got != word {
		p.fail("expected %q, got %q", word, got)
	}
}

func (p *stateParser) version() {
	s := p.s
	if i := p.number(); i != len(s.Versions) {
		p.fail("version %d, expected %d", i, len(s.Versions))
	}
	v := &Version{Previous: -1, Writer: -1, Under: -1}
	for len(p.words) > 0 && p.err == nil {
		switch word := p.next(); word {
		case "buffer":
			v.Buffer = p.node()
		case "param":
			v.Param = p.node()
		case "number":
			v.Number = p.number()
		case "previous":
			v.Previous = p.number()
		case "writer":
			v.Writer = p.number()
		case "under":
			v.Under = p.number()
		case "waits":
			v.Waits = append(v.Waits, p.number())
		default:
			p.fail("a version has no %q", word)
		}
	}
	if v.Buffer == nil || v.Param == nil {
		p.fail("a version needs a buffer and a param")
		return
	}
	s.Versions = append(s.Versions, v)
	if v.Writer >= 0 {
		s.Mutable[v.Buffer] = true
	}
}

// maxValues bounds the number of values, since text is untrusted.
const maxValues = 1 << 20

func (p *stateParser) value() {
	s := p.s
	id := p.number()
	if id < len(s.Values) || id >= maxValues {
		p.fail("value %d comes after value %d", id, len(s.Values)-1)
		return
	}
	for len(s.Values) < id { // values that are gone
		s.Values = append(s.Values, &Value{ID: len(s.Values), Dead: true, Target: -1, Body: s.A.Index(0)})
	}
	v := &Value{ID: id, Target: -1}
	for len(p.words) > 0 && p.err == nil {
		p.valueWord(v, p.next())
	}
	if v.Node == nil || v.Body == nil {
		p.fail("value %d needs a node and a body", id)
		return
	}
	s.Groups = max(s.Groups, v.Group, v.Update)
	s.Values = append(s.Values, v)
}

func (p *stateParser) valueWord(v *Value, word string) {
	switch word {
	case "node":
		v.Node = p.node()
	case "ranges":
		v.Ranges = p.list()
	case "body":
		v.Body = p.node()
	case "loops":
		v.Loops = p.list()
	case "index":
		v.Index = p.list()
	case "target":
		v.Target = p.number()
	case "pinned":
		v.Pinned = true
	case "stored-with-tile":
		v.StoredWithTile = true
	case "split":
		v.Split = true
	case "dead":
		v.Dead = true
	case "group":
		v.Group = p.number()
	case "update":
		v.Update = p.number()
	case "rest":
		p.s.RestMemo[p.node()] = v
	case "name":
		v.Name = p.quoted()
	case "reason":
		v.Reasons = append(v.Reasons, p.quoted())
	default:
		p.fail("a value has no %q", word)
	}
}

func (p *stateParser) buffer() {
	name := p.next()
	dtype, err := ir.ParseDType(name)
	if err != nil || p.s.Out == nil {
		p.fail("no buffer of %q is expected here", name)
		return
	}
	b := Buffer{DType: dtype, UserID: -1}
	for len(p.words) > 0 && p.err == nil {
		switch word := p.next(); word {
		case "shape":
			b.Shape = p.list()
		case "user":
			b.UserID = int64(p.number())
		case "bytes":
			b.Bytes = int64(p.number())
		case "offset":
			b.Offset = int64(p.number())
		case "format":
			b.Format = p.quoted()
		default:
			p.fail("a buffer has no %q", word)
		}
	}
	p.s.Out.Buffers = append(p.s.Out.Buffers, b)
}

// kernel reads a kernel: values that it stores, or, of a schedule, its nodes.
func (p *stateParser) kernel() {
	if p.s.Out != nil {
		p.written()
		return
	}
	k := &Draft{}
	for len(p.words) > 0 && p.err == nil {
		id := p.number()
		if id < 0 || id >= len(p.s.Values) {
			p.fail("there is no value %d", id)
			return
		}
		k.Values = append(k.Values, p.s.Values[id])
	}
	at := len(p.s.Launches) - 1
	if at < 0 || len(k.Values) == 0 {
		p.fail("a kernel belongs to a launch and stores a value")
		return
	}
	p.s.Launches[at] = append(p.s.Launches[at], k)
}

func (p *stateParser) written() {
	k := &Kernel{Name: p.quoted()}
	for len(p.words) > 0 && p.err == nil {
		switch word := p.next(); word {
		case "ast":
			k.AST = p.node()
		case "arg":
			k.Args = append(k.Args, p.number())
		case "reason":
			k.Reasons = append(k.Reasons, p.quoted())
		default:
			p.fail("a kernel has no %q", word)
		}
	}
	at := len(p.s.Out.Launches) - 1
	if at < 0 || k.AST == nil {
		p.fail("a kernel belongs to a launch and has nodes")
		return
	}
	p.s.Out.Launches[at].Kernels = append(p.s.Out.Launches[at].Kernels, k)
}

// settle checks the state that was read and completes what follows from it.
func (p *stateParser) settle() error {
	s := p.s
	if s.Out == nil && len(s.Values) == 0 {
		return fmt.Errorf("schedule: the text has no values")
	}
	if err := s.Verify(); err != nil {
		return err
	}
	s.IndexUses()
	return nil
}
