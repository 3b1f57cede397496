package ptxemu

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Parse reads a module and prepares its kernels.
func Parse(text string) (*Module, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, module: &Module{}}
	if p.run(); p.err != nil {
		return nil, p.err
	}
	for _, k := range p.module.kernels {
		if err := k.compile(); err != nil {
			return nil, fmt.Errorf("ptx: kernel %s: %w", k.Name, err)
		}
	}
	return p.module, nil
}

// Limits against hostile input.
const (
	maxRegisters = 1 << 20
	maxVariable  = 1 << 28 // bytes
	maxScopes    = 64
)

type parser struct {
	tokens []token
	next   int
	module *Module
	kernel *Kernel
	scopes []map[string]string // names declared in braces, to unique names
	unique int
	err    error // the first fault; no token comes after it
}

func (p *parser) peek() token {
	if !p.done() {
		return p.tokens[p.next]
	}
	line := 1
	if len(p.tokens) > 0 {
		line = p.tokens[len(p.tokens)-1].line
	}
	return token{line: line}
}

func (p *parser) word() token {
	t := p.peek()
	p.next++
	return t
}

func (p *parser) accept(text string) bool {
	if p.peek().text == text {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.fail("expected %q, got %s", text, p.peek())
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("ptx: line %d: %s", p.peek().line, fmt.Sprintf(format, args...))
	}
}

// done reports that no token is left to read.
func (p *parser) done() bool { return p.next >= len(p.tokens) || p.err != nil }

func (p *parser) skipLine() {
	for line := p.peek().line; !p.done() && p.peek().line == line; {
		p.next++
	}
}

func (p *parser) run() {
	for !p.done() {
		p.top()
	}
	if p.module.Version == "" && p.err == nil {
		p.err = fmt.Errorf("ptx: no .version")
	}
}

func (p *parser) top() {
	extern := false
	for {
		switch t := p.peek(); t.text {
		case ".version":
			p.next++
			p.module.Version = p.word().text
			return
		case ".target":
			p.next++
			p.module.Target = p.word().text
			for p.accept(",") {
				p.next++
			}
			return
		case ".address_size":
			p.next++
			if w := p.word(); w.text != "64" {
				p.fail("address size %s, want 64", w)
			}
			return
		case ".file", ".section", ".pragma":
			p.skipLine()
			return
		case ".visible", ".weak", ".common":
			p.next++
		case ".extern":
			p.next++
			extern = true
		case ".entry":
			p.next++
			p.entry()
			return
		case ".global", ".const", ".shared":
			p.module.globals = append(p.module.globals, p.variables(extern)...)
			return
		default:
			p.fail("unexpected %s", t)
			return
		}
	}
}

// typeSizes are the types of variables, in bytes.
var typeSizes = map[string]int{
	".b8": 1, ".u8": 1, ".s8": 1, ".b16": 2, ".u16": 2, ".s16": 2, ".f16": 2, ".bf16": 2,
	".b32": 4, ".u32": 4, ".s32": 4, ".f32": 4, ".f16x2": 4, ".b64": 8, ".u64": 8, ".s64": 8, ".f64": 8,
}

// variables reads `.space .align N .type name[count] = {..}, ...;`.
func (p *parser) variables(extern bool) []*variable {
	space := strings.TrimPrefix(p.word().text, ".")
	align := 0
	size := 0
	for strings.HasPrefix(p.peek().text, ".") {
		w := p.word().text
		switch {
		case w == ".align":
			align = p.count()
		case typeSizes[w] != 0:
			size = typeSizes[w]
		default:
			p.fail("unknown type or attribute %q", w)
		}
	}
	if size == 0 {
		p.fail("a variable without a type")
	}
	var out []*variable
	for {
		v := &variable{name: p.declare(p.word().text), space: space, align: max(align, size), extern: extern, size: size}
		p.extents(v)
		if p.accept("=") {
			p.initialiser(v, size)
		}
		out = append(out, v)
		if !p.accept(",") {
			p.expect(";")
			return out
		}
	}
}

func (p *parser) extents(v *variable) {
	for p.accept("[") {
		n := 0
		if p.peek().text != "]" {
			n = p.count()
		}
		v.size *= n
		if v.size > maxVariable {
			p.fail("variable %s is larger than %d bytes", v.name, maxVariable)
		}
		p.expect("]")
	}
}

func (p *parser) count() int {
	n, err := strconv.ParseInt(p.peek().text, 0, 32)
	if err != nil || n < 0 {
		p.fail("expected a count, got %s", p.peek())
		return 0
	}
	p.next++
	return int(n)
}

