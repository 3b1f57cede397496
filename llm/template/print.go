package template

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// text is what a value prints as: Python's str.
func (r *run) text(v Value) (Text, error) {
	switch v := v.(type) {
	case Text:
		return v, nil
	case undefined:
		return Text{}, nil
	case *List, *Dict, *namespace:
		var b builder
		err := r.represent(&b, v, 0)
		return b.text(), err
	}
	return Text{s: scalar(v)}, nil
}

// scalar prints what is neither text nor made of other values.
func scalar(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case *function:
		return "<function " + v.name + ">"
	}
	return "<" + typeName(v) + ">"
}

// floatText is Python's: the shortest digits that mean the number, with a point or an
// exponent.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// represent writes a value as Python's repr does.
func (r *run) represent(b *builder, v Value, depth int) error {
	if err := errors.Join(r.spend(1), r.deeper(depth), r.fits(b.len())); err != nil {
		return err
	}
	switch v := v.(type) {
	case Text:
		return r.quote(b, v)
	case *List:
		return r.representList(b, v, depth)
	case *Dict:
		return r.representDict(b, v, depth)
	case *namespace:
		b.addString("<Namespace ")
		if err := r.representDict(b, v.Dict, depth); err != nil {
			return err
		}
		b.addString(">")
	case undefined:
		b.addString("Undefined")
	default:
		b.addString(scalar(v))
	}
	return nil
}

func (r *run) representList(b *builder, v *List, depth int) error {
	open, closing := "[", "]"
	if v.tuple {
		open, closing = "(", ")"
		if len(v.items) == 1 {
			closing = ",)"
		}
	}
	b.addString(open)
	for i, item := range v.items {
		if i > 0 {
			b.addString(", ")
		}
		if err := r.represent(b, item, depth+1); err != nil {
			return err
		}
	}
	b.addString(closing)
	return nil
}

func (r *run) representDict(b *builder, d *Dict, depth int) error {
	b.addString("{")
	for i, key := range d.keys {
		if i > 0 {
			b.addString(", ")
		}
		if err := r.represent(b, key, depth+1); err != nil {
			return err
		}
		b.addString(": ")
		if err := r.represent(b, d.values[i], depth+1); err != nil {
			return err
		}
	}
	b.addString("}")
	return nil
}

// quote writes a text as Python's repr does.
func (r *run) quote(b *builder, t Text) error {
	if err := r.spendText(len(t.s)); err != nil {
		return err
	}
	mark := "'"
	if strings.Contains(t.s, "'") && !strings.Contains(t.s, `"`) {
		mark = `"`
	}
	b.addString(mark)
	b.add(t.mapRunes(func(_, c rune) string {
		switch {
		case string(c) == mark || c == '\\':
			return `\` + string(c)
		case c == '\n':
			return `\n`
		case c == '\r':
			return `\r`
		case c == '\t':
			return `\t`
		case c == ' ' || unicode.IsPrint(c):
			return string(c)
		}
		digits := strconv.FormatInt(int64(c), 16)
		pad := func(n int) string { return strings.Repeat("0", n-len(digits)) + digits }
		switch {
		case c < 0x100:
			return `\x` + pad(2)
		case c < 0x10000:
			return `\u` + pad(4)
		}
		return `\U` + pad(8)
	}))
	b.addString(mark)
	return nil
}
