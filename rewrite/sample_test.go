package rewrite

import (
	"math"
	"math/rand/v2"

	_ "tgc/internal/rarecollection"
	"tgc/ir"
)

// Sampler makes random nodes for the checks of rules (check_test.go): a
// fixed seed gives the same nodes in every run. Its leaves are ARG nodes (any
// value of their dtype), RANGE and VAR.
type Sampler struct {
	Arena *ir.Arena
	Rand  *rand.Rand
	next  int64 // number of the next ARG
}

// NewSampler makes a sampler with its own arena.
func NewSampler(seed uint64) *Sampler {
	return &Sampler{Arena: ir.NewArena(), Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// pick returns one of the choices.
func pick[T any](s *Sampler, choices ...T) T { return choices[s.Rand.IntN(len(choices))] }

// Type is a random dtype of a set.
func (s *Sampler) Type(types Types) ir.DType {
	var list []ir.DType
	for d := ir.Bool; d <= ir.Idx; d++ {
		if types.Has(d) {
			list = append(list, d)
		}
	}
	return list[s.Rand.IntN(len(list))]
}

// Value is a random value of a dtype, edges more often than others.
func (s *Sampler) Value(d ir.DType) ir.Scalar {
	switch {
	case d.IsFloat():
		v := pick(s, 0, math.Copysign(0, -1), 1, -1, 2, 0.5, -4, 448, 1e-5, 65504, math.Inf(1), math.Inf(-1), math.NaN(), s.Rand.NormFloat64(), math.Ldexp(s.Rand.Float64()-0.5, s.Rand.IntN(300)-150), float64(s.Rand.IntN(600)-300))
		return ir.FloatScalar(ir.RoundFloat(d, v))
	case d == ir.Idx:
		return ir.IntScalar(pick(s, 0, 1, -1, int64(s.Rand.IntN(64)), int64(s.Rand.IntN(4000)-2000)))
	}
	lo, hi := d.IntRange()
	v := pick(s, 0, 1, -1, 2, 15, lo, hi, 1<<s.Rand.IntN(63), 1<<s.Rand.IntN(32)-1, int64(s.Rand.Uint64()), int64(s.Rand.IntN(300)-20))
	return ir.IntScalar(ir.WrapInt(d, v))
}

// Const is a random CONST.
func (s *Sampler) Const(d ir.DType) *ir.UOp { return s.Arena.ConstScalar(d, s.Value(d)) }

// Opaque is a leaf of which only the dtype is known.
func (s *Sampler) Opaque(d ir.DType) *ir.UOp {
	s.next++
	return s.Arena.Make(ir.OpArg, d, ir.IntArg(s.next))
}

// Node is a random node of a dtype as rules meet them: opaque leaves, leaves
// whose bounds are known, constants, small expressions.
func (s *Sampler) Node(d ir.DType) *ir.UOp {
	a := s.Arena
	switch n := s.Rand.IntN(8); {
	case n == 0:
		return s.Const(d)
	case n <= 2:
		return s.Opaque(d)
	case d == ir.Idx:
		return s.IndexSum(s.Rand.IntN(2))
	case d == ir.Bool:
		t := s.Type(integral)
		return a.Make(pick(s, ir.OpCmpLt, ir.OpCmpEq), ir.Bool, nil, s.Opaque(t), s.Opaque(t))
	case d.IsFloat():
		if n == 3 {
			return a.Cast(s.Node(s.Type(Ints)), d)
		}
		return a.Make(pick(s, ir.OpAdd, ir.OpMul), d, nil, s.Opaque(d), s.Opaque(d))
	case n == 3:
		return a.Cast(s.Opaque(s.Type(Bools|TypesOf(ir.U8, ir.I8, ir.U16))), d)
	case n == 4:
		return a.Cast(s.IndexSum(0), d)
	case n == 5:
		return a.Make(ir.OpShl, d, nil, s.Node(d), a.ConstInt(d, int64(s.Rand.IntN(d.Bits()))))
	}
	return a.Make(ir.OpAnd, d, nil, s.Opaque(d), a.ConstInt(d, 1<<s.Rand.IntN(d.Bits())-1))
}

// Range is one of a few loops with small extents, one of them symbolic.
func (s *Sampler) Range() *ir.UOp {
	n := s.Rand.IntN(6)
	if n == 5 {
		return s.Arena.Range(n, s.symbol())
	}
	return s.Arena.Range(n, s.Arena.Index([]int64{1, 2, 3, 8, 32}[n]))
}

// symbol is a symbolic extent.
func (s *Sampler) symbol() *ir.UOp {
	m := s.Arena.Var(ir.VarArg{Name: "m", Lo: 1, Hi: 24})
	n := s.Arena.Var(ir.VarArg{Name: "n", Lo: 4, Hi: 64, Multiple: 4})
	return pick(s, m, n, m, s.Arena.Add(m, s.Arena.Index(1)))
}

func (s *Sampler) smallInt(lo, hi int64) *ir.UOp {
	return s.Arena.Index(lo + s.Rand.Int64N(hi-lo+1))
}

// IndexSum is a random Idx expression without division.
func (s *Sampler) IndexSum(depth int) *ir.UOp {
	a := s.Arena
	if depth == 0 {
		return pick(s, s.Range(), s.Range(), s.Range(), s.symbol(), s.smallInt(-3, 40))
	}
	x, y := s.IndexSum(depth-1), s.IndexSum(depth-1)
	switch s.Rand.IntN(6) {
	case 0:
		return a.Make(ir.OpSub, ir.Idx, nil, x, y)
	case 1:
		return a.Make(ir.OpMul, ir.Idx, nil, x, y)
	case 2:
		return a.Make(ir.OpMul, ir.Idx, nil, x, s.smallInt(-4, 16))
	case 3:
		d := s.smallInt(1, 9)
		return a.Make(ir.OpAdd, ir.Idx, nil, a.Make(ir.OpMul, ir.Idx, nil, a.Div(x, d), d), a.Mod(x, d))
	}
	return a.Make(ir.OpAdd, ir.Idx, nil, x, y)
}

// IndexDivision is x/d or x%d with digits, common factors and nesting that
// give the rules something to do.
func (s *Sampler) IndexDivision(op ir.Op) *ir.UOp {
	a := s.Arena
	divisors := []int64{2, 3, 4, 8, 16, 32, 24, 1}
	d := a.Index(divisors[s.Rand.IntN(len(divisors))])
	x := s.IndexSum(s.Rand.IntN(3))
	if s.Rand.IntN(4) == 0 {
		d = pick(s, s.symbol(), a.Mul(s.symbol(), s.smallInt(1, 4)), a.Mul(s.symbol(), s.symbol()))
	}
	switch s.Rand.IntN(5) {
	case 0:
		x = a.Add(a.Mul(x, d), s.Range())
	case 1:
		x = a.Make(pick(s, ir.OpFloorDiv, ir.OpFloorMod), ir.Idx, nil, x, pick(s, s.smallInt(1, 8), d, a.Mul(d, s.smallInt(1, 3))))
	case 2:
		inner := a.Make(pick(s, ir.OpFloorDiv, ir.OpFloorMod), ir.Idx, nil, x, s.smallInt(1, 16))
		x = a.Add(a.Mul(inner, s.smallInt(1, 4)), s.IndexSum(1))
	}
	return a.Make(op, ir.Idx, nil, x, d)
}

// IndexCompare compares two index expressions, often close ones.
func (s *Sampler) IndexCompare(op ir.Op) *ir.UOp {
	a := s.Arena
	x := pick(s, s.IndexSum(1), s.IndexSum(2), s.IndexDivision(ir.OpFloorDiv), s.IndexDivision(ir.OpFloorMod))
	y := pick(s, s.IndexSum(0), s.IndexSum(1), s.smallInt(-5, 70))
	if x.Op == ir.OpRange && s.Rand.IntN(2) == 0 {
		y = x.Src[0]
	}
	if s.Rand.IntN(2) == 0 {
		x, y = y, x
	}
	return a.Make(op, ir.Bool, nil, x, y)
}

// IndexExtremum is a minimum or maximum of a few index expressions.
func (s *Sampler) IndexExtremum() *ir.UOp {
	op := pick(s, ir.OpMin, ir.OpMax)
	u := s.Arena.Make(op, ir.Idx, nil, s.IndexSum(1), s.IndexSum(s.Rand.IntN(2)))
	if s.Rand.IntN(2) == 0 {
		u = s.Arena.Make(op, ir.Idx, nil, u, pick(s, s.IndexSum(0), u.Src[0], u.Src[1]))
	}
	return u
}

// LiftedIndex is integer arithmetic on converted indices.
func (s *Sampler) LiftedIndex() *ir.UOp {
	d := pick(s, ir.I32, ir.I64, ir.U8, ir.I16)
	operand := func() *ir.UOp {
		return pick(s, s.Arena.Cast(s.IndexSum(1), d), s.Arena.Cast(s.Range(), d), s.Const(d), s.Arena.ConstInt(d, int64(s.Rand.IntN(9))), s.Arena.Cast(s.Opaque(ir.U8), d))
	}
	op := pick(s, ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpFloorDiv, ir.OpFloorMod, ir.OpMin, ir.OpMax)
	return s.Arena.Make(op, d, nil, operand(), operand())
}

// elementwise makes a node of a random op over sources made by leaf.
func (s *Sampler) elementwise(ops []ir.Op, types Types, leaf func(ir.DType) *ir.UOp) *ir.UOp {
	for {
		op := ops[s.Rand.IntN(len(ops))]
		info, d := op.Info(), s.Type(types)
		if !op.Takes(d) {
			continue
		}
		src := make([]*ir.UOp, info.Arity)
		for i := range src {
			src[i] = leaf(d)
		}
		switch {
		case op == ir.OpWhere:
			src[0] = leaf(ir.Bool)
		case op == ir.OpCast:
			src[0] = leaf(s.Type(AnyTypes))
		case op == ir.OpBitcast:
			continue
		case info.Type == ir.TypeCompare:
			return s.Arena.Make(op, ir.Bool, nil, src...)
		}
		return s.Arena.Make(op, d, nil, src...)
	}
}

// ConstantNode is an elementwise op of constants.
func (s *Sampler) ConstantNode() *ir.UOp {
	return s.elementwise(elementwiseOps(), AnyTypes, s.Const)
}

// NarrowNode is an integer op of sources with few values.
func (s *Sampler) NarrowNode() *ir.UOp {
	return s.elementwise(elementwiseOps(), integral, func(d ir.DType) *ir.UOp {
		if d == ir.Idx {
			return pick(s, s.smallInt(0, 3), s.Range())
		}
		small := s.Arena.Make(ir.OpAnd, d, nil, s.Opaque(d), s.Arena.ConstInt(d, int64(s.Rand.IntN(3))))
		return pick(s, s.Arena.ConstInt(d, int64(s.Rand.IntN(5))), small)
	})
}

// CommutativeNode is a commutative op with its sources in any order.
func (s *Sampler) CommutativeNode() *ir.UOp {
	ops := ir.Commutative
	return s.elementwise(ops, AnyTypes, s.Node)
}

// Instance makes a node that a pattern matches, with random nodes for its
// variables; nil when the dtype does not fit.
func (s *Sampler) Instance(p *Pattern, d ir.DType, bound map[*Pattern]*ir.UOp) *ir.UOp {
	if !p.types.Has(d) {
		return nil
	}
	switch p.kind {
	case literal:
		return s.Arena.Const(d, p.value)
	case anyNode, anyConst:
		if u := bound[p]; u != nil {
			if u.DType != d {
				return nil
			}
			return u
		}
		u := s.Const(d)
		if p.kind == anyNode {
			u = s.Node(d)
		}
		bound[p] = u
		return u
	}
	if !p.op.Takes(d) && p.op.Info().Type != ir.TypeCompare {
		return nil
	}
	return s.operationInstance(p, d, bound)
}

func (s *Sampler) operationInstance(p *Pattern, d ir.DType, bound map[*Pattern]*ir.UOp) *ir.UOp {
	types := make([]ir.DType, len(p.src))
	for i := range types {
		types[i] = d
	}
	switch p.op.Info().Type {
	case ir.TypeCompare:
		if d != ir.Bool {
			return nil
		}
		t := s.sourceTypes(p, bound)
		for i := range types {
			types[i] = t
		}
	case ir.TypeWhere:
		types[0] = ir.Bool
	case ir.TypeFree:
		types[0] = s.sourceTypes(p, bound)
	}
	src := make([]*ir.UOp, len(p.src))
	for i, q := range p.src {
		if src[i] = s.Instance(q, types[i], bound); src[i] == nil {
			return nil
		}
	}
	return s.Arena.Make(p.op, d, nil, src...)
}

// sourceTypes picks one dtype that all sources of a comparison or conversion
// allow.
func (s *Sampler) sourceTypes(p *Pattern, bound map[*Pattern]*ir.UOp) ir.DType {
	types := AnyTypes
	for _, q := range p.src {
		if u := bound[q]; u != nil {
			return u.DType
		}
		types &= q.types
	}
	return s.Type(types)
}

// Expression is a random expression of any dtype, as whole sets meet them.
func (s *Sampler) Expression(depth int) *ir.UOp {
	if depth == 0 || s.Rand.IntN(4) == 0 {
		return pick(s, s.IndexDivision(ir.OpFloorDiv), s.IndexDivision(ir.OpFloorMod), s.IndexSum(2), s.IndexExtremum(), s.LiftedIndex(), s.IndexCompare(ir.OpCmpLt), s.IndexCompare(ir.OpCmpEq), s.Node(s.Type(AnyTypes)))
	}
	x := s.Expression(depth - 1)
	y := pick(s, s.Node(x.DType), s.Node(x.DType), s.Const(x.DType), x)
	if s.Rand.IntN(3) == 0 {
		if z := s.Expression(depth - 1); z.DType == x.DType {
			y = z
		}
	}
	if s.Rand.IntN(2) == 0 {
		x, y = y, x
	}
	switch s.Rand.IntN(6) {
	case 0:
		return s.Arena.Cast(x, s.Type(AnyTypes))
	case 1:
		return s.Arena.Make(ir.OpWhere, x.DType, nil, s.Node(ir.Bool), x, y)
	}
	for {
		op := elementwiseOps()[s.Rand.IntN(len(elementwiseOps()))]
		info := op.Info()
		switch {
		case !op.Takes(x.DType) || op == ir.OpWhere || op == ir.OpCast || op == ir.OpBitcast:
		case info.Type == ir.TypeCompare:
			return s.Arena.Make(op, ir.Bool, nil, x, y)
		case info.Arity == 1:
			return s.Arena.Make(op, x.DType, nil, x)
		case info.Arity == 2:
			return s.Arena.Make(op, x.DType, nil, x, y)
		}
	}
}
