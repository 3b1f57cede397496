package expr

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
)

// ExtentText is a short name of an extent: digits, or n for a symbolic one.
func ExtentText(extent *ir.UOp) string {
	if v, ok := extent.Int(); ok {
		return fmt.Sprint(v)
	}
	return "n"
}

// KernelText prints a kernel (or any expression) in a compact infix form.
// Reduces and stages that are used twice, and large shared parts, get a name.
func KernelText(root *ir.UOp) string {
	p := &textPrinter{names: make(map[*ir.UOp]string), uses: make(map[*ir.UOp]int)}
	for _, u := range ir.Toposort(root) {
		for _, src := range u.Src {
			p.uses[src]++
		}
	}
	var b strings.Builder
	stores := []*ir.UOp{root}
	if root.Op == ir.OpSink {
		stores = root.Src
	}
	for _, st := range stores {
		line := p.statement(st)
		for _, d := range p.lets {
			b.WriteString(d + "\n")
		}
		p.lets = nil
		b.WriteString(line + "\n")
	}
	return b.String()
}

type textPrinter struct {
	names map[*ir.UOp]string
	uses  map[*ir.UOp]int
	lets  []string
}

func (p *textPrinter) statement(u *ir.UOp) string {
	if u.Op != ir.OpStore {
		return p.expr(u)
	}
	loops := lists.Map(u.Ranges(), func(r *ir.UOp) string { return p.expr(r) + ":" + p.expr(r.Src[0]) })
	return fmt.Sprintf("for %s: %s%s = %s", strings.Join(loops, ","), p.expr(u.Src[0]), p.index(u.Indices()), p.expr(u.Src[1]))
}

func (p *textPrinter) index(list []*ir.UOp) string {
	parts := lists.Map(list, p.expr)
	return "[" + strings.Join(parts, ",") + "]"
}

// infix are the operators printed between their operands.
var infix = map[ir.Op]string{
	ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*", ir.OpFDiv: "/", ir.OpFloorDiv: "//", ir.OpFloorMod: "%",
	ir.OpCmpLt: "<", ir.OpCmpEq: "==", ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^", ir.OpShl: "<<", ir.OpShr: ">>",
}

// expr prints an expression, naming it when it is large and shared.
func (p *textPrinter) expr(u *ir.UOp) string {
	if name, ok := p.names[u]; ok {
		return name
	}
	text := p.build(u)
	big := u.Op == ir.OpReduce || u.Op == ir.OpStage
	if u.DType != ir.Void && p.uses[u] > 1 && (big || len(text) > 60 && u.DType != ir.Idx) {
		name := fmt.Sprintf("t%d", len(p.names))
		p.names[u] = name
		p.lets = append(p.lets, name+" = "+text)
		return name
	}
	return text
}

func (p *textPrinter) build(u *ir.UOp) string {
	switch u.Op {
	case ir.OpConst:
		if f, ok := u.Float(); ok {
			return fmt.Sprintf("%g", f)
		}
		v, _ := u.Int()
		return fmt.Sprint(v)
	case ir.OpVar:
		return u.Arg.(ir.VarArg).Name
	case ir.OpRange:
		return fmt.Sprintf("r%d", RangeID(u))
	case ir.OpParam:
		return fmt.Sprintf("b%d", u.Arg.(ir.ParamArg).Slot)
	case ir.OpValue:
		return fmt.Sprintf("v%d", u.Arg.(ir.ValueArg).ID)
	case ir.OpTable:
		return fmt.Sprintf("table%d", len(u.Arg.(ir.TableArg).Data))
	case ir.OpArg:
		return fmt.Sprintf("$%d", u.Arg.(ir.IntArg))
	case ir.OpLoad:
		return p.expr(u.Src[0]) + p.index(u.Indices())
	case ir.OpField:
		return p.expr(u.Src[0]) + "." + u.Arg.(ir.FieldArg).Field + p.index(u.Src[1:])
	case ir.OpProj:
		return fmt.Sprintf("%s.%d", p.expr(u.Src[0]), u.Arg.(ir.IntArg))
	case ir.OpReduce:
		return p.reduce(u)
	case ir.OpStage:
		z := lists.Map(u.Src[1:], func(r *ir.UOp) string { return p.expr(r) + ":" + p.expr(r.Src[0]) })
		return fmt.Sprintf("STAGE(%s; %s)", p.expr(u.Src[0]), strings.Join(z, ","))
	case ir.OpCast:
		return fmt.Sprintf("%s(%s)", u.DType, p.expr(u.Src[0]))
	}
	if op, ok := infix[u.Op]; ok {
		return "(" + p.expr(u.Src[0]) + op + p.expr(u.Src[1]) + ")"
	}
	parts := lists.Map(u.Src, p.expr)
	return u.Op.String() + "(" + strings.Join(parts, ", ") + ")"
}

func (p *textPrinter) reduce(u *ir.UOp) string {
	arg := u.Arg.(ir.ReduceArg)
	values := lists.Map(u.ReduceValues(), p.expr)
	name := "TUPLE"
	if arg.Op != ir.OpInvalid {
		name = strings.ToUpper(arg.Op.String())
	}
	r := u.ReduceRange()
	return fmt.Sprintf("%s(%s; %s:%s)", name, strings.Join(values, ", "), p.expr(r), p.expr(r.Src[0]))
}
