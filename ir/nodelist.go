package ir

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// A form with several roots prints them as one list of nodes, in the text form
// of graphs, and names nodes of the list in lines of its own.

// PrintNodes writes the nodes under several roots as one list, each node once,
// and returns their names: node n is %n in the text. A CONST has a line only if
// it is a root.
func PrintNodes(w io.Writer, roots ...*UOp) (names map[*UOp]int, err error) {
	out := bufio.NewWriter(w)
	names = make(map[*UOp]int)
	for _, u := range Toposort(roots...) {
		if u.Op == OpConst && !slices.Contains(roots, u) {
			continue
		}
		names[u] = len(names)
		if err := printNode(out, u, names); err != nil {
			return nil, err
		}
	}
	return names, out.Flush()
}

// ParseNodes reads a list of nodes into an arena and returns them by name,
// without the %. Lines that begin with another byte than % are passed over.
func ParseNodes(a *Arena, text string) (map[string]*UOp, error) {
	p := &parser{arena: a, names: make(map[string]*UOp)}
	for line := range strings.SplitSeq(text, "\n") {
		p.number++
		p.line, p.pos = strings.TrimSuffix(line, "\r"), 0
		if p.skipSpace(); p.atEnd() || p.line[p.pos] != '%' {
			continue
		}
		if _, err := p.node(); err != nil {
			return nil, err
		}
	}
	return p.names, nil
}
