package tensor

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
)

// DOT is the graph of all results in the language of Graphviz: `dot -Tsvg`. A node says its
// operation, the constants in it and what it gives; buffers are filled and have their names.
// What depends on no buffer and no table (extents, coordinates, constants) is left out.
func (g *Graph) DOT() (string, error) {
	sink, err := g.Sink()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("digraph {\n\trankdir=BT\n\tnode [shape=box fontname=\"sans-serif\" fontsize=11]\n")
	numbers := make(map[*ir.UOp]int) // of the nodes that are drawn
	for _, u := range ir.Toposort(sink) {
		sources := lists.Union([]*ir.UOp(nil), lists.Filter(u.Src, func(s *ir.UOp) bool { _, ok := numbers[s]; return ok })...)
		if u == sink || len(sources) == 0 && u.Op != ir.OpBuffer && u.Op != ir.OpTable {
			continue
		}
		numbers[u] = len(numbers)
		fmt.Fprintf(&b, "\tn%d [label=\"%s\"%s]\n", numbers[u], dotQuoter.Replace(g.nodeText(u)), dotStyles[u.Op])
		for _, s := range sources {
			fmt.Fprintf(&b, "\tn%d -> n%d\n", numbers[s], numbers[u])
		}
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// dotStyles set apart what holds values.
var dotStyles = map[ir.Op]string{
	ir.OpBuffer: " style=filled fillcolor=\"#ddeeff\"",
	ir.OpAssign: " style=filled fillcolor=\"#eeffdd\"",
}

// nodeText is what stands in a node: two lines.
func (g *Graph) nodeText(u *ir.UOp) string {
	what := u.Op.String()
	if arg, ok := u.Arg.(ir.BufferArg); ok {
		what = g.buffers[arg.ID].Name
		if arg.Format != "" {
			what += " (" + arg.Format + ")"
		}
	}
	if fold, ok := u.Arg.(ir.ReduceArg); ok {
		what = "reduce " + fold.Op.String()
	}
	for _, s := range u.Src {
		what += constantText(s)
	}
	return what + "\n" + u.DType.String() + shapeText(g.shapes.Of(u))
}

// constantText is a constant operand, which may be spread over a shape; empty for others.
func constantText(u *ir.UOp) string {
	for u.Op == ir.OpReshape || u.Op == ir.OpExpand {
		u = u.Src[0]
	}
	if u.DType == ir.Idx {
		return ""
	}
	if v, ok := u.Float(); ok {
		return fmt.Sprintf(" %.6g", v)
	}
	if v, ok := u.Int(); ok {
		return fmt.Sprintf(" %d", v)
	}
	return ""
}

// dotQuoter makes a string of the language; its line breaks stay line breaks.
var dotQuoter = strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`)
