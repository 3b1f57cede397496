package template

import (
	"slices"
	"strconv"
)

// Expressions, from the loosest binding to the tightest; the order is Jinja's.

// tuple reads an expression, or several with commas between.
func (p *parser) tuple() (expression, error) { return p.tupleOf(p.expression) }

func (p *parser) tupleOf(part func() (expression, error)) (expression, error) {
	at := position{p.peek().line}
	first, err := part()
	if err != nil || !p.is(",") {
		return first, err
	}
	items := []expression{first}
	for p.skip(",") {
		if t := p.peek(); t.kind == tokenClose || t.kind == tokenOperator && t.text == ")" {
			break
		}
		next, err := part()
		if err != nil {
			return nil, err
		}
		items = append(items, next)
	}
	return &listExpression{at, items, true}, nil
}

// expression reads one expression: yes if condition else no.
func (p *parser) expression() (e expression, err error) {
	err = p.nested(func() error {
		e, err = p.choice()
		return err
	})
	return e, err
}

func (p *parser) choice() (expression, error) {
	at := position{p.peek().line}
	e, err := p.or()
	for err == nil && p.skip("if") {
		c := &choiceExpression{position: at, yes: e}
		if c.condition, err = p.or(); err != nil {
			return nil, err
		}
		if p.skip("else") {
			if c.no, err = p.expression(); err != nil {
				return nil, err
			}
		}
		e = c
	}
	return e, err
}

// binary reads operands of one strength, with the operators between.
func (p *parser) binary(operand func() (expression, error), operators ...string) (expression, error) {
	left, err := operand()
	for err == nil && slices.ContainsFunc(operators, p.is) {
		t := p.take()
		e := &binaryExpression{position: position{t.line}, operator: t.text, left: left}
		if e.right, err = operand(); err != nil {
			return nil, err
		}
		left = e
	}
	return left, err
}

func (p *parser) or() (expression, error)  { return p.binary(p.and, "or") }
func (p *parser) and() (expression, error) { return p.binary(p.not, "and") }

func (p *parser) not() (e expression, err error) {
	at := position{p.peek().line}
	if !p.skip("not") {
		return p.compare()
	}
	err = p.nested(func() error {
		e, err = p.not()
		return err
	})
	return &unaryExpression{at, "not", e}, err
}

// comparisons are the operators of a chain; "not in" is two words.
var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in", "not"}

func (p *parser) compare() (expression, error) {
	c := &compareExpression{position: position{p.peek().line}}
	var err error
	if c.first, err = p.sum(); err != nil {
		return nil, err
	}
	for slices.ContainsFunc(comparisons, p.is) {
		operator := p.peek().text
		if operator == "not" {
			if following := p.tokens[p.next+1]; following.kind != tokenName || following.text != "in" {
				break
			}
			p.next++
			operator = "not in"
		}
		p.next++
		other, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.operators, c.others = append(c.operators, operator), append(c.others, other)
	}
	if len(c.operators) == 0 {
		return c.first, nil
	}
	return c, nil
}

