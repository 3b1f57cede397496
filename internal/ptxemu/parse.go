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
	if err := p.run(); err != nil {
		return nil, err
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
}

func (p *parser) peek() token {
	if p.next < len(p.tokens) {
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

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.errorf("expected %q, got %s", text, p.peek())
	}
	return nil
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("ptx: line %d: %s", p.peek().line, fmt.Sprintf(format, args...))
}

func (p *parser) done() bool { return p.next >= len(p.tokens) }

func (p *parser) skipLine() {
	for line := p.peek().line; !p.done() && p.peek().line == line; {
		p.next++
	}
}

func (p *parser) run() error {
	for !p.done() {
		if err := p.top(); err != nil {
			return err
		}
	}
	if p.module.Version == "" {
		return fmt.Errorf("ptx: no .version")
	}
	return nil
}

func (p *parser) top() error {
	extern := false
	for {
		switch t := p.peek(); t.text {
		case ".version":
			p.next++
			p.module.Version = p.word().text
			return nil
		case ".target":
			p.next++
			p.module.Target = p.word().text
			for p.accept(",") {
				p.next++
			}
			return nil
		case ".address_size":
			p.next++
			if w := p.word(); w.text != "64" {
				return p.errorf("address size %s, want 64", w)
			}
			return nil
		case ".file", ".section", ".pragma":
			p.skipLine()
			return nil
		case ".visible", ".weak", ".common":
			p.next++
		case ".extern":
			p.next++
			extern = true
		case ".entry":
			p.next++
			return p.entry()
		case ".global", ".const", ".shared":
			v, err := p.variables(extern)
			p.module.globals = append(p.module.globals, v...)
			return err
		default:
			return p.errorf("unexpected %s", t)
		}
	}
}

// typeSizes are the types of variables, in bytes.
var typeSizes = map[string]int{
	".b8": 1, ".u8": 1, ".s8": 1, ".b16": 2, ".u16": 2, ".s16": 2, ".f16": 2, ".bf16": 2,
	".b32": 4, ".u32": 4, ".s32": 4, ".f32": 4, ".f16x2": 4, ".b64": 8, ".u64": 8, ".s64": 8, ".f64": 8,
}

// variables reads `.space .align N .type name[count] = {..}, ...;`.
func (p *parser) variables(extern bool) ([]*variable, error) {
	space := strings.TrimPrefix(p.word().text, ".")
	align := 0
	size := 0
	for strings.HasPrefix(p.peek().text, ".") {
		w := p.word().text
		switch {
		case w == ".align":
			n, err := p.count()
			if err != nil {
				return nil, err
			}
			align = n
		case typeSizes[w] != 0:
			size = typeSizes[w]
		default:
			return nil, p.errorf("unknown type or attribute %q", w)
		}
	}
	if size == 0 {
		return nil, p.errorf("a variable without a type")
	}
	var out []*variable
	for {
		v := &variable{name: p.declare(p.word().text), space: space, align: max(align, size), extern: extern, size: size}
		if err := p.extents(v); err != nil {
			return nil, err
		}
		if p.accept("=") {
			if err := p.initialiser(v, size); err != nil {
				return nil, err
			}
		}
		out = append(out, v)
		if !p.accept(",") {
			return out, p.expect(";")
		}
	}
}

