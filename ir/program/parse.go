package program

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/words"
)

// Parse reads the text form that Print writes. It checks syntax, and that a
// value is defined before it is used; Verify checks the rest.
func Parse(text string) (*Program, error) {
	p := &parser{lines: strings.Split(text, "\n"), values: make(map[int]*Value), program: &Program{Body: &Block{}}}
	p.Form = "program text"
	p.advance()
	p.Expect("program")
	p.program.Name = p.Quoted()
	p.endLine()
	p.header()
	p.block(p.program.Body, 0)
	if p.More() {
		p.Fail("expected the end of the text, got %q", p.Peek())
	}
	if p.Err != nil {
		return nil, p.Err
	}
	return p.program, nil
}

// Limits of the text form against hostile input.
const (
	maxDepth  = 200
	maxValues = 1 << 22
)

type parser struct {
	words.Reader
	lines   []string
	next    int // line
	program *Program
	values  map[int]*Value
}

// advance begins the next line that has words; there are none at the end of the
// text.
func (p *parser) advance() {
	for !p.More() && p.next <= len(p.lines) {
		p.next++
		line := ""
		if p.next <= len(p.lines) {
			line = p.lines[p.next-1]
		}
		p.Line(p.next, line)
	}
}

func (p *parser) endLine() {
	p.End()
	p.advance()
}

// named reads `name integer`, namedInt one of 32 bits.
func (p *parser) named(name string) int64 {
	p.Expect(name)
	return p.Int64()
}

func (p *parser) namedInt(name string) int {
	p.Expect(name)
	return p.Int()
}

func (p *parser) namedText(name string) string {
	p.Expect(name)
	return p.Quoted()
}

func (p *parser) header() {
	for {
		switch {
		case p.Take("param"):
			p.param()
		case p.Take("grid"):
			p.program.Grid = p.sizes()
		case p.Take("block"):
			p.program.Block = p.sizes()
		case p.Take("cluster"):
			p.program.Cluster = p.Int64()
		case p.Take("options"):
			for p.More() {
				if name := p.Next(); !p.program.Options.Parse(name, p.Int()) {
					p.Fail("no such value of option %q", name)
				}
			}
		default:
			return
		}
		p.endLine()
	}
}

func (p *parser) sizes() []int64 {
	var sizes []int64
	for p.More() {
		sizes = append(sizes, p.Int64())
	}
	return sizes
}

func (p *parser) param() {
	param := Param{Value: p.define(p.Next())}
	switch {
	case p.Take("buffer"):
		p.buffer(&param)
	case p.Take("var"):
		param.Kind, param.Name = ParamVar, p.namedText("name")
		if p.Peek() == "lo" {
			param.Lo, param.Hi = p.named("lo"), p.named("hi")
		}
	case p.Take("table"):
		p.table(&param)
	default:
		p.Fail("expected buffer, var or table, got %q", p.Peek())
	}
	p.program.Params = append(p.program.Params, param)
}

func (p *parser) buffer(b *Param) {
	b.Kind = ParamBuffer
	b.Slot = p.namedInt("slot")
	b.Name = p.namedText("name")
	b.Align = p.namedInt("align")
	b.Bytes = p.named("bytes")
	b.Read = p.Take("read")
	b.Write = p.Take("write")
	b.Constant = p.Take("constant")
	b.Early = p.Take("early")
	if p.Take("cache") {
		b.Cache = p.cache()
	}
}

func (p *parser) table(t *Param) {
	t.Kind, t.Read = ParamTable, true
	t.Align = p.namedInt("align")
	data, err := hex.DecodeString(p.namedText("data"))
	if err != nil {
		p.Fail("table data: %v", err)
	}
	t.Table, t.Bytes = string(data), int64(len(data))
}

// define makes the value of a word `%id:type`.
func (p *parser) define(word string) *Value {
	name, typ, ok := strings.Cut(word, ":")
	if !ok {
		p.Fail("expected %%id:type, got %q", word)
	}
	id := p.valueID(name)
	t, err := ParseType(typ)
	if err != nil {
		p.Fail("%v", err)
	}
	if p.values[id] != nil {
		p.Fail("value %%%d is defined twice", id)
	}
	v := &Value{ID: id, Type: t}
	p.values[id] = v
	p.program.Values = max(p.program.Values, id+1)
	return v
}