func (p *parser) sum() (expression, error)     { return p.binary(p.concat, "+", "-") }
func (p *parser) concat() (expression, error)  { return p.binary(p.product, "~") }
func (p *parser) product() (expression, error) { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() (expression, error) {
	return p.binary(func() (expression, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filtered bool) (e expression, err error) {
	t := p.peek()
	if t.kind == tokenOperator && (t.text == "-" || t.text == "+") {
		p.next++
		err = p.nested(func() error {
			e, err = p.unary(false)
			return err
		})
		e = &unaryExpression{position{t.line}, t.text, e}
	} else {
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	if err == nil && filtered {
		e, err = p.filters(e)
	}
	return e, err
}

// words are names with a value of their own.
var words = map[string]Value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() (expression, error) {
	t := p.peek()
	at := position{t.line}
	switch t.kind {
	case tokenName:
		p.next++
		if v, ok := words[t.text]; ok {
			return &constant{at, v}, nil
		}
		return &nameExpression{at, t.text}, nil
	case tokenString:
		text := ""
		for p.peek().kind == tokenString { // neighbours are one string
			text += p.take().text
		}
		return &constant{at, Inside(text)}, nil
	case tokenInt, tokenFloat:
		return p.numeral(at)
	case tokenOperator:
		switch t.text {
		case "(":
			return p.bracket(at)
		case "[":
			p.next++
			items, err := p.items("]")
			return &listExpression{at, items, false}, err
		case "{":
			p.next++
			return p.dict(at)
		}
	}
	return nil, p.errorf("got %s, want a value", t.describe())
}

func (p *parser) numeral(at position) (expression, error) {
	t := p.peek()
	if t.kind == tokenFloat {
		v, _ := strconv.ParseFloat(t.text, 64) // what is out of range is infinite, as in Python
		p.next++
		return &constant{at, v}, nil
	}
	base, digits := 10, t.text
	if len(t.text) > 1 && t.text[1] > '9' {
		base = 0
	}
	v, err := strconv.ParseInt(digits, base, 64)
	if err != nil {
		return nil, p.errorf("the number %s is out of range", clip(t.text))
	}
	p.next++
	return &constant{at, v}, nil
}

// bracket reads what stands in round brackets: a value or a tuple.
func (p *parser) bracket(at position) (expression, error) {
	p.next++
	if p.skip(")") {
		return &listExpression{at, nil, true}, nil
	}
	e, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return e, p.want(")")
}

// items reads expressions with commas between, up to a bracket.
func (p *parser) items(closing string) ([]expression, error) {
	var items []expression
	for !p.is(closing) {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
		if !p.skip(",") {
			break
		}
	}
	return items, p.want(closing)
}

func (p *parser) dict(at position) (expression, error) {
	d := &dictExpression{position: at}
	for !p.is("}") {
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.want(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
		if !p.skip(",") {
			break
		}
	}
	return d, p.want("}")
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e expression) (expression, error) {
	for {
		var err error
		switch {
		case p.is("."):
			e, err = p.attribute(e)
		case p.is("["):
			e, err = p.subscript(e)
		case p.is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) attribute(e expression) (expression, error) {
	at := position{p.take().line}
	if p.peek().kind == tokenInt {
		key, err := p.numeral(at)
		return &itemExpression{at, e, key}, err
	}
	name, err := p.name("an attribute")
	return &attributeExpression{at, e, name}, err
}

func (p *parser) subscript(e expression) (expression, error) {
	at := position{p.take().line}
	parts := [3]expression{}
	n := 0
	for ; n < 3; n++ {
		if !p.is(":") && !p.is("]") {
			var err error
			if parts[n], err = p.expression(); err != nil {
				return nil, err
			}
		}
		if !p.skip(":") {
			break
		}
	}
	if err := p.want("]"); err != nil {
		return nil, err
	}
	if n > 0 {
		return &sliceExpression{at, e, parts[0], parts[1], parts[2]}, nil
	}
	if parts[0] == nil {
		return nil, p.errorf("a subscript without a key")
	}
	return &itemExpression{at, e, parts[0]}, nil
}

func (p *parser) call(callee expression) (expression, error) {
	at := position{p.peek().line}
	list, err := p.arguments()
	return &callExpression{at, callee, list}, err
}

// arguments reads those of a call, with their brackets.
func (p *parser) arguments() (argumentList, error) {
	var list argumentList
	if err := p.want("("); err != nil {
		return list, err
	}
	for !p.is(")") {
		var err error
		switch named := p.peek().kind == tokenName && p.tokens[p.next+1].kind == tokenOperator && p.tokens[p.next+1].text == "="; {
		case p.skip("*"):
			list.list, err = p.expression()
		case p.skip("**"):
			list.dict, err = p.expression()
		case named:
			name := p.take().text
			p.next++
			var value expression
			value, err = p.expression()
			list.named = append(list.named, namedExpression{name, value})
		default:
			if len(list.named) > 0 || list.dict != nil {
				return list, p.errorf("an argument without a name after one that has a name")
			}
			var value expression
			value, err = p.expression()
			list.positional = append(list.positional, value)
		}
		if err != nil {
			return list, err
		}
		if !p.skip(",") {
			break
		}
	}
	return list, p.want(")")
}

// filters reads filters, tests and calls of their results.
func (p *parser) filters(e expression) (expression, error) {
	for {
		at := position{p.peek().line}
		switch {
		case p.skip("|"):
			f, err := p.filterCall("a filter")
			if err != nil {
				return nil, err
			}
			e = &filterExpression{at, e, f}
		case p.skip("is"):
			t := &testExpression{position: at, value: e, negated: p.skip("not")}
			var err error
			if t.filterCall, err = p.test(); err != nil {
				return nil, err
			}
			e = t
		case p.is("("):
			var err error
			if e, err = p.call(e); err != nil {
				return nil, err
			}
		default:
			return e, nil
		}
	}
}

// filterCall reads a filter's name and arguments.
func (p *parser) filterCall(what string) (f filterCall, err error) {
	if f.name, err = p.name(what); err != nil {
		return f, err
	}
	if p.is("(") {
		f.argumentList, err = p.arguments()
	}
	return f, err
}

// testName reads a name, or an operator's sign, which some tests have.
func (p *parser) testName() (string, error) {
	if t := p.peek(); t.kind == tokenOperator && slices.Contains(comparisons, t.text) {
		return p.take().text, nil
	}
	return p.name("a test")
}

// test reads a test's name and its arguments; one argument needs no brackets.
func (p *parser) test() (t filterCall, err error) {
	if t.name, err = p.testName(); err != nil {
		return t, err
	}
	if p.is("(") {
		t.argumentList, err = p.arguments()
		return t, err
	}
	next := p.peek()
	takes := next.kind == tokenString || next.kind == tokenInt || next.kind == tokenFloat || p.is("[") || p.is("{") ||
		next.kind == tokenName && !slices.Contains([]string{"else", "or", "and", "if", "in", "not", "recursive"}, next.text)
	if !takes {
		return t, nil
	}
	if next.text == "is" && next.kind == tokenName {
		return t, p.errorf("tests cannot follow one another: use \"and\"")
	}
	argument, err := p.primary()
	if err == nil {
		argument, err = p.postfix(argument)
	}
	t.positional = []expression{argument}
	return t, err
}