func (p *parser) extents(v *variable) error {
	for p.accept("[") {
		n := 0
		if p.peek().text != "]" {
			var err error
			if n, err = p.count(); err != nil {
				return err
			}
		}
		v.size *= n
		if v.size > maxVariable {
			return p.errorf("variable %s is larger than %d bytes", v.name, maxVariable)
		}
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) count() (int, error) {
	n, err := strconv.ParseInt(p.peek().text, 0, 32)
	if err != nil || n < 0 {
		return 0, p.errorf("expected a count, got %s", p.peek())
	}
	p.next++
	return int(n), nil
}

func (p *parser) initialiser(v *variable, size int) error {
	v.initial = make([]byte, 0, v.size)
	put := func() error {
		a, err := p.argument()
		if err != nil {
			return err
		}
		if !a.number {
			return p.errorf("an initial value that is no number")
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], a.bits)
		v.initial = append(v.initial, w[:size]...)
		return nil
	}
	if !p.accept("{") {
		return put()
	}
	for !p.accept("}") {
		if err := put(); err != nil {
			return err
		}
		if len(v.initial) > v.size {
			return p.errorf("more initial values than variable %s has room for", v.name)
		}
		if !p.accept(",") && p.peek().text != "}" {
			return p.errorf("expected a comma, got %s", p.peek())
		}
	}
	return nil
}

// entry reads a kernel after `.entry`.
func (p *parser) entry() error {
	k := &Kernel{Name: p.word().text, module: p.module, regs: make(map[string]*register), labels: make(map[string]int)}
	p.kernel = k
	if p.accept("(") {
		for !p.accept(")") {
			if err := p.param(k); err != nil {
				return err
			}
			p.accept(",")
		}
	}
	for p.peek().text != "{" {
		switch w := p.word(); w.text {
		case ".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".maxnctapersm":
			product := 1
			for {
				n, err := p.count()
				if err != nil {
					return err
				}
				product = min(product*n, 1<<20)
				if !p.accept(",") {
					break
				}
			}
			if w.text == ".maxntid" || w.text == ".reqntid" {
				k.MaxThreads = product
			}
		case ".pragma":
			p.skipLine()
		default:
			return p.errorf("expected the body of kernel %s, got %s", k.Name, w)
		}
	}
	p.next++
	p.module.kernels = append(p.module.kernels, k)
	return p.body(0)
}

func (p *parser) param(k *Kernel) error {
	if err := p.expect(".param"); err != nil {
		return err
	}
	v := &variable{space: "param", align: 1}
	for strings.HasPrefix(p.peek().text, ".") {
		switch w := p.word().text; {
		case w == ".align":
			if _, err := p.count(); err != nil {
				return err
			}
		case w == ".ptr" || w == ".global" || w == ".const" || w == ".shared" || w == ".local":
		case typeSizes[w] != 0:
			v.size = typeSizes[w]
		default:
			return p.errorf("unknown type of a parameter %q", w)
		}
	}
	if v.size == 0 {
		return p.errorf("a parameter without a type")
	}
	v.name = p.word().text
	if err := p.extents(v); err != nil {
		return err
	}
	k.params = append(k.params, v)
	k.ParamSizes = append(k.ParamSizes, v.size)
	return nil
}

// body reads statements up to the closing brace. Names declared inside of
// nested braces (inline assembly) hide others.
func (p *parser) body(depth int) error {
	if depth > maxScopes {
		return p.errorf("braces nest deeper than %d", maxScopes)
	}
	p.scopes = append(p.scopes, make(map[string]string))
	defer func() { p.scopes = p.scopes[:len(p.scopes)-1] }()
	for {
		if p.done() {
			return p.errorf("the body of kernel %s does not end", p.kernel.Name)
		}
		switch t := p.peek(); t.text {
		case "}":
			p.next++
			return nil
		case "{":
			p.next++
			if err := p.body(depth + 1); err != nil {
				return err
			}
		case ";":
			p.next++
		case ".loc", ".file":
			p.skipLine()
		case ".pragma":
			for !p.done() && !p.accept(";") {
				p.next++
			}
		case ".reg":
			if err := p.registers(); err != nil {
				return err
			}
		case ".shared", ".local":
			if err := p.memory(t.text); err != nil {
				return err
			}
		default:
			if err := p.statement(); err != nil {
				return err
			}
		}
	}
}