func (p *parser) valueID(name string) int {
	if strings.HasPrefix(name, "%") {
		if id, err := strconv.ParseUint(name[1:], 10, 31); err == nil && id < maxValues {
			return int(id)
		}
	}
	p.Fail("expected %%id, got %q", name)
	return 0
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

func (p *parser) use() *Value {
	id := p.valueID(p.Next())
	v := p.values[id]
	if v == nil {
		p.Fail("value %%%d is not defined", id)
	}
	return v
}

// block reads instructions up to a line that starts with `}` or the end.
func (p *parser) block(b *Block, depth int) {
	if depth > maxDepth {
		p.Fail("blocks nested deeper than %d", maxDepth)
	}
	for p.More() && p.Peek() != "}" {
		b.Instrs = append(b.Instrs, p.instr(depth))
	}
}

func (p *parser) instr(depth int) Instr {
	var in Instr
	var names []string
	for p.Name() {
		names = append(names, p.Next())
	}
	if len(names) > 0 {
		p.Expect("=")
	}
	p.op(&in)
	for p.Name() && !strings.Contains(p.Peek(), ":") {
		in.Args = append(in.Args, p.use())
	}
	// Results are defined after the arguments (no use before definition) but
	// blocks come later still and must not see them; Verify checks that.
	results := lists.Map(names, p.define)
	if in.Op == For || in.Op == If {
		in.Results = results
	} else if len(results) == 1 {
		in.Result = results[0]
	} else if len(results) > 1 {
		p.Fail("%s has one result, got %d", in.Op, len(results))
	}
	p.attributes(&in)
	p.endLine()
	p.blocks(&in, depth)
	return in
}

func (p *parser) op(in *Instr) {
	name := p.Peek()
	if op, ok := opByName[name]; ok {
		in.Op = op
	} else if op, ok := ir.ParseOp(name); ok && op.IsElementwise() {
		in.Op, in.Ir = Alu, op
	} else {
		p.Fail("unknown instruction %q", name)
	}
	p.Next()
	if in.Op == FoldLanes || in.Op == Atomic {
		op, ok := ir.ParseOp(p.Peek())
		if !ok {
			p.Fail("expected an op to fold with, got %q", p.Peek())
		}
		p.Next()
		in.Ir = op
	}
}

func (p *parser) attributes(in *Instr) {
	switch in.Op {
	case Const:
		in.Int, in.Float = p.literal(in.Result)
	case ConstLanes:
		p.literals(in)
	case Extract, ThreadIndex:
		in.Lane = p.namedInt("lane")
	case Shuffle:
		p.Expect("mask")
		for p.More() {
			in.Mask = append(in.Mask, p.Int())
		}
	case Alloca:
		in.Count, in.Align = p.named("count"), p.namedInt("align")
	case Load, Store, Gather, Scatter, Guarded, Atomic:
		in.Align = p.namedInt("align")
		if p.Take("cache") {
			in.Cache = p.cache()
		}
	case Barrier:
		if p.Take("threads") {
			in.Int = p.Int64()
		}
	case Prefetch:
		if p.Take("level") {
			in.Int = p.Int64()
		}
	case TileDot:
		in.Tile.Rows, in.Tile.Words = p.namedInt("rows"), p.namedInt("words")
		in.Tile.StrideA, in.Tile.StrideB = p.named("strides"), p.Int64()
		in.Align = 1
	case CopyAsync:
		in.Int = p.named("bytes")
	case For:
		p.Expect("do")
		p.open(in)
	case If, GridLoop:
		p.open(in)
	}
}

// open reads block arguments and the opening brace.
func (p *parser) open(in *Instr) {
	in.Body = &Block{}
	for p.Name() {
		in.Body.Args = append(in.Body.Args, p.define(p.Next()))
	}
	p.Expect("{")
}

func (p *parser) blocks(in *Instr, depth int) {
	if in.Body == nil {
		return
	}
	p.block(in.Body, depth+1)
	if in.Op == If {
		p.Expect("}", "else", "{")
		p.endLine()
		in.Else = &Block{}
		p.block(in.Else, depth+1)
	}
	p.Expect("}")
	p.endLine()
}

func (p *parser) cache() Cache {
	for policy, name := range cacheNames {
		if name != "" && p.Take(name) {
			return Cache(policy)
		}
	}
	p.Fail("expected a cache policy, got %q", p.Peek())
	return CacheDefault
}

func (p *parser) literal(result *Value) (n int64, f float64) {
	if result == nil {
		p.Fail("a constant needs a result")
		return 0, 0
	}
	word := p.Peek()
	var err error
	switch elem := result.Type.Elem; {
	case elem.IsFloat():
		f, err = strconv.ParseFloat(word, 64)
	case elem == ir.U64:
		var u uint64
		u, err = strconv.ParseUint(word, 10, 64)
		n = int64(u)
	default:
		n, err = strconv.ParseInt(word, 10, 64)
	}
	if err != nil {
		p.Fail("expected a number, got %q", word)
	}
	p.Next()
	return n, f
}

func (p *parser) literals(in *Instr) {
	for p.More() {
		n, f := p.literal(in.Result)
		if in.Result != nil && in.Result.Type.Elem.IsFloat() {
			in.Floats = append(in.Floats, f)
		} else {
			in.Ints = append(in.Ints, n)
		}
	}
}
