package state

import (
	"fmt"
	"slices"
	"strings"

	"tgc/ir"
	"tgc/schedule/expr"
)

// The text form of this stage's state between two passes:
//
//	values 12 ranges 4107
//	%0 = range idx [4097] 64
//	...
//	version 0 buffer %3 param %4
//	version 1 buffer %3 param %5 previous 0 writer 7
//	# v7[64] = ...
//	value 7 node %6 ranges %0 body %9 index %0 target 1
//	launch
//	kernel 7
//
// The first line has the number of values that rangeify made and the last id
// given to a range. One list of nodes serves all values. A version is a state of
// a buffer, a value what one or more kernels compute, see the types; words that
// are left out have their usual meaning: no previous version, loops that are the
// ranges, no mark. Launches are there from order-levels on. Values that are gone
// are left out, unless something still waits for what they read.
//
// Before rangeify the state is a tensor graph, in the text form of graphs; from
// write-kernels on it is a schedule: buffers, launches, and kernels with their
// nodes.

// Text prints the state.
func (s *State) Text() string {
	switch {
	case s.Out != nil:
		return s.Out.text(s.A)
	case len(s.Values) == 0:
		return s.A.Text(s.Sink)
	}
	p := &stateText{arena: s.A}
	p.line("values %d ranges %d", s.Initial, s.NextRange)
	kept := s.printedValues()
	rests := make(map[*Value]*ir.UOp)
	for body, v := range s.RestMemo {
		rests[v] = body
	}
	p.list(s.textRoots(kept, rests))
	for i, v := range s.Versions {
		p.version(i, v)
	}
	for _, v := range kept {
		p.value(v, rests[v])
	}
	for _, launch := range s.Launches {
		p.line("launch")
		for _, k := range launch {
			var ids strings.Builder
			for _, v := range k.Values {
				fmt.Fprintf(&ids, " %d", v.ID)
			}
			p.line("kernel%s", ids.String())
		}
	}
	return p.b.String()
}

// printedValues lists the values that are not dead, and the dead ones through
// which a version waits for others.
func (s *Graph) printedValues() []*Value {
	waited := make(map[int]bool)
	var todo []int
	for _, v := range s.Versions {
		todo = append(todo, v.Waits...)
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v := s.Values[id]; !waited[id] && v.Dead {
			waited[id] = true
			r := s.ReadsOf(v)
			todo = append(append(todo, r.Values...), s.Writers(r.Versions)...)
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Values), func(v *Value) bool { return v.Dead && !waited[v.ID] })
}

// textRoots lists the nodes that the lines of the state name.
func (s *Graph) textRoots(kept []*Value, rests map[*Value]*ir.UOp) []*ir.UOp {
	var roots []*ir.UOp
	for _, v := range s.Versions {
		roots = append(roots, v.Buffer, v.Param)
	}
	for _, v := range kept {
		roots = append(append(roots, v.Node), v.Ranges...)
		roots = append(append(append(roots, v.Body), v.Loops...), v.Index...)
		if rest := rests[v]; rest != nil {
			roots = append(roots, rest)
		}
	}
	return roots
}

// stateText writes lines over one list of nodes.
type stateText struct {
	arena *ir.Arena
	b     strings.Builder
	names map[*ir.UOp]int
}

func (p *stateText) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// list writes the nodes; a node that cannot be written is told in a comment.
func (p *stateText) list(roots []*ir.UOp) {
	var err error
	if p.names, err = p.arena.PrintNodes(&p.b, roots...); err != nil {
		p.line("# %v", err)
	}
}

// nodes is a word and the names of nodes.
func (p *stateText) nodes(word string, list ...*ir.UOp) {
	p.b.WriteString(" " + word)
	for _, u := range list {
		fmt.Fprintf(&p.b, " %%%d", p.names[u])
	}
}

// number is a word and a number, left out when it is the usual one.
func (p *stateText) number(word string, n, usual int) {
	if n != usual {
		fmt.Fprintf(&p.b, " %s %d", word, n)
	}
}

// mark is a word that is there or not.
func (p *stateText) mark(word string, set bool) {
	if set {
		p.b.WriteString(" " + word)
	}
}

func (p *stateText) version(i int, v *Version) {
	fmt.Fprintf(&p.b, "version %d", i)
	p.nodes("buffer", v.Buffer)
	p.nodes("param", v.Param)
	p.number("number", v.Number, 0)
	p.number("previous", v.Previous, -1)
	p.number("writer", v.Writer, -1)
	p.number("under", v.Under, -1)
	for _, w := range v.Waits {
		p.number("waits", w, -1)
	}
	p.b.WriteByte('\n')
}

func (p *stateText) value(v *Value, rest *ir.UOp) {
	for i, line := range strings.Split(strings.TrimRight(expr.KernelText(v.Body), "\n"), "\n") {
		if i == 0 {
			line = v.Label() + " = " + line
		}
		p.line("# %s", line)
	}
	fmt.Fprintf(&p.b, "value %d", v.ID)
	p.nodes("node", v.Node)
	p.nodes("ranges", v.Ranges...)
	p.nodes("body", v.Body)
	if v.Loops != nil {
		p.nodes("loops", v.Loops...)
	}
	if v.Index != nil {
		p.nodes("index", v.Index...)
	}
	p.number("target", v.Target, -1)
	p.mark("pinned", v.Pinned)
	p.mark("stored-with-tile", v.StoredWithTile)
	p.mark("split", v.Split)
	p.mark("dead", v.Dead)
	p.number("group", v.Group, 0)
	p.number("update", v.Update, 0)
	if rest != nil {
		p.nodes("rest", rest)
	}
	if v.Name != "" {
		fmt.Fprintf(&p.b, " name %q", v.Name)
	}
	for _, reason := range v.Reasons {
		fmt.Fprintf(&p.b, " reason %q", reason)
	}
	p.b.WriteByte('\n')
}

// text prints a schedule as text that parses back. String is for people.
func (s *Schedule) text(a *ir.Arena) string {
	p := &stateText{arena: a}
	p.line("kernels of %d values arena %d", s.Values, s.ArenaBytes)
	var roots []*ir.UOp
	for _, b := range s.Buffers {
		roots = append(roots, b.Shape...)
	}
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			roots = append(roots, k.AST)
		}
	}
	p.list(roots)
	for _, b := range s.Buffers {
		fmt.Fprintf(&p.b, "buffer %s", b.DType)
		p.nodes("shape", b.Shape...)
		p.number("user", int(b.UserID), -1)
		p.number("bytes", int(b.Bytes), 0)
		p.number("offset", int(b.Offset), 0)
		if b.Format != "" {
			fmt.Fprintf(&p.b, " format %q", b.Format)
		}
		p.b.WriteByte('\n')
	}
	for _, l := range s.Launches {
		p.line("launch")
		for _, k := range l.Kernels {
			fmt.Fprintf(&p.b, "kernel %q", k.Name)
			p.nodes("ast", k.AST)
			for _, arg := range k.Args {
				p.number("arg", arg, -1)
			}
			for _, reason := range k.Reasons {
				fmt.Fprintf(&p.b, " reason %q", reason)
			}
			p.b.WriteByte('\n')
		}
	}
	return p.b.String()
}
