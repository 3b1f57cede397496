package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// mostYAML bounds a file in YAML: what its parser does with lists in lists takes stack for each, before
// anything here sees how deep they are.
const mostYAML = 1 << 16

// isYAML reports a text that is not JSON by how it begins: what is empty is called JSON.
func isYAML(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] != '{' && text[0] != '['
}

// readYAML makes nodes of a file in YAML: one document, one mapping, of plain lists, mappings and
// values. What YAML has besides (anchors, aliases, tags, merges, several documents) is refused.
func readYAML(text []byte) (n *node, err error) {
	y := &yamlReader{lines: strings.Split(string(text), "\n")}
	if len(text) > mostYAML {
		return nil, &Error{1, 1, "", fmt.Sprintf("%d bytes of YAML, want at most %d (JSON: %d)", len(text), mostYAML, MostBytes)}
	}
	defer func() {
		if r := recover(); r != nil { // the library's, for texts that it did not expect
			n, err = nil, &Error{1, 1, "", fmt.Sprintf("no YAML: %.80q", fmt.Sprint(r))}
		}
	}()
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey()) // they are found here, with a path
	if err != nil {
		return nil, y.syntax(err)
	}
	var root ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			return nil, y.wrong(doc.Body, "", "more after the first document, want the end of the file")
		default:
			root = doc.Body
		}
	}
	if root == nil {
		return nil, &Error{1, 1, "", "a file without anything, want an object"}
	}
	if n, err = y.node(root, "", 0); err == nil && n.kind != isObject {
		err = n.wrong("%s, want an object", n.found())
	}
	return n, err
}

type yamlReader struct{ lines []string }

// start is the token with which a value begins: the library's of a mapping is its first colon.
func start(n ast.Node) *token.Token {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return start(v.Values[0])
		}
	case *ast.MappingValueNode:
		return v.Key.GetToken()
	}
	return n.GetToken()
}

// place is where a token is, within the text whatever the library says.
func (y *yamlReader) place(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	line := min(max(t.Position.Line, 1), len(y.lines))
	rest, column := y.lines[line-1], 1
	for range t.Position.Column - 1 { // it counts characters
		_, size := utf8.DecodeRuneInString(rest)
		rest, column = rest[size:], column+size
	}
	return place{line, column}
}

func (y *yamlReader) wrong(n ast.Node, path, format string, args ...any) error {
	at := y.place(start(n))
	return &Error{at.line, at.column, path, fmt.Sprintf(format, args...)}
}

// syntax is an error of the library in one line.
func (y *yamlReader) syntax(err error) error {
	at, text := place{1, 1}, err.Error()
	if e, ok := err.(yaml.Error); ok {
		at, text = y.place(e.GetToken()), e.GetMessage()
	}
	text, _, _ = strings.Cut(strings.ToValidUTF8(text, "?"), "\n")
	return &Error{at.line, at.column, "", fmt.Sprintf("no YAML: %.100s", text)}
}

// node reads a value.
func (y *yamlReader) node(from ast.Node, path string, depth int) (*node, error) {
	n := &node{at: y.place(start(from)), path: path, kind: isScalar}
	if depth > mostDepth {
		return nil, n.wrong("lists and objects %d deep, want at most %d", depth, mostDepth)
	}
	switch v := from.(type) {
	case *ast.MappingNode:
		n.kind = isObject
		return n, y.object(n, v.Values, depth)
	case *ast.MappingValueNode: // a mapping with one member
		n.kind = isObject
		return n, y.object(n, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		n.kind = isList
		for i, item := range v.Values {
			read, err := y.node(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			n.list = append(n.list, read)
		}
	case *ast.StringNode:
		n.value = v.Value
	case *ast.LiteralNode:
		n.value = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		n.value = json.Number(from.GetToken().Value)
	case *ast.BoolNode:
		n.value = v.Value
	case *ast.NullNode:
	default:
		return nil, n.wrong("%s of YAML, want a plain value, list or mapping", strings.ToLower(from.Type().String()))
	}
	return n, nil
}

// object reads the members of a mapping.
func (y *yamlReader) object(n *node, members []*ast.MappingValueNode, depth int) error {
	known := make(map[string]bool)
	for _, m := range members {
		key, ok := m.Key.(*ast.StringNode)
		if !ok {
			return y.wrong(m.Key, n.path, "%s as a name, want a string", strings.ToLower(m.Key.Type().String()))
		}
		path := fmt.Sprintf("%.60s", key.Value)
		if n.path != "" {
			path = n.path + "." + path
		}
		if known[key.Value] {
			return y.wrong(key, path, "is there twice, want it once")
		}
		known[key.Value] = true
		value, err := y.node(m.Value, path, depth+1)
		if err != nil {
			return err
		}
		value.at = y.place(key.GetToken())
		n.members = append(n.members, member{key.Value, value})
	}
	return nil
}