func (p *parser) initialiser(v *variable, size int) {
	v.initial = make([]byte, 0, v.size)
	put := func() {
		a := p.argument()
		if !a.number {
			p.fail("an initial value that is no number")
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], a.bits)
		v.initial = append(v.initial, w[:size]...)
	}
	if !p.accept("{") {
		put()
		return
	}
	for p.err == nil && !p.accept("}") {
		put()
		if len(v.initial) > v.size {
			p.fail("more initial values than variable %s has room for", v.name)
		}
		p.comma("}")
	}
}

// comma reads a comma, which may be missing before the end of a list.
func (p *parser) comma(end string) {
	if !p.accept(",") && p.peek().text != end {
		p.fail("expected a comma, got %s", p.peek())
	}
}

// entry reads a kernel after `.entry`.
func (p *parser) entry() {
	k := &Kernel{Name: p.word().text, module: p.module, regs: make(map[string]*register), labels: make(map[string]int)}
	p.kernel = k
	if p.accept("(") {
		for p.err == nil && !p.accept(")") {
			p.param(k)
			p.accept(",")
		}
	}
	for p.err == nil && p.peek().text != "{" {
		switch w := p.word(); w.text {
		case ".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".maxnctapersm":
			product := 1
			for {
				product = min(product*p.count(), 1<<20)
				if !p.accept(",") {
					break
				}
			}
			if w.text == ".maxntid" || w.text == ".reqntid" {
				k.MaxThreads = product
			}
		case ".explicitcluster":
		case ".reqnctapercluster":
			k.Cluster = p.count()
			for range 2 {
				if p.expect(","); p.count() != 1 {
					p.fail("only clusters along x are supported")
				}
			}
			if k.Cluster < 1 || k.Cluster > maxCluster {
				p.fail("a cluster of %d blocks, want 1..%d", k.Cluster, maxCluster)
			}
		case ".pragma":
			p.skipLine()
		default:
			p.fail("expected the body of kernel %s, got %s", k.Name, w)
		}
	}
	p.next++
	p.module.kernels = append(p.module.kernels, k)
	p.body(0)
}

func (p *parser) param(k *Kernel) {
	p.expect(".param")
	v := &variable{space: "param", align: 1}
	for strings.HasPrefix(p.peek().text, ".") {
		switch w := p.word().text; {
		case w == ".align":
			p.count()
		case w == ".ptr" || w == ".global" || w == ".const" || w == ".shared" || w == ".local":
		case typeSizes[w] != 0:
			v.size = typeSizes[w]
		default:
			p.fail("unknown type of a parameter %q", w)
		}
	}
	if v.size == 0 {
		p.fail("a parameter without a type")
	}
	v.name = p.word().text
	p.extents(v)
	k.params = append(k.params, v)
	k.ParamSizes = append(k.ParamSizes, v.size)
}

// body reads statements up to the closing brace. Names declared inside of
// nested braces (inline assembly) hide others.
func (p *parser) body(depth int) {
	if depth > maxScopes {
		p.fail("braces nest deeper than %d", maxScopes)
	}
	p.scopes = append(p.scopes, make(map[string]string))
	defer func() { p.scopes = p.scopes[:len(p.scopes)-1] }()
	for !p.done() {
		switch t := p.peek(); t.text {
		case "}":
			p.next++
			return
		case "{":
			p.next++
			p.body(depth + 1)
		case ";":
			p.next++
		case ".loc", ".file":
			p.skipLine()
		case ".pragma":
			for !p.done() && !p.accept(";") {
				p.next++
			}
		case ".reg":
			p.registers()
		case ".shared":
			p.kernel.shared = append(p.kernel.shared, p.variables(false)...)
		case ".local":
			p.kernel.locals = append(p.kernel.locals, p.variables(false)...)
		default:
			p.statement()
		}
	}
	p.fail("the body of kernel %s does not end", p.kernel.Name)
}

// declare makes a name of a nested scope unique.
func (p *parser) declare(name string) string {
	if len(p.scopes) < 2 {
		return name
	}
	p.unique++
	unique := fmt.Sprintf("%s@%d", name, p.unique)
	p.scopes[len(p.scopes)-1][name] = unique
	return unique
}

func (p *parser) resolve(name string) string {
	for i := len(p.scopes) - 1; i >= 1; i-- {
		if unique, ok := p.scopes[i][name]; ok {
			return unique
		}
	}
	return name
}

var registerBits = map[string]int{
	".pred": 1, ".b16": 16, ".u16": 16, ".s16": 16, ".f16": 16, ".bf16": 16, ".b32": 32, ".u32": 32, ".s32": 32,
	".f32": 32, ".f16x2": 32, ".b64": 64, ".u64": 64, ".s64": 64, ".f64": 64, ".b8": 16, ".u8": 16, ".s8": 16,
}

