package program

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tgc/ir"
)

// Parse reads the text form that Print writes. It checks syntax, and that a
// value is defined before it is used; Verify checks the rest.
func Parse(text string) (*Program, error) {
	p := &parser{values: make(map[int]*Value), program: &Program{}}
	p.split(text)
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.program, nil
}

// Limits of the text form against hostile input.
const (
	maxDepth  = 200
	maxValues = 1 << 22
)

type parser struct {
	lines   []line
	next    int // line
	program *Program
	values  map[int]*Value
}

type line struct {
	number int
	words  []string
}

// split cuts the text into lines of words. A quoted string is one word; a `#`
// outside of strings starts a comment.
func (p *parser) split(text string) {
	for i, s := range strings.Split(text, "\n") {
		if words := splitWords(s); len(words) > 0 {
			p.lines = append(p.lines, line{number: i + 1, words: words})
		}
	}
}

func splitWords(s string) []string {
	var words []string
	for {
		s = strings.TrimLeft(s, " \t\r")
		if s == "" || s[0] == '#' {
			return words
		}
		end := strings.IndexAny(s, " \t\r#")
		if s[0] == '"' {
			if quoted, err := strconv.QuotedPrefix(s); err == nil {
				end = len(quoted)
			}
		}
		if end <= 0 {
			end = len(s)
		}
		words = append(words, s[:end])
		s = s[end:]
	}
}

// cursor walks the words of one line.
type cursor struct {
	line line
	pos  int
}

func (c *cursor) errorf(format string, args ...any) error {
	return fmt.Errorf("program text: line %d, word %d: %s", c.line.number, c.pos+1, fmt.Sprintf(format, args...))
}

func (c *cursor) done() bool { return c.pos >= len(c.line.words) }

func (c *cursor) peek() string {
	if c.done() {
		return ""
	}
	return c.line.words[c.pos]
}

func (c *cursor) word() string {
	w := c.peek()
	c.pos++
	return w
}

func (c *cursor) accept(w string) bool {
	if c.peek() == w {
		c.pos++
		return true
	}
	return false
}

func (c *cursor) expect(w string) error {
	if !c.accept(w) {
		return c.errorf("expected %q, got %q", w, c.peek())
	}
	return nil
}

func (c *cursor) int() (int64, error) {
	n, err := strconv.ParseInt(c.peek(), 10, 64)
	if err != nil {
		return 0, c.errorf("expected an integer, got %q", c.peek())
	}
	c.pos++
	return n, nil
}

func (c *cursor) small() (int, error) {
	n, err := strconv.ParseInt(c.peek(), 10, 32)
	if err != nil {
		return 0, c.errorf("expected a 32-bit integer, got %q", c.peek())
	}
	c.pos++
	return int(n), nil
}

func (c *cursor) text() (string, error) {
	s, err := strconv.Unquote(c.peek())
	if err != nil || !strings.HasPrefix(c.peek(), `"`) {
		return "", c.errorf("expected a quoted string, got %q", c.peek())
	}
	c.pos++
	return s, nil
}

// named reads `name integer`.
func (c *cursor) named(name string) (int64, error) {
	if err := c.expect(name); err != nil {
		return 0, err
	}
	return c.int()
}

func (c *cursor) namedSmall(name string) (int, error) {
	if err := c.expect(name); err != nil {
		return 0, err
	}
	return c.small()
}

func (c *cursor) end() error {
	if !c.done() {
		return c.errorf("expected the end of the line, got %q", c.peek())
	}
	return nil
}

func (p *parser) parse() error {
	c := p.cursor()
	if err := c.expect("program"); err != nil {
		return err
	}
	name, err := c.text()
	if err != nil {
		return err
	}
	p.program.Name = name
	if err := c.end(); err != nil {
		return err
	}
	p.next++
	if err := p.header(); err != nil {
		return err
	}
	p.program.Body = &Block{}
	if err := p.block(p.program.Body, 0); err != nil {
		return err
	}
	if p.next < len(p.lines) {
		c := p.cursor()
		return c.errorf("expected the end of the text, got %q", c.peek())
	}
	return nil
}

