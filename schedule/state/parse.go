package state

import (
	"fmt"
	"strings"

	"tgc/ir"
	"tgc/ir/words"
)

type stateParser struct {
	words.Reader
	s *State
}

// ParseState reads the text form of values or kernels, see text.go.
func ParseState(a *ir.Arena, text string, opt Options) (*State, error) {
	_, nodes, err := ir.ParseNodes(a, text)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	p := &stateParser{s: New(a, opt), Reader: words.Reader{Form: "schedule", Nodes: nodes}}
	for number, line := range strings.Split(text, "\n") {
		if p.Line(number+1, line); !p.More() || p.Name() {
			continue
		}
		if p.statement(p.Next()); p.Err != nil {
			return nil, p.Err
		}
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	return p.s, nil
}

// statement reads a line that begins with a word.
func (p *stateParser) statement(word string) {
	s := p.s
	switch word {
	case "values":
		s.Initial = p.Int()
		p.Expect("ranges")
		s.NextRange = p.Int()
	case "version":
		p.version()
	case "value":
		p.value()
	case "kernels":
		s.Out = &Schedule{}
		p.Expect("of")
		s.Initial = p.Int()
		p.Expect("values", "arena")
		s.Out.ArenaBytes, s.Out.Values = p.Int64(), s.Initial
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
		p.Fail("no line begins with %q", word)
	}
	p.End()
}

func (p *stateParser) version() {
	s := p.s
	if i := p.Int(); i != len(s.Versions) {
		p.Fail("version %d, expected %d", i, len(s.Versions))
	}
	v := &Version{Previous: -1, Writer: -1, Under: -1}
	for p.More() {
		switch word := p.Next(); word {
		case "buffer":
			v.Buffer = p.Node()
		case "param":
			v.Param = p.Node()
		case "number":
			v.Number = p.Int()
		case "previous":
			v.Previous = p.Int()
		case "writer":
			v.Writer = p.Int()
		case "under":
			v.Under = p.Int()
		case "waits":
			v.Waits = append(v.Waits, p.Int())
		default:
			p.Fail("a version has no %q", word)
		}
	}
	if v.Buffer == nil || v.Param == nil {
		p.Fail("a version needs a buffer and a param")
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
	id := p.Int()
	if id < len(s.Values) || id >= maxValues {
		p.Fail("value %d comes after value %d", id, len(s.Values)-1)
		return
	}
	for len(s.Values) < id { // values that are gone
		s.Values = append(s.Values, &Value{ID: len(s.Values), Dead: true, Target: -1, Body: s.A.Index(0)})
	}
	v := &Value{ID: id, Target: -1}
	for p.More() {
		p.valueWord(v, p.Next())
	}
	if v.Node == nil || v.Body == nil {
		p.Fail("value %d needs a node and a body", id)
		return
	}
	s.Groups = max(s.Groups, v.Group, v.Update)
	s.Values = append(s.Values, v)
}

func (p *stateParser) valueWord(v *Value, word string) {
	switch word {
	case "node":
		v.Node = p.Node()
	case "ranges":
		v.Ranges = p.List()
	case "body":
		v.Body = p.Node()
	case "loops":
		v.Loops = p.List()
	case "index":
		v.Index = p.List()
	case "target":
		v.Target = p.Int()
	case "pinned":
		v.Pinned = true
	case "stored-with-tile":
		v.StoredWithTile = true
	case "split":
		v.Split = true
	case "dead":
		v.Dead = true
	case "group":
		v.Group = p.Int()
	case "update":
		v.Update = p.Int()
	case "rest":
		p.s.RestMemo[p.Node()] = v
	case "name":
		v.Name = p.Quoted()
	case "reason":
		v.Reasons = append(v.Reasons, p.Quoted())
	default:
		p.Fail("a value has no %q", word)
	}
}

func (p *stateParser) buffer() {
	name := p.Next()
	dtype, err := ir.ParseDType(name)
	if err != nil || p.s.Out == nil {
		p.Fail("no buffer of %q is expected here", name)
		return
	}
	b := Buffer{DType: dtype, UserID: -1}
	for p.More() {
		switch word := p.Next(); word {
		case "shape":
			b.Shape = p.List()
		case "user":
			b.UserID = p.Int64()
		case "bytes":
			b.Bytes = p.Int64()
		case "offset":
			b.Offset = p.Int64()
		case "format":
			b.Format = p.Quoted()
		default:
			p.Fail("a buffer has no %q", word)
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
	for p.More() {
		id := p.Int()
		if id < 0 || id >= len(p.s.Values) {
			p.Fail("there is no value %d", id)
			return
		}
		k.Values = append(k.Values, p.s.Values[id])
	}
	at := len(p.s.Launches) - 1
	if at < 0 || len(k.Values) == 0 {
		p.Fail("a kernel belongs to a launch and stores a value")
		return
	}
	p.s.Launches[at] = append(p.s.Launches[at], k)
}

func (p *stateParser) written() {
	k := &Kernel{Name: p.Quoted()}
	for p.More() {
		switch word := p.Next(); word {
		case "ast":
			k.AST = p.Node()
		case "arg":
			k.Args = append(k.Args, p.Int())
		case "reason":
			k.Reasons = append(k.Reasons, p.Quoted())
		default:
			p.Fail("a kernel has no %q", word)
		}
	}
	at := len(p.s.Out.Launches) - 1
	if at < 0 || k.AST == nil {
		p.Fail("a kernel belongs to a launch and has nodes")
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