func (p *parser) registers() {
	p.next++
	bits := registerBits[p.peek().text]
	if bits == 0 {
		p.fail("unknown type of register %s", p.peek())
	}
	p.next++
	for {
		name := p.word().text
		if p.accept("<") {
			n := p.count()
			if len(p.kernel.regs)+n > maxRegisters {
				p.fail("more than %d registers", maxRegisters)
				return
			}
			for i := range n {
				p.register(name+strconv.Itoa(i), bits)
			}
			p.expect(">")
		} else {
			p.register(name, bits)
		}
		if !p.accept(",") {
			p.expect(";")
			return
		}
	}
}

func (p *parser) register(name string, bits int) {
	p.kernel.regs[p.declare(name)] = &register{bits: bits, slot: -1}
}

func (p *parser) statement() {
	if p.next+1 < len(p.tokens) && p.tokens[p.next+1].text == ":" {
		name := p.declare(p.word().text)
		p.next++
		if _, twice := p.kernel.labels[name]; twice {
			p.fail("label %s is defined twice", name)
		}
		p.kernel.labels[name] = len(p.kernel.source)
		return
	}
	s := statement{line: p.peek().line}
	if p.accept("@") {
		s.negate = p.accept("!")
		s.guard = p.resolve(p.word().text)
	}
	parts := strings.Split(p.word().text, ".")
	s.op, s.mods = parts[0], parts[1:]
	if s.op == "" || !isLetter(s.op[0]) {
		p.next--
		p.fail("expected an instruction, got %s", p.peek())
	}
	for p.err == nil && !p.accept(";") {
		if len(s.args) > 0 {
			p.expect(",")
		}
		s.args = append(s.args, p.argument())
	}
	p.kernel.source = append(p.kernel.source, s)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func (p *parser) argument() argument {
	switch t := p.peek(); {
	case t.text == "{":
		p.next++
		a := argument{list: []argument{}}
		for p.err == nil && !p.accept("}") {
			e := p.argument()
			if e.list != nil || e.memory {
				p.fail("an element of a vector is no register or number")
			}
			a.list = append(a.list, e)
			p.comma("}")
		}
		return a
	case t.text == "[":
		p.next++
		return p.memoryArgument()
	case t.text == "!":
		p.next++
		return argument{name: p.resolve(p.word().text), negated: true}
	case t.text == "-" || t.text != "" && t.text[0] >= '0' && t.text[0] <= '9':
		return p.number()
	case t.text != "" && isWordByte(t.text[0]) && t.text[0] != '.':
		p.next++
		a := argument{name: p.resolve(t.text)}
		if p.accept("|") {
			a.pair = p.resolve(p.word().text)
		} else if p.peek().text == "+" { // symbol + constant
			p.next++
			a.offset = int64(p.number().bits)
		}
		return a
	}
	p.fail("expected an operand, got %s", p.peek())
	return argument{}
}

func (p *parser) memoryArgument() argument {
	a := argument{memory: true}
	if t := p.peek().text; t != "" && (isLetter(t[0]) || t[0] == '%' || t[0] == '$') {
		p.next++
		a.name = p.resolve(t)
	}
	for p.err == nil && p.peek().text != "]" {
		if !p.accept("+") && a.name != "" { // ptxas, too, takes [%r+-2] and not [%r-2]
			p.fail("expected + or ], got %s", p.peek())
		}
		n := p.number()
		if n.float {
			p.fail("an offset that is no integer")
		}
		a.offset += int64(n.bits)
	}
	p.next++
	return a
}

// number reads an integer, a hexadecimal float (0f, 0d) or a decimal float,
// which is a double.
func (p *parser) number() argument {
	negative := p.accept("-")
	text := p.peek().text
	a := argument{number: true}
	var err error
	switch {
	case len(text) == 10 && (strings.HasPrefix(text, "0f") || strings.HasPrefix(text, "0F")):
		a.float, a.single = true, true
		a.bits, err = strconv.ParseUint(text[2:], 16, 32)
		if negative {
			a.bits ^= 1 << 31
		}
	case len(text) == 18 && (strings.HasPrefix(text, "0d") || strings.HasPrefix(text, "0D")):
		a.float = true
		a.bits, err = strconv.ParseUint(text[2:], 16, 64)
		if negative {
			a.bits ^= 1 << 63
		}
	case strings.ContainsAny(text, ".") || strings.ContainsAny(text, "eE") && !strings.HasPrefix(text, "0x"):
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		if negative {
			f = -f
		}
		a.float, a.bits = true, math.Float64bits(f)
	default:
		a.bits, err = strconv.ParseUint(strings.TrimRight(text, "U"), 0, 64)
		if negative {
			a.bits = -a.bits
		}
	}
	if err != nil || text == "" {
		p.fail("expected a number, got %s", p.peek())
	}
	p.next++
	return a
}
