package ir

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The text form of a graph, one node a line, sources before users, the root
// last:
//
//	# a comment
//	%0 = range idx [0] 2048
//	%1 = param f32 [0] 2048
//	%2 = load f32 %1 %0
//	%3 = mul f32 %2 0.5:f32
//	%4 = store void [1] %1 %3 %0 %0
//	%5 = sink void %4
//
// A line is a name, an op, its dtype, the op's arg in brackets and the
// sources. A CONST as a source is written in place: a bare integer is Idx,
// anything else says value:dtype. Floats are the shortest decimals that read
// back exactly, or inf, -inf, nan. Names are numbers without gaps in the order
// of Toposort, so equal graphs print equally.

// Print writes the text form of the graph under root.
func Print(w io.Writer, root *UOp) error {
	_, err := PrintNodes(w, root)
	return err
}

// PrintNodes writes the nodes under several roots as one list, each node once,
// and returns their names: node n is %n in the text. A CONST has a line only if
// it is a root. Forms with several roots name nodes of the list in lines of their
// own.
func PrintNodes(w io.Writer, roots ...*UOp) (names map[*UOp]int, err error) {
	return printNodes(w, func(_ *UOp, line int) int { return line }, nil, roots)
}

// printNodes writes the nodes with the names that name gives them by their lines, and
// with comments, if there are any.
func printNodes(w io.Writer, name func(u *UOp, line int) int, comment func(*bufio.Writer, *UOp), roots []*UOp) (names map[*UOp]int, err error) {
	out := bufio.NewWriter(w)
	order := Toposort(roots...)
	names = make(map[*UOp]int, len(order))
	var named Visited // roots
	for _, u := range roots {
		named.Add(u)
	}
	for _, u := range order {
		if u.Op == OpConst && !named.met.Has(u) {
			continue
		}
		names[u] = name(u, len(names))
		if err := printNode(out, u, names); err != nil {
			return nil, err
		}
		if comment != nil {
			comment(out, u)
		}
		out.WriteByte('\n')
	}
	return names, out.Flush()
}

func printNode(out *bufio.Writer, u *UOp, names map[*UOp]int) error {
	if int(u.Op) >= NumOps || u.Op == OpInvalid || argKindOf(u) != u.Op.Info().Arg {
		return fmt.Errorf("ir: print: node %d: a %s cannot hold %T", names[u], u.Op, u.Arg)
	}
	printName(out, names[u])
	out.WriteString(" = ")
	out.WriteString(u.Op.String())
	out.WriteByte(' ')
	out.WriteString(u.DType.String())
	if u.Arg != nil {
		out.WriteString(" [")
		out.WriteString(nodeArgText(u))
		out.WriteByte(']')
	}
	for _, s := range u.Src {
		out.WriteByte(' ')
		if s.Op == OpConst {
			out.WriteString(constText(s))
		} else {
			printName(out, names[s])
		}
	}
	return nil
}

func printName(out *bufio.Writer, name int) {
	out.Write(strconv.AppendInt(append(out.AvailableBuffer(), '%'), int64(name), 10))
}

// nodeArgText is argText, except that a U64 CONST reads as unsigned.
func nodeArgText(u *UOp) string {
	if v, ok := u.Int(); ok && u.DType == U64 {
		return strconv.FormatUint(uint64(v), 10)
	}
	if f, ok := u.Arg.(FloatArg); ok {
		return floatArgText(u.DType, f)
	}
	return argText(u.Arg)
}

// floatArgText writes a NaN with unusual bits as nan(bits).
func floatArgText(dtype DType, f FloatArg) string {
	v := f.Value()
	if v != v && f != nanOf(dtype) {
		return fmt.Sprintf("nan(%x)", uint64(f))
	}
	return floatText(dtype, v)
}

func constText(u *UOp) string {
	if u.DType == Idx {
		return nodeArgText(u)
	}
	return nodeArgText(u) + ":" + u.DType.String()
}

// Text is the text form as a string; for a node that cannot be printed, the
// reason.
func Text(root *UOp) string {
	return textOf(func(w io.Writer) error { return Print(w, root) })
}

func textOf(print func(w io.Writer) error) string {
	var b strings.Builder
	if err := print(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// NodeText is the node alone as error messages show it: op, dtype, arg and the
// ops of its sources.
func NodeText(u *UOp) string {
	s := u.Op.String() + " " + u.DType.String()
	if u.Arg != nil {
		text := nodeArgText(u)
		if len(text) > 40 {
			text = text[:40] + "..."
		}
		s += " [" + text + "]"
	}
	for i, src := range u.Src {
		switch {
		case i == 8:
			return s + fmt.Sprintf(" ... (%d sources)", len(u.Src))
		case src.Op == OpConst:
			s += " " + constText(src)
		default:
			s += " %" + src.Op.String()
		}
	}
	return s
}

// argKindOf is the kind of arg that a node holds.
func argKindOf(u *UOp) ArgKind {
	switch u.Arg.(type) {
	case nil:
		return ArgNone
	case IntArg, FloatArg:
		if u.Op == OpConst {
			return ArgConst
		}
		return ArgInt
	case AxesArg:
		return ArgAxes
	case VarArg:
		return ArgVar
	case BufferArg:
		return ArgBuffer
	case TableArg:
		return ArgTable
	case ParamArg:
		return ArgParam
	case RangeArg:
		return ArgRange
	case FieldArg:
		return ArgField
	case ReduceArg:
		return ArgReduce
	case StageArg:
		return ArgStage
	case ValueArg:
		return ArgValue
	}
	return ArgNone
}
