package ir

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
)

// numberText consumes what can be part of a number: it stops at a space, a colon
// or a bracket's end.
func (p *parser) numberText() string {
	start := p.pos
	for p.pos < len(p.line) && strings.IndexByte(" \t:]#,", p.line[p.pos]) < 0 {
		p.pos++
	}
	return p.line[start:p.pos]
}

// constant turns the text of a CONST into its arg.
func (p *parser) constant(at int, text string, dtype DType) (Arg, error) {
	if dtype.IsFloat() {
		return p.floatConstant(at, text, dtype)
	}
	var v int64
	var err error
	if dtype == U64 {
		var word uint64
		word, err = strconv.ParseUint(text, 10, 64)
		v = int64(word)
	} else {
		v, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil || WrapInt(dtype, v) != v {
		return nil, p.expected(at, "a value of "+dtype.String())
	}
	return IntArg(v), nil
}

func (p *parser) floatConstant(at int, text string, dtype DType) (Arg, error) {
	if hex, ok := strings.CutPrefix(text, "nan("); ok {
		word, err := strconv.ParseUint(strings.TrimSuffix(hex, ")"), 16, 64)
		if v := math.Float64frombits(word); err != nil || v == v || !strings.HasSuffix(hex, ")") {
			return nil, p.expected(at, "the bits of a NaN")
		}
		return FloatArg(word), nil
	}
	var v float64
	switch text {
	case "nan":
		return nanOf(dtype), nil
	case "inf":
		v = math.Inf(1)
	case "-inf":
		v = math.Inf(-1)
	default:
		var err error
		if v, err = strconv.ParseFloat(text, floatBits(dtype)); err != nil || len(text) > 64 || strings.ContainsAny(text, "xXnN_pP") {
			return nil, p.expected(at, "a value of "+dtype.String())
		}
	}
	rounded := RoundFloat(dtype, v)
	if rounded != rounded {
		return nil, p.expected(at, "a value that "+dtype.String()+" holds")
	}
	return FloatArg(math.Float64bits(rounded)), nil
}

// nanOf is the one NaN that a dtype's CONST holds when it is made from a NaN.
func nanOf(dtype DType) FloatArg {
	return FloatArg(math.Float64bits(RoundFloat(dtype, math.NaN())))
}

// integer consumes a decimal integer.
func (p *parser) integer() (int64, error) {
	p.skipSpace()
	at := p.pos
	p.take('-')
	for p.pos < len(p.line) && p.line[p.pos] >= '0' && p.line[p.pos] <= '9' {
		p.pos++
	}
	v, err := strconv.ParseInt(p.line[at:p.pos], 10, 64)
	if err != nil || p.pos-at > maxParsedDigits {
		return 0, p.expected(at, "an integer")
	}
	return v, nil
}

// small is an integer 0..max.
func (p *parser) small(max int64, what string) (int, error) {
	at := p.pos
	v, err := p.integer()
	if err != nil {
		return 0, err
	}
	if v < 0 || v > max {
		return 0, p.fail(at, "expected %s in 0..%d, got %d", what, max, v)
	}
	return int(v), nil
}

// maxID bounds slots and ids, so that arithmetic on them cannot overflow.
const maxID = 1 << 30

// quoted consumes a bare word or a quoted string.
func (p *parser) quoted(what string) (string, error) {
	p.skipSpace()
	at := p.pos
	if p.pos < len(p.line) && p.line[p.pos] == '"' {
		text, err := strconv.QuotedPrefix(p.line[p.pos:])
		if err != nil {
			return "", p.expected(at, what)
		}
		p.pos += len(text)
		s, err := strconv.Unquote(text)
		if err != nil {
			return "", p.expected(at, what)
		}
		return s, nil
	}
	if s := p.word(); s != "" {
		return s, nil
	}
	return "", p.expected(at, what)
}

// optionalFormat consumes a packed format's name, if one stands here.
func (p *parser) optionalFormat() (string, error) {
	p.skipSpace()
	if p.pos < len(p.line) && p.line[p.pos] == ']' {
		return "", nil
	}
	return p.quoted("a format name or \"]\"")
}

// paramArg parses what stands behind a param's slot.
func (p *parser) paramArg(slot int) (Arg, error) {
	arg := ParamArg{Slot: slot, Constant: p.keyword(constantWord)}
	var err error
	if !arg.Constant {
		arg.Format, err = p.optionalFormat()
		arg.Constant = err == nil && arg.Format != "" && p.keyword(constantWord)
	}
	return arg, err
}

// arg parses what stands in the brackets.
func (p *parser) arg(kind ArgKind, dtype DType) (Arg, error) {
	switch kind {
	case ArgConst:
		p.skipSpace()
		at := p.pos
		return p.constant(at, p.numberText(), dtype)
	case ArgInt:
		v, err := p.integer()
		return IntArg(v), err
	case ArgAxes:
		return p.axesArg()
	case ArgVar:
		return p.varArg()
	case ArgBuffer:
		id, err := p.integer()
		if err != nil {
			return nil, err
		}
		format, err := p.optionalFormat()
		return BufferArg{ID: id, Format: format}, err
	case ArgParam:
		slot, err := p.small(maxID, "a slot")
		if err != nil {
			return nil, err
		}
		return p.paramArg(slot)
	case ArgTable:
		return p.tableArg()
	case ArgRange:
		id, err := p.small(maxID, "a range id")
		return RangeArg{ID: id}, err
	case ArgValue:
		id, err := p.small(maxID, "a value id")
		return ValueArg{ID: id}, err
	case ArgField:
		return p.fieldArg()
	case ArgReduce:
		return p.reduceArg()
	case ArgStage:
		return p.stageArg()
	}
	return nil, p.expected(p.pos, "an arg")
}

func (p *parser) axesArg() (Arg, error) {
	var axes []int
	for p.skipSpace(); p.pos < len(p.line) && p.line[p.pos] != ']'; p.skipSpace() {
		if len(axes) > 0 && !p.take(',') {
			return nil, p.expected(p.pos, `"," or "]"`)
		}
		axis, err := p.small(255, "an axis")
		if err != nil {
			return nil, err
		}
		axes = append(axes, axis)
	}
	return Axes(axes...), nil
}

func (p *parser) varArg() (Arg, error) {
	name, err := p.quoted("a variable's name")
	if err != nil {
		return nil, err
	}
	v := VarArg{Name: name, Multiple: 1}
	if v.Lo, err = p.integer(); err != nil {
		return nil, err
	}
	if first, second := p.take('.'), p.take('.'); !first || !second {
		return nil, p.expected(p.pos, `".."`)
	}
	if v.Hi, err = p.integer(); err != nil {
		return nil, err
	}
	for {
		p.skipSpace()
		at := p.pos
		switch p.word() {
		case "":
			return v, nil
		case "multiple":
			if v.Multiple, err = p.integer(); err != nil {
				return nil, err
			}
		case "device":
			v.Device = true
		default:
			return nil, p.expected(at, `"multiple", "device" or "]"`)
		}
	}
}

func (p *parser) tableArg() (Arg, error) {
	p.skipSpace()
	at := p.pos
	if p.word() != "base64" || !p.take(':') {
		return nil, p.expected(at, `"base64:" and data`)
	}
	from := p.pos
	end := strings.IndexByte(p.line[from:], ']')
	if end < 0 {
		return nil, p.expected(len(p.line), `"]"`)
	}
	p.pos = from + end
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(p.line[from:p.pos]))
	if err != nil {
		return nil, p.expected(from, "base64 data")
	}
	return TableArg{Data: string(data)}, nil
}

func (p *parser) fieldArg() (Arg, error) {
	format, err := p.quoted("a format name")
	if err != nil {
		return nil, err
	}
	if !p.take('.') {
		return nil, p.expected(p.pos, `"." and a field`)
	}
	field, err := p.quoted("a field name")
	return FieldArg{Format: format, Field: field}, err
}

func (p *parser) reduceArg() (Arg, error) {
	p.skipSpace()
	at := p.pos
	word := p.word()
	if word == "tuple" {
		n, err := p.small(maxParsedSources, "a number of components")
		return ReduceArg{N: n}, err
	}
	op, ok := ParseOp(word)
	if !ok {
		return nil, p.expected(at, `a reduce op or "tuple"`)
	}
	return ReduceArg{Op: op, N: 1}, nil
}

func (p *parser) stageArg() (Arg, error) {
	p.skipSpace()
	at := p.pos
	word := p.word()
	for i, name := range spaceNames {
		if name == word {
			return StageArg{Space: Space(i)}, nil
		}
	}
	return nil, p.expected(at, "one of "+strings.Join(spaceNames[:], ", "))
}
