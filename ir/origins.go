package ir

import (
	"bufio"
	"io"
	"strconv"
)

// origins says for which node of a first graph each node of an arena was made. Nothing
// that is compiled depends on it: it is there for who looks at a compilation.
type origins struct {
	of      NodeMap[*UOp]
	current *UOp // for which nodes are made; nil: not known
}

// Trace notes from now on for which node of the graph under root each new node is made.
// Forms are printed with it then, and a node has one name in all of them.
func (a *Arena) Trace(root *UOp) {
	a.origins = new(origins)
	for _, u := range Toposort(root) {
		if u.Op != OpConst && u.Op != OpSink {
			a.origins.of.Set(u, u)
		}
	}
}

// Origin is the name of the node of the traced graph for which u was made; 0: not known.
func (a *Arena) Origin(u *UOp) int {
	if a.origins == nil {
		return 0
	}
	if from := a.origins.of.Of(u); from != nil {
		return int(from.number)
	}
	return 0
}

// MakeFor has new nodes made for what u was made for, until what it returns is given to
// MakeAgainFor.
func (a *Arena) MakeFor(u *UOp) (before *UOp) {
	if a.origins == nil {
		return nil
	}
	before = a.origins.current
	if from := a.origins.of.Of(u); from != nil {
		a.origins.current = from
	}
	return before
}

// MakeAgainFor ends what MakeFor began.
func (a *Arena) MakeAgainFor(before *UOp) {
	if a.origins != nil {
		a.origins.current = before
	}
}

// made notes a new node. Where nobody says for what, it is for the last of the nodes for
// which its sources are.
func (o *origins) made(u *UOp) {
	from := o.current
	if from == nil {
		for _, s := range u.Src {
			if f := o.of.Of(s); f != nil && (from == nil || f.number > from.number) {
				from = f
			}
		}
	}
	if from != nil && u.Op != OpConst && u.Op != OpSink {
		o.of.Set(u, from)
	}
}

// Became notes that a node is what another became: it is made for the same from now on. Of
// nodes that are equal in two kernels, the one that was dealt with last counts.
func (a *Arena) Became(u, to *UOp) {
	if a.origins == nil || u == to || to.Op == OpConst || to.Op == OpSink {
		return
	}
	if from := a.origins.of.Of(u); from != nil {
		a.origins.of.Set(to, from)
	}
}

// foundFor notes what was found for a node: a new one, or one that was there for itself and
// stays that.
func (a *Arena) foundFor(u, to *UOp) {
	if a.origins != nil && !a.origins.of.Has(to) {
		a.Became(u, to)
	}
}

// Origins are those of some nodes at one time.
type Origins map[*UOp]*UOp

// Of is the name of the node of the graph for which u was made; 0: not known.
func (o Origins) Of(u *UOp) int {
	if from := o[u]; from != nil {
		return int(from.number)
	}
	return 0
}

// OriginsUnder are the origins of the nodes under root as they are now, nil where nothing is
// traced. Each kernel keeps its own, since kernels share nodes.
func (a *Arena) OriginsUnder(root *UOp) Origins {
	if a.origins == nil {
		return nil
	}
	o := make(Origins)
	for _, u := range Toposort(root) {
		if from := a.origins.of.Of(u); from != nil {
			o[u] = from
		}
	}
	return o
}

// TakeOrigins has nodes be made for what they were when o was taken.
func (a *Arena) TakeOrigins(o Origins) {
	for u, from := range o {
		a.origins.of.Set(u, from)
	}
}

// PrintNodes is the function PrintNodes. Of an arena that is traced, a node has its number
// in the arena as its name, and a comment that says for which node it was made.
func (a *Arena) PrintNodes(w io.Writer, roots ...*UOp) (names map[*UOp]int, err error) {
	if a.origins == nil {
		return PrintNodes(w, roots...)
	}
	name := func(u *UOp, _ int) int { return int(u.number) }
	return printNodes(w, name, a.printOrigin, roots)
}

func (a *Arena) printOrigin(out *bufio.Writer, u *UOp) {
	if from := a.Origin(u); from != 0 {
		out.WriteString(OriginMark)
		out.WriteString(strconv.Itoa(from))
	}
}

// OriginMark begins the comment at the end of a line that says for which node of the graph
// the line was made.
const OriginMark = " # from %"

// Text is the function Text, as PrintNodes of the arena prints nodes.
func (a *Arena) Text(root *UOp) string {
	return textOf(func(w io.Writer) error {
		_, err := a.PrintNodes(w, root)
		return err
	})
}
