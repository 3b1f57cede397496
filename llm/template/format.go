package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// formatWidth bounds widths and precisions in formats.
const formatWidth = 1 << 10

// format is Python's "%": the conversions that templates use.
func (r *run) format(t Text, v Value) (Value, error) {
	values := []Value{v}
	if l, ok := v.(*List); ok && l.tuple {
		values = l.items
	}
	mapping, named := v.(*Dict)
	var parts []Text
	at, next := 0, 0
	for {
		i := strings.IndexByte(t.s[at:], '%')
		if i < 0 {
			break
		}
		parts = append(parts, t.slice(at, at+i))
		at += i + 1
		spec, n, err := readConversion(t.s[at:])
		if err != nil {
			return nil, err
		}
		at += n
		if spec.verb == '%' {
			parts = append(parts, Text{s: "%"})
			continue
		}
		var value Value
		switch {
		case spec.key != "" && named:
			if value, named = mapping.Get(spec.key); !named {
				return nil, fmt.Errorf("the format names the key %q, which is missing", clip(spec.key))
			}
		case next < len(values):
			value = values[next]
			next++
		default:
			return nil, errors.New("not enough arguments for format string")
		}
		part, err := r.convert(spec, value)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	list, _ := v.(*List) // Python takes it for a mapping, of which not all keys need be used
	if next < len(values) && !named && (list == nil || list.tuple) {
		return nil, errors.New("not all arguments converted during string formatting")
	}
	return r.join(append(parts, t.slice(at, len(t.s)))...)
}

// conversion is one "%..".
type conversion struct {
	key   string
	flags string // flags, width and precision as Go's fmt reads them too
	verb  byte
}

func readConversion(s string) (c conversion, n int, err error) {
	if strings.HasPrefix(s, "(") {
		end := strings.IndexByte(s, ')')
		if end < 0 {
			return c, 0, errors.New("incomplete format key")
		}
		c.key, n = s[1:end], end+1
	}
	from := n
	for n < len(s) && strings.IndexByte("-+ #0123456789.", s[n]) >= 0 {
		n++
	}
	if n == len(s) {
		return c, n, errors.New("incomplete format")
	}
	c.flags, c.verb = s[from:n], s[n]
	for _, digits := range strings.FieldsFunc(c.flags, func(r rune) bool { return r < '0' || r > '9' }) {
		if w, err := strconv.Atoi(digits); err != nil || w > formatWidth {
			return c, n, fmt.Errorf("a width of %s in a format, want at most %d", clip(digits), formatWidth)
		}
	}
	return c, n + 1, nil
}

func (r *run) convert(c conversion, v Value) (Text, error) {
	f, i, isInt, isNumber := number(v)
	switch c.verb {
	case 's', 'r':
		t, err := r.text(v)
		if c.verb == 'r' {
			var b builder
			err = r.represent(&b, v, 0)
			t = b.text()
		}
		if c.flags != "" {
			t = Text{s: fmt.Sprintf("%"+c.flags+"s", t.s)}.from(len(t.outside) > 0)
		}
		return t, err
	case 'd', 'i', 'x', 'X', 'o':
		if !isNumber {
			break
		}
		if !isInt {
			i = int64(f)
		}
		verb := string(c.verb)
		if verb == "i" {
			verb = "d"
		}
		return Text{s: fmt.Sprintf("%"+c.flags+verb, i)}, nil
	case 'f', 'F', 'e', 'E', 'g', 'G':
		if isNumber {
			return Text{s: fmt.Sprintf("%"+c.flags+string(c.verb), f)}, nil
		}
	default:
		return Text{}, fmt.Errorf("unsupported format character %q", c.verb)
	}
	return Text{}, wrongType(v, fmt.Sprintf("%%%c format: a real number is required, not %s", c.verb, typeName(v)))
}

// formatMethod is str.format with plain fields: {}, {0}, {name}.
func formatMethod(r *run, v Value, a arguments) (Value, error) {
	t := v.(Text)
	var parts []Text
	at, next := 0, 0
	for at < len(t.s) {
		i := strings.IndexAny(t.s[at:], "{}")
		if i < 0 {
			break
		}
		parts = append(parts, t.slice(at, at+i))
		at += i
		if strings.HasPrefix(t.s[at:], "{{") || strings.HasPrefix(t.s[at:], "}}") {
			parts = append(parts, t.slice(at, at+1))
			at += 2
			continue
		}
		end := strings.IndexByte(t.s[at:], '}')
		if t.s[at] == '}' || end < 0 {
			return nil, errors.New("single '{' or '}' encountered in format string")
		}
		field := t.s[at+1 : at+end]
		at += end + 1
		n, name := -1, field
		if field == "" {
			n = next
			next++
		} else if k, err := strconv.Atoi(field); err == nil {
			n, name = k, ""
		}
		value, ok := a.get(n, name)
		if !ok {
			return nil, fmt.Errorf("the field {%s} of a format has no value, or is not of a form known here", clip(field))
		}
		part, err := r.text(value)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return r.join(append(parts, t.slice(at, len(t.s)))...)
}
