package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
)

// Types is a set of dtypes.
type Types uint32

// TypesOf is the set of the given dtypes.
func TypesOf(dtypes ...ir.DType) Types {
	var t Types
	for _, d := range dtypes {
		t |= 1 << d
	}
	return t
}

// The sets of dtypes that rules speak about.
var (
	Bools    = TypesOf(ir.Bool)
	Ints     = TypesOf(ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64) // fixed width
	Floats   = TypesOf(ir.F8E4M3, ir.F8E5M2, ir.F16, ir.BF16, ir.F32, ir.F64)
	Index    = TypesOf(ir.Idx)
	AnyTypes = Bools | Ints | Floats | Index
)

// Has reports a dtype in the set.
func (t Types) Has(d ir.DType) bool { return t&(1<<d) != 0 }

type patternKind uint8

const (
	anyNode   patternKind = iota // a variable: any node of Types
	anyConst                     // a variable: any CONST of Types
	literal                      // the CONST with this value
	operation                    // a node of this op
)

// Pattern is one side of a rule, or a part of it. Variables are Go variables:
// the same *Pattern stands for the same node wherever it occurs.
type Pattern struct {
	kind  patternKind
	name  string
	types Types
	value float64 // of a literal
	op    ir.Op
	src   []*Pattern
	orig  *Pattern // of a reordered copy (see variants): the pattern it copies
}

// id is the pattern as the rule's author wrote it.
func (p *Pattern) id() *Pattern {
	if p.orig != nil {
		return p.orig
	}
	return p
}

// Any is a variable for any node whose dtype is in types.
func Any(name string, types Types) *Pattern {
	return &Pattern{kind: anyNode, name: name, types: types}
}

// Const is a variable for any CONST whose dtype is in types.
func Const(name string, types Types) *Pattern {
	return &Pattern{kind: anyConst, name: name, types: types}
}

// Literal is the CONST v of whatever dtype its place asks for; integers wrap,
// so -1 has all bits set. On floats -0 is not 0.
func Literal(v float64) *Pattern { return &Pattern{kind: literal, value: v, types: AnyTypes} }

// Op is a node of an op without arg. Commutative ops match in both orders. As
// a result it has the dtype that its place asks for.
func Op(op ir.Op, src ...*Pattern) *Pattern {
	return &Pattern{kind: operation, op: op, src: src, types: AnyTypes}
}

// Named gives an operation a name, so that guards can look at the node that it
// matched.
func Named(name string, p *Pattern) *Pattern {
	p.name = name
	return p
}

// Of restricts an operation to dtypes.
func (p *Pattern) Of(types Types) *Pattern {
	p.types = types
	return p
}

// String prints the pattern as the text form would: add(x, 0).
func (p *Pattern) String() string {
	switch p.kind {
	case literal:
		return fmt.Sprint(p.value)
	case operation:
		parts := lists.Map(p.src, (*Pattern).String)
		return p.op.String() + "(" + strings.Join(parts, ", ") + ")"
	}
	return p.name
}

// walk calls f for p and every part of it.
func (p *Pattern) walk(f func(*Pattern)) {
	f(p)
	for _, s := range p.src {
		s.walk(f)
	}
}

// Match is a rule found at a node: what its variables stand for.
type Match struct {
	*Context
	Root  *ir.UOp
	names []*Pattern
	nodes []*ir.UOp
}

// Node is what a variable (or named operation) of the rule stands for.
func (m *Match) Node(p *Pattern) *ir.UOp {
	for i, q := range m.names {
		if q == p {
			return m.nodes[i]
		}
	}
	return nil
}

// Interval is what bounds analysis knows about a variable's node.
func (m *Match) Interval(p *Pattern) ir.Interval { return m.Bounds.Of(m.Node(p)) }

// bind notes that p stands for u; false if it already stands for another.
func (m *Match) bind(p *Pattern, u *ir.UOp) bool {
	if old := m.Node(p); old != nil {
		return old == u
	}
	m.names = append(m.names, p)
	m.nodes = append(m.nodes, u)
	return true
}

// match tries p at u, extending the bindings. Commutative ops are expanded to
// both orders beforehand (variants), so there is no backtracking.
func (m *Match) match(p *Pattern, u *ir.UOp) bool {
	if !p.types.Has(u.DType) {
		return false
	}
	switch p.kind {
	case anyNode:
		return m.bind(p, u)
	case anyConst:
		return u.Op == ir.OpConst && m.bind(p, u)
	case literal:
		return u.Op == ir.OpConst && u == m.Arena.Const(u.DType, p.value)
	}
	if u.Op != p.op || len(u.Src) != len(p.src) {
		return false
	}
	for i, s := range p.src {
		if !m.match(s, u.Src[i]) {
			return false
		}
	}
	return p.name == "" || m.bind(p.id(), u)
}

// build makes the node that p describes, of this dtype.
func (m *Match) build(p *Pattern, dtype ir.DType) *ir.UOp {
	switch p.kind {
	case anyNode, anyConst:
		return m.Node(p)
	case literal:
		return m.Arena.Const(dtype, p.value)
	}
	if p.name != "" {
		if u := m.Node(p); u != nil {
			return u
		}
	}
	src := make([]*ir.UOp, len(p.src))
	for i, s := range p.src {
		src[i] = m.build(s, m.sourceType(p, i, dtype))
	}
	return m.Arena.Make(p.op, dtype, nil, src...)
}

// sourceType is the dtype of source i of a result pattern of this dtype.
func (m *Match) sourceType(p *Pattern, i int, dtype ir.DType) ir.DType {
	switch p.op.Info().Type {
	case ir.TypeWhere:
		if i == 0 {
			return ir.Bool
		}
	case ir.TypeCompare, ir.TypeFree:
		for _, s := range p.src {
			if d, ok := m.boundType(s); ok {
				return d
			}
		}
	}
	return dtype
}

// boundType is the dtype of a result pattern as its variables fix it.
func (m *Match) boundType(p *Pattern) (ir.DType, bool) {
	if u := m.Node(p); u != nil {
		return u.DType, true
	}
	if p.kind == operation {
		switch p.op.Info().Type {
		case ir.TypeSame, ir.TypeSame0, ir.TypeFloat, ir.TypeShift:
			for _, s := range p.src {
				if d, ok := m.boundType(s); ok {
					return d, true
				}
			}
		case ir.TypeCompare:
			return ir.Bool, true
		}
	}
	return ir.Void, false
}

// variants are all orders of the sources of commutative operations in p, p
// itself first.
func variants(p *Pattern) []*Pattern {
	list := []*Pattern{p}
	for i := range p.src {
		var next []*Pattern
		for _, q := range list {
			for _, s := range variants(q.src[i]) {
				r := q
				if s != q.src[i] {
					c := *q
					c.orig = q.id()
					c.src = append([]*Pattern(nil), q.src...)
					c.src[i] = s
					r = &c
				}
				next = append(next, r)
			}
		}
		list = next
	}
	if p.kind == operation && slices.Contains(ir.Commutative, p.op) && p.src[0] != p.src[1] {
		for _, q := range list {
			c := *q
			c.orig = q.id()
			c.src = []*Pattern{q.src[1], q.src[0]}
			list = append(list, &c)
		}
	}
	return list
}
