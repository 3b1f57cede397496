package opt

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// MergeGrids fuses independent programs horizontally (rule R7): one program
// whose first blocks run the first part, the next ones the second, and so on.
// Which part a block runs depends on the block alone, so barriers inside a part
// stay legal. Buffer slots of part i follow those of the parts before it: it
// has slots[i] of them. VARs of one name and equal tables are shared.
//
// A part with fewer threads a block than the widest leaves the rest idle, and its barriers
// wait for its own threads alone. VerifyGPU refuses what idle threads would miss, such as
// barriers of clusters: the caller verifies.
//
// Where the blocks of a part form clusters, so do all: parts begin at whole clusters, and blocks
// past the end of one have nothing to do. nil: parts have clusters of different sizes.
func MergeGrids(name string, parts []*program.Program, slots []int) *program.Program {
	p := &gridMerger{out: &program.Program{Name: name}}
	for _, part := range parts {
		if one, other := p.out.Cluster, part.Cluster; one > 1 && other > 1 && one != other {
			return nil
		}
		p.out.Cluster = max(p.out.Cluster, part.Cluster)
	}
	total := int64(0)
	for _, part := range parts {
		total += p.span(part)
		p.out.Options.Merge(&part.Options)
		if part.Threads() > p.out.Threads() || p.out.Block == nil {
			p.out.Block = slices.Clone(part.Block)
		}
	}
	p.out.Grid = []int64{total}
	unit := p.value(program.Scalar(ir.I64))
	body := &program.Block{Args: []*program.Value{unit}}
	p.chain(body, unit, parts, slots, 0)
	body.Instrs = body.Instrs[:len(body.Instrs)-1] // a grid loop ends without a yield
	p.out.Body = &program.Block{Instrs: append(p.consts, program.Instr{Op: program.GridLoop, Body: body})}
	return p.out
}

type gridMerger struct {
	out    *program.Program
	consts []program.Instr
	copied map[*program.Value]*program.Value // of the part at hand
	alone  int64                             // threads of the part at hand that wait for each other; 0: all of the block
}

func (p *gridMerger) value(t program.Type) *program.Value {
	v := &program.Value{ID: p.out.Values, Type: t}
	p.out.Values++
	return v
}

func (p *gridMerger) int(v int64) *program.Value {
	out := p.value(program.Scalar(ir.I64))
	p.consts = append(p.consts, program.Instr{Op: program.Const, Result: out, Int: v})
	return out
}

func (p *gridMerger) alu(to *program.Block, op ir.Op, t program.Type, args ...*program.Value) *program.Value {
	out := p.value(t)
	to.Instrs = append(to.Instrs, program.Instr{Op: program.Alu, Ir: op, Result: out, Args: args})
	return out
}

// span is the number of blocks that a part has.
func (p *gridMerger) span(part *program.Program) int64 {
	n := max(p.out.Cluster, 1)
	return (part.Units() + n - 1) / n * n
}

// chain writes "if unit < n: the first part, else: the others with unit-n",
// and a yield. The parts' own units are clamped to their grids, which says to
// the analysis of indices what the branches say to people.
func (p *gridMerger) chain(to *program.Block, unit *program.Value, parts []*program.Program, slots []int, firstSlot int) {
	part := parts[0]
	n := part.Units()
	own := p.alu(to, ir.OpMin, unit.Type, unit, p.int(max(n-1, 0)))
	span := p.span(part)
	if len(parts) == 1 {
		p.existing(to, unit, n, span, func(to *program.Block) { p.part(to, part, own, firstSlot) })
		to.Instrs = append(to.Instrs, program.Instr{Op: program.Yield})
		return
	}
	first, rest := &program.Block{}, &program.Block{}
	cond := p.alu(to, ir.OpCmpLt, program.Scalar(ir.Bool), unit, p.int(span))
	p.existing(first, unit, n, span, func(to *program.Block) { p.part(to, part, own, firstSlot) })
	first.Instrs = append(first.Instrs, program.Instr{Op: program.Yield})
	left := p.alu(rest, ir.OpSub, unit.Type, unit, p.int(span))
	left = p.alu(rest, ir.OpMax, unit.Type, left, p.int(0))
	p.chain(rest, left, parts[1:], slots[1:], firstSlot+slots[0])
	to.Instrs = append(to.Instrs, program.Instr{Op: program.If, Args: []*program.Value{cond}, Body: first, Else: rest}, program.Instr{Op: program.Yield})
}

// existing writes what the units of a part do, those below n of its span.
func (p *gridMerger) existing(to *program.Block, unit *program.Value, n, span int64, write func(to *program.Block)) {
	if n == span {
		write(to)
		return
	}
	inner := &program.Block{}
	cond := p.alu(to, ir.OpCmpLt, program.Scalar(ir.Bool), unit, p.int(n))
	write(inner)
	p.onlyIf(to, cond, inner)
}