func (p *parser) cursor() *cursor {
	if p.next < len(p.lines) {
		return &cursor{line: p.lines[p.next]}
	}
	number := 1
	if len(p.lines) > 0 {
		number = p.lines[len(p.lines)-1].number + 1
	}
	return &cursor{line: line{number: number}}
}

func (p *parser) header() error {
	for ; p.next < len(p.lines); p.next++ {
		c := p.cursor()
		var err error
		switch {
		case c.accept("param"):
			err = p.param(c)
		case c.accept("grid"):
			p.program.Grid, err = c.sizes()
		case c.accept("block"):
			p.program.Block, err = c.sizes()
		default:
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.end(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cursor) sizes() ([]int64, error) {
	var sizes []int64
	for !c.done() {
		n, err := c.int()
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

func (p *parser) param(c *cursor) error {
	v, err := p.define(c)
	if err != nil {
		return err
	}
	param := Param{Value: v}
	switch {
	case c.accept("buffer"):
		err = c.buffer(&param)
	case c.accept("var"):
		param.Kind = ParamVar
		if param.Name, err = c.namedText("name"); err == nil && c.peek() == "lo" {
			if param.Lo, err = c.named("lo"); err == nil {
				param.Hi, err = c.named("hi")
			}
		}
	case c.accept("table"):
		err = c.table(&param)
	default:
		return c.errorf("expected buffer, var or table, got %q", c.peek())
	}
	p.program.Params = append(p.program.Params, param)
	return err
}

func (c *cursor) namedText(name string) (string, error) {
	if err := c.expect(name); err != nil {
		return "", err
	}
	return c.text()
}

func (c *cursor) buffer(p *Param) (err error) {
	p.Kind = ParamBuffer
	if p.Slot, err = c.namedSmall("slot"); err != nil {
		return err
	}
	if p.Name, err = c.namedText("name"); err != nil {
		return err
	}
	if p.Align, err = c.namedSmall("align"); err != nil {
		return err
	}
	if p.Bytes, err = c.named("bytes"); err != nil {
		return err
	}
	p.Read = c.accept("read")
	p.Write = c.accept("write")
	p.Constant = c.accept("constant")
	p.Early = c.accept("early")
	return nil
}

func (c *cursor) table(p *Param) (err error) {
	p.Kind, p.Read = ParamTable, true
	if p.Align, err = c.namedSmall("align"); err != nil {
		return err
	}
	digits, err := c.namedText("data")
	if err != nil {
		return err
	}
	data, err := hex.DecodeString(digits)
	if err != nil {
		return c.errorf("table data: %v", err)
	}
	p.Table, p.Bytes = string(data), int64(len(data))
	return nil
}

// define reads `%id:type` and makes the value.
func (p *parser) define(c *cursor) (*Value, error) {
	w := c.peek()
	name, typ, ok := strings.Cut(w, ":")
	if !ok {
		return nil, c.errorf("expected %%id:type, got %q", w)
	}
	id, err := valueID(name)
	if err != nil {
		return nil, c.errorf("%v", err)
	}
	t, err := ParseType(typ)
	if err != nil {
		return nil, c.errorf("%v", err)
	}
	if p.values[id] != nil {
		return nil, c.errorf("value %%%d is defined twice", id)
	}
	v := &Value{ID: id, Type: t}
	p.values[id] = v
	p.program.Values = max(p.program.Values, id+1)
	c.pos++
	return v, nil
}

func valueID(name string) (int, error) {
	if strings.HasPrefix(name, "%") {
		if id, err := strconv.ParseUint(name[1:], 10, 31); err == nil && id < maxValues {
			return int(id), nil
		}
	}
	return 0, fmt.Errorf("expected %%id, got %q", name)
}

// ParseType is the inverse of Type.String.
func ParseType(s string) (Type, error) {
	if rest, ok := strings.CutPrefix(s, "*"); ok {
		elem, space, _ := strings.Cut(rest, "@")
		d, err := ir.ParseDType(elem)
		if err != nil {
			return Type{}, err
		}
		for i, name := range spaceNames {
			if name == space {
				return Pointer(d, Space(i)), nil
			}
		}
		return Type{}, fmt.Errorf("unknown address space %q", space)
	}
	if d, err := ir.ParseDType(s); err == nil {
		return Scalar(d), nil
	}
	at := strings.LastIndexByte(s, 'x')
	if at < 0 {
		return Type{}, fmt.Errorf("unknown type %q", s)
	}
	d, err := ir.ParseDType(s[:at])
	if err != nil {
		return Type{}, err
	}
	lanes, err := strconv.Atoi(s[at+1:])
	if err != nil || lanes < 2 || lanes > MaxLanes {
		return Type{}, fmt.Errorf("type %q: lanes, want 2..%d", s, MaxLanes)
	}
	return Vector(d, lanes), nil
}

func (p *parser) use(c *cursor) (*Value, error) {
	id, err := valueID(c.peek())
	if err != nil {
		return nil, c.errorf("%v", err)
	}
	v := p.values[id]
	if v == nil {
		return nil, c.errorf("value %%%d is not defined", id)
	}
	c.pos++
	return v, nil
}

// block reads instructions up to a line that starts with `}` or the end.
func (p *parser) block(b *Block, depth int) error {
	if depth > maxDepth {
		return p.cursor().errorf("blocks nested deeper than %d", maxDepth)
	}
	for p.next < len(p.lines) {
		c := p.cursor()
		if c.peek() == "}" {
			return nil
		}
		in, err := p.instr(c, depth)
		if err != nil {
			return err
		}
		b.Instrs = append(b.Instrs, in)
	}
	return nil
}

func (p *parser) instr(c *cursor, depth int) (Instr, error) {
	var in Instr
	resultsAt := c.pos
	for strings.HasPrefix(c.peek(), "%") {
		c.pos++
	}
	if c.pos > resultsAt {
		if err := c.expect("="); err != nil {
			return in, err
		}
	}
	if err := in.setOp(c); err != nil {
		return in, err
	}
	for strings.HasPrefix(c.peek(), "%") && !strings.Contains(c.peek(), ":") {
		a, err := p.use(c)
		if err != nil {
			return in, err
		}
		in.Args = append(in.Args, a)
	}
	// Results are defined after the arguments (no use before definition) but
	// blocks come later still and must not see them; Verify checks that.
	r := &cursor{line: c.line, pos: resultsAt}
	var results []*Value
	for strings.HasPrefix(r.peek(), "%") {
		v, err := p.define(r)
		if err != nil {
			return in, err
		}
		results = append(results, v)
	}
	if in.Op == For || in.Op == If {
		in.Results = results
	} else if len(results) == 1 {
		in.Result = results[0]
	} else if len(results) > 1 {
		return in, r.errorf("%s has one result, got %d", in.Op, len(results))
	}
	if err := p.attributes(c, &in); err != nil {
		return in, err
	}
	if err := c.end(); err != nil {
		return in, err
	}
	p.next++
	return in, p.blocks(&in, depth)
}

func (in *Instr) setOp(c *cursor) error {
	name := c.word()
	if op, ok := opByName[name]; ok {
		in.Op = op
	} else if op, ok := ir.ParseOp(name); ok && op.IsElementwise() {
		in.Op, in.Ir = Alu, op
	} else {
		c.pos--
		return c.errorf("unknown instruction %q", name)
	}
	if in.Op == FoldLanes || in.Op == Atomic {
		op, ok := ir.ParseOp(c.peek())
		if !ok {
			return c.errorf("expected an op to fold with, got %q", c.peek())
		}
		c.pos++
		in.Ir = op
	}
	return nil
}

func (p *parser) attributes(c *cursor, in *Instr) (err error) {
	switch in.Op {
	case Const:
		in.Int, in.Float, err = c.literal(in.Result)
	case ConstLanes:
		err = c.literals(in)
	case Extract, Insert, ThreadIndex:
		in.Lane, err = c.namedSmall("lane")
	case Shuffle:
		err = c.mask(in)
	case Alloca:
		if in.Count, err = c.named("count"); err == nil {
			in.Align, err = c.namedSmall("align")
		}
	case Load, Store, Gather, Scatter, Guarded, Atomic:
		if in.Align, err = c.namedSmall("align"); err == nil && c.accept("cache") {
			in.Cache, err = c.cache()
		}
	case AsyncCopy:
		in.Count, err = c.named("bytes")
	case AsyncWait:
		in.Count, err = c.named("groups")
	case For:
		if err = c.expect("do"); err == nil {
			err = p.open(c, in)
		}
	case If, GridLoop:
		err = p.open(c, in)
	}
	return err
}

// open reads block arguments and the opening brace.
func (p *parser) open(c *cursor, in *Instr) error {
	in.Body = &Block{}
	for strings.HasPrefix(c.peek(), "%") {
		v, err := p.define(c)
		if err != nil {
			return err
		}
		in.Body.Args = append(in.Body.Args, v)
	}
	return c.expect("{")
}

func (p *parser) blocks(in *Instr, depth int) error {
	if in.Body == nil {
		return nil
	}
	if err := p.block(in.Body, depth+1); err != nil {
		return err
	}
	if in.Op == If {
		if err := p.closes("}", "else", "{"); err != nil {
			return err
		}
		in.Else = &Block{}
		if err := p.block(in.Else, depth+1); err != nil {
			return err
		}
	}
	return p.closes("}")
}

func (p *parser) closes(words ...string) error {
	c := p.cursor()
	for _, w := range words {
		if err := c.expect(w); err != nil {
			return err
		}
	}
	p.next++
	return c.end()
}

func (c *cursor) cache() (Cache, error) {
	for policy, name := range cacheNames {
		if name != "" && c.accept(name) {
			return Cache(policy), nil
		}
	}
	return 0, c.errorf("expected a cache policy, got %q", c.peek())
}

func (c *cursor) literal(result *Value) (n int64, f float64, err error) {
	if result == nil {
		return 0, 0, c.errorf("a constant needs a result")
	}
	w := c.peek()
	switch elem := result.Type.Elem; {
	case elem.IsFloat():
		f, err = strconv.ParseFloat(w, 64)
		if err != nil && !math.IsInf(f, 0) {
			return 0, 0, c.errorf("expected a number, got %q", w)
		}
	case elem == ir.U64:
		var u uint64
		u, err = strconv.ParseUint(w, 10, 64)
		n = int64(u)
	default:
		n, err = strconv.ParseInt(w, 10, 64)
	}
	if err != nil {
		return 0, 0, c.errorf("expected a number, got %q", w)
	}
	c.pos++
	return n, f, nil
}

func (c *cursor) literals(in *Instr) error {
	for !c.done() {
		n, f, err := c.literal(in.Result)
		if err != nil {
			return err
		}
		if in.Result.Type.Elem.IsFloat() {
			in.Floats = append(in.Floats, f)
		} else {
			in.Ints = append(in.Ints, n)
		}
	}
	return nil
}

func (c *cursor) mask(in *Instr) error {
	if err := c.expect("mask"); err != nil {
		return err
	}
	for !c.done() {
		m, err := c.small()
		if err != nil {
			return err
		}
		in.Mask = append(in.Mask, m)
	}
	return nil
}
