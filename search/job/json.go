package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Bounds of a file.
const (
	MostBytes = 1 << 20
	mostDepth = 8 // of lists and objects in one another
)

// place is where in a file something is.
type place struct{ line, column int } // from 1; columns are bytes

// Error is what is wrong with a job file.
type Error struct {
	Line, Column int
	Path         string // "steps[1]"; empty for the whole
	Text         string // what was found, and what was expected
}

// Error is "LINE:COLUMN: PATH: TEXT".
func (e *Error) Error() string {
	path := e.Path
	if path != "" {
		path += ": "
	}
	return fmt.Sprintf("%d:%d: %s%s", e.Line, e.Column, path, e.Text)
}

// node is a value of a file.
type node struct {
	at   place
	path string

	value   any // string, json.Number, bool or nil, where it is no list and no object
	list    []*node
	members []member
	kind    kind
}

type member struct {
	name  string
	value *node
}

// kind is what a value is.
type kind string

const (
	isObject kind = "an object"
	isList   kind = "a list"
	isScalar kind = "a value"
)

// wrong is an error at a value.
func (n *node) wrong(format string, args ...any) error {
	return &Error{n.at.line, n.at.column, n.path, fmt.Sprintf(format, args...)}
}

// found names a value for an error.
func (n *node) found() string {
	if n.kind != isScalar {
		return string(n.kind)
	}
	switch v := n.value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%.60q", v)
	default:
		return fmt.Sprintf("%.60v", v)
	}
}

// reader makes nodes of a text.
type reader struct {
	text []byte
	in   *json.Decoder
}

// read reads a file that is one object and nothing else, in JSON or YAML.
func read(text []byte) (*node, error) {
	r := &reader{text: text, in: json.NewDecoder(bytes.NewReader(text))}
	r.in.UseNumber()
	switch {
	case len(text) > MostBytes:
		return nil, &Error{1, 1, "", fmt.Sprintf("%d bytes, want at most %d", len(text), MostBytes)}
	case !utf8.Valid(text):
		return nil, &Error{1, 1, "", "no UTF-8 text, want JSON or YAML"}
	case isYAML(text):
		return readYAML(text)
	}
	n, err := r.node("", 0)
	if err != nil {
		return nil, err
	}
	if n.kind != isObject {
		return nil, n.wrong("%s, want an object", n.found())
	}
	end := r.next()
	if _, err := r.in.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{end.line, end.column, "", "more after the object, want the end of the file"}
	}
	return n, nil
}

// next is where the next token is: after what separates it from the last one.
func (r *reader) next() place {
	at := int(r.in.InputOffset())
	for at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[at]) >= 0 {
		at++
	}
	return r.placeOf(at)
}

func (r *reader) placeOf(at int) place {
	before := r.text[:min(max(at, 0), len(r.text))]
	line := bytes.LastIndexByte(before, '\n')
	return place{1 + bytes.Count(before, []byte{'\n'}), len(before) - line}
}

// node reads a value.
func (r *reader) node(path string, depth int) (*node, error) {
	n := &node{at: r.next(), path: path, kind: isScalar}
	token, err := r.in.Token()
	if err != nil {
		return nil, r.syntax(err)
	}
	if depth > mostDepth {
		return nil, n.wrong("lists and objects %d deep, want at most %d", depth, mostDepth)
	}
	switch token {
	case json.Delim('['):
		n.kind = isList
		err = r.items(n, depth)
	case json.Delim('{'):
		n.kind = isObject
		err = r.object(n, depth)
	default:
		n.value = token
	}
	return n, err
}

func (r *reader) items(n *node, depth int) error {
	for r.in.More() {
		item, err := r.node(fmt.Sprintf("%s[%d]", n.path, len(n.list)), depth+1)
		if err != nil {
			return err
		}
		n.list = append(n.list, item)
	}
	return r.end()
}

func (r *reader) object(n *node, depth int) error {
	known := make(map[string]bool)
	for r.in.More() {
		at := r.next()
		token, err := r.in.Token()
		if err != nil {
			return r.syntax(err)
		}
		name, _ := token.(string) // the decoder knows nothing else in this place
		path := fmt.Sprintf("%.60s", name)
		if n.path != "" {
			path = n.path + "." + path
		}
		if known[name] {
			return &Error{at.line, at.column, path, "is there twice, want it once"}
		}
		known[name] = true
		value, err := r.node(path, depth+1)
		if err != nil {
			return err
		}
		value.at = at
		n.members = append(n.members, member{name, value})
	}
	return r.end()
}

// end reads the bracket that ends a list or object.
func (r *reader) end() error {
	if _, err := r.in.Token(); err != nil {
		return r.syntax(err)
	}
	return nil
}

// syntax is an error of the text itself.
func (r *reader) syntax(err error) error {
	at := r.next()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = r.placeOf(len(r.text)), errors.New("the file ends, want more")
	}
	return &Error{at.line, at.column, "", fmt.Sprintf("no JSON: %v", err)}
}