// onlyIf writes a block that runs under a condition.
func (p *gridMerger) onlyIf(to *program.Block, cond *program.Value, inner *program.Block) {
	yield := program.Instr{Op: program.Yield}
	inner.Instrs = append(inner.Instrs, yield)
	to.Instrs = append(to.Instrs, program.Instr{Op: program.If, Args: []*program.Value{cond}, Body: inner, Else: &program.Block{Instrs: []program.Instr{yield}}})
}

// part writes the body of a part's grid loop for one of its units. Its
// constants go to the head of the program.
func (p *gridMerger) part(to *program.Block, part *program.Program, unit *program.Value, firstSlot int) {
	p.copied = make(map[*program.Value]*program.Value)
	for i := range part.Params {
		p.param(part.Params[i], firstSlot)
	}
	if n := part.Threads(); n < p.out.Threads() {
		inner := &program.Block{}
		thread := p.value(program.Scalar(ir.I32))
		limit := p.value(program.Scalar(ir.I32))
		p.consts = append(p.consts, program.Instr{Op: program.Const, Result: limit, Int: n})
		to.Instrs = append(to.Instrs, program.Instr{Op: program.ThreadIndex, Result: thread})
		cond := p.alu(to, ir.OpCmpLt, program.Scalar(ir.Bool), thread, limit)
		p.alone = n
		p.body(inner, part, unit)
		p.alone = 0
		p.onlyIf(to, cond, inner)
		return
	}
	p.body(to, part, unit)
}

func (p *gridMerger) body(to *program.Block, part *program.Program, unit *program.Value) {
	last := len(part.Body.Instrs) - 1
	for i := range part.Body.Instrs[:last] {
		in := p.instr(&part.Body.Instrs[i])
		switch in.Op {
		case program.Const, program.ConstLanes:
			p.consts = append(p.consts, in)
		default:
			to.Instrs = append(to.Instrs, in)
		}
	}
	loop := part.Body.Instrs[last].Body
	p.copied[loop.Args[0]] = unit
	for i := range loop.Instrs {
		to.Instrs = append(to.Instrs, p.instr(&loop.Instrs[i]))
	}
}

// param adds a part's parameter or finds the one it shares.
func (p *gridMerger) param(from program.Param, firstSlot int) {
	old := from.Value
	for i := range p.out.Params {
		known := &p.out.Params[i]
		if known.Kind != from.Kind || known.Value.Type != old.Type {
			continue
		}
		switch {
		case from.Kind == program.ParamVar && known.Name == from.Name:
			known.Lo, known.Hi = widest(known, &from)
		case from.Kind == program.ParamTable && known.Table == from.Table:
		default:
			continue
		}
		p.copied[old] = known.Value
		return
	}
	from.Value = p.value(old.Type)
	from.Value.Origin = old.Origin
	if from.Kind == program.ParamBuffer {
		from.Slot += firstSlot
		from.Name = fmt.Sprintf("p%d", from.Slot)
	}
	p.copied[old] = from.Value
	p.out.Params = append(p.out.Params, from)
}

// widest joins the bounds of a VAR; 0 and 0 when one of them is not known.
func widest(x, y *program.Param) (lo, hi int64) {
	if x.Lo == 0 && x.Hi == 0 || y.Lo == 0 && y.Hi == 0 {
		return 0, 0
	}
	return min(x.Lo, y.Lo), max(x.Hi, y.Hi)
}

func (p *gridMerger) instr(in *program.Instr) program.Instr {
	out := *in
	if in.Op == program.Barrier {
		out.Int = p.alone
	}
	out.Args = p.uses(in.Args)
	if in.Body != nil {
		out.Body = p.block(in.Body)
	}
	if in.Else != nil {
		out.Else = p.block(in.Else)
	}
	if in.Result != nil {
		out.Result = p.define(in.Result)
	}
	out.Results = p.defines(in.Results)
	return out
}

func (p *gridMerger) block(b *program.Block) *program.Block {
	out := &program.Block{Args: p.defines(b.Args), Instrs: make([]program.Instr, 0, len(b.Instrs))}
	for i := range b.Instrs {
		out.Instrs = append(out.Instrs, p.instr(&b.Instrs[i]))
	}
	return out
}

func (p *gridMerger) define(v *program.Value) *program.Value {
	copied := p.value(v.Type)
	copied.Origin = v.Origin
	p.copied[v] = copied
	return copied
}

func (p *gridMerger) defines(list []*program.Value) []*program.Value {
	return lists.Map(list, p.define)
}

func (p *gridMerger) uses(list []*program.Value) []*program.Value {
	return lists.Map(list, func(v *program.Value) *program.Value { return p.copied[v] })
}
