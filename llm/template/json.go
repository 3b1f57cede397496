package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonDepth bounds how deep JSON from outside is nested.
const jsonDepth = 256

// FromJSON reads a JSON text into values; keys keep their order, and all texts are from
// outside. A number that is no int64 becomes a float64.
func FromJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, jsonError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the JSON value at byte %d", d.InputOffset())
	}
	return v, nil
}

func jsonError(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON text ends too early")
	}
	return err
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > jsonDepth {
		return nil, fmt.Errorf("JSON nested deeper than %d", jsonDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return readList(d, depth)
		}
		return readDict(d, depth)
	case json.Number:
		return jsonNumber(t.String())
	case string:
		return Outside(t), nil
	case bool:
		return t, nil
	}
	return nil, nil
}

func jsonNumber(text string) (Value, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", clip(text))
	}
	return f, nil
}

func readList(d *json.Decoder, depth int) (Value, error) {
	list := NewList()
	for d.More() {
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, v)
	}
	_, err := d.Token()
	return list, err
}

func readDict(d *json.Decoder, depth int) (Value, error) {
	dict := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the decoder lets nothing else be a key
		dict.set(Outside(name), v)
	}
	_, err := d.Token()
	return dict, err
}

// jsonWriter is the filter tojson.
type jsonWriter struct {
	run       *run
	out       builder
	indent    string // of one level; with lines
	lines     bool
	item, key string // separators
	ascii     bool
	sorted    bool
}

// toJSON writes a value as Python's json.dumps does, but leaves what is not ASCII.
func toJSON(r *run, v Value, a arguments) (Value, error) {
	w := &jsonWriter{run: r, item: ", ", key: ": "}
	switch indent := a.or(1, "indent", nil).(type) {
	case nil:
	case int64:
		if indent > 64 {
			return nil, fmt.Errorf("indent is %d, want at most 64", indent)
		}
		w.indent, w.lines, w.item = strings.Repeat(" ", int(max(indent, 0))), true, ","
	case Text:
		w.indent, w.lines, w.item = indent.s, true, ","
	default:
		return nil, fmt.Errorf("indent is of type %s, want a number", typeName(indent))
	}
	w.ascii = truth(a.or(0, "ensure_ascii", false))
	w.sorted = truth(a.or(3, "sort_keys", false))
	// With a first argument that is a number, the caller means Jinja's own tojson(indent).
	if n, ok := a.get(0, ""); ok && len(a.positional) == 1 {
		if i, isInt := n.(int64); isInt {
			w.ascii, w.indent, w.lines, w.item = false, strings.Repeat(" ", int(min(max(i, 0), 64))), true, ","
		}
	}
	if s, ok := a.or(2, "separators", nil).(*List); ok && len(s.items) == 2 {
		item, ok1 := s.items[0].(Text)
		key, ok2 := s.items[1].(Text)
		if !ok1 || !ok2 {
			return nil, errors.New("separators are no texts")
		}
		w.item, w.key = item.s, key.s
	}
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return w.out.text(), nil
}

func (w *jsonWriter) write(v Value, depth int) error {
	if err := errors.Join(w.run.spend(1), w.run.deeper(depth), w.run.fits(w.out.len())); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		w.out.addString("null")
	case bool:
		w.out.addString(strconv.FormatBool(v))
	case int64:
		w.out.addString(strconv.FormatInt(v, 10))
	case float64:
		w.out.addString(strings.NewReplacer("nan", "NaN", "inf", "Infinity").Replace(floatText(v)))
	case Text:
		return w.quote(v)
	case *List:
		return w.list(v, depth)
	case *Dict:
		return w.dict(v, depth)
	case undefined:
		return fmt.Errorf("an undefined value is no JSON: %s", v.text)
	default:
		return fmt.Errorf("a value of type %s is no JSON", typeName(v))
	}
	return nil
}

// line begins a new line where there are lines.
func (w *jsonWriter) line(depth int) error {
	if !w.lines {
		return nil
	}
	w.out.addString("\n")
	for range depth {
		w.out.addString(w.indent)
	}
	return w.run.fits(w.out.len())
}

func (w *jsonWriter) list(l *List, depth int) error {
	if len(l.items) == 0 {
		w.out.addString("[]")
		return nil
	}
	w.out.addString("[")
	for i, item := range l.items {
		if i > 0 {
			w.out.addString(w.item)
		}
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := w.write(item, depth+1); err != nil {
			return err
		}
	}
	err := w.line(depth)
	w.out.addString("]")
	return err
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.out.addString("{}")
		return nil
	}
	if w.sorted {
		var err error
		if d, err = w.run.sortedDict(d); err != nil {
			return err
		}
	}
	w.out.addString("{")
	for i, key := range d.keys {
		if i > 0 {
			w.out.addString(w.item)
		}
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := w.name(key); err != nil {
			return err
		}
		w.out.addString(w.key)
		if err := w.write(d.values[i], depth+1); err != nil {
			return err
		}
	}
	err := w.line(depth)
	w.out.addString("}")
	return err
}

// name writes a key: always a text in JSON.
func (w *jsonWriter) name(key Value) error {
	switch k := key.(type) {
	case Text:
		return w.quote(k)
	case nil:
		return w.quote(Text{s: "null"})
	case bool:
		return w.quote(Text{s: strconv.FormatBool(k)})
	case int64, float64:
		return w.quote(Text{s: scalar(k)})
	}
	return fmt.Errorf("keys must be str, int, float, bool or None, not %s", typeName(key))
}

// jsonEscapes are those of one letter.
var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func (w *jsonWriter) quote(t Text) error {
	if err := w.run.spendText(len(t.s)); err != nil {
		return err
	}
	w.out.addString(`"`)
	w.out.add(t.mapRunes(func(_, c rune) string {
		if e, ok := jsonEscapes[c]; ok {
			return e
		}
		switch {
		case c < 0x20, w.ascii && c >= 0x7f && c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		case w.ascii && c >= 0x10000:
			c -= 0x10000
			return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		case utf8.ValidRune(c):
			return string(c)
		}
		return "\uFFFD"
	}))
	w.out.addString(`"`)
	return w.run.fits(w.out.len())
}