func (p *parser) memory(space string) error {
	v, err := p.variables(false)
	if err != nil {
		return err
	}
	if space == ".shared" {
		p.kernel.shared = append(p.kernel.shared, v...)
	} else {
		p.kernel.locals = append(p.kernel.locals, v...)
	}
	return nil
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

func (p *parser) registers() error {
	p.next++
	bits := registerBits[p.peek().text]
	if bits == 0 {
		return p.errorf("unknown type of register %s", p.peek())
	}
	p.next++
	for {
		name := p.word().text
		if p.accept("<") {
			n, err := p.count()
			if err != nil {
				return err
			}
			if len(p.kernel.regs)+n > maxRegisters {
				return p.errorf("more than %d registers", maxRegisters)
			}
			for i := range n {
				p.register(name+strconv.Itoa(i), bits)
			}
			if err := p.expect(">"); err != nil {
				return err
			}
		} else {
			p.register(name, bits)
		}
		if !p.accept(",") {
			return p.expect(";")
		}
	}
}

func (p *parser) register(name string, bits int) {
	p.kernel.regs[p.declare(name)] = &register{bits: bits, slot: -1}
}

func (p *parser) statement() error {
	if p.next+1 < len(p.tokens) && p.tokens[p.next+1].text == ":" {
		name := p.declare(p.word().text)
		p.next++
		if _, twice := p.kernel.labels[name]; twice {
			return p.errorf("label %s is defined twice", name)
		}
		p.kernel.labels[name] = len(p.kernel.source)
		return nil
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
		return p.errorf("expected an instruction, got %s", p.peek())
	}
	for !p.accept(";") {
		if len(s.args) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		a, err := p.argument()
		if err != nil {
			return err
		}
		s.args = append(s.args, a)
	}
	p.kernel.source = append(p.kernel.source, s)
	return nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func (p *parser) argument() (argument, error) {
	switch t := p.peek(); {
	case t.text == "{":
		p.next++
		a := argument{list: []argument{}}
		for !p.accept("}") {
			e, err := p.argument()
			if err != nil {
				return a, err
			}
			if e.list != nil || e.memory {
				return a, p.errorf("an element of a vector is no register or number")
			}
			a.list = append(a.list, e)
			if !p.accept(",") && p.peek().text != "}" {
				return a, p.errorf("expected a comma, got %s", p.peek())
			}
		}
		return a, nil
	case t.text == "[":
		p.next++
		return p.memoryArgument()
	case t.text == "!":
		p.next++
		a := argument{name: p.resolve(p.word().text), negated: true}
		return a, nil
	case t.text == "-" || t.text != "" && t.text[0] >= '0' && t.text[0] <= '9':
		return p.number()
	case t.text != "" && isWordByte(t.text[0]) && t.text[0] != '.':
		p.next++
		a := argument{name: p.resolve(t.text)}
		if p.accept("|") {
			a.pair = p.resolve(p.word().text)
		} else if p.peek().text == "+" { // symbol + constant
			p.next++
			n, err := p.number()
			if err != nil {
				return a, err
			}
			a.offset = int64(n.bits)
		}
		return a, nil
	}
	return argument{}, p.errorf("expected an operand, got %s", p.peek())
}

func (p *parser) memoryArgument() (argument, error) {
	a := argument{memory: true}
	if t := p.peek().text; t != "" && (isLetter(t[0]) || t[0] == '%' || t[0] == '$') {
		p.next++
		a.name = p.resolve(t)
	}
	for p.peek().text != "]" {
		plus := p.accept("+")
		if !plus && p.peek().text != "-" && a.name != "" {
			return a, p.errorf("expected + or ], got %s", p.peek())
		}
		n, err := p.number()
		if err != nil {
			return a, err
		}
		if n.float {
			return a, p.errorf("an offset that is no integer")
		}
		a.offset += int64(n.bits)
	}
	p.next++
	return a, nil
}

// number reads an integer, a hexadecimal float (0f, 0d) or a decimal float,
// which is a double.
func (p *parser) number() (argument, error) {
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
		return a, p.errorf("expected a number, got %s", p.peek())
	}
	p.next++
	return a, nil
}
