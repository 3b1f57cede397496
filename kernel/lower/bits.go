package lower

import "tgc/ir"

// lowerBits moves bits to their place at once where the amounts are known at the
// coordinates: ((x >> s) & m) << n is (x << n-s) & (m << n), or a shift to the
// right, or none. Which copy of a packed byte decides both amounts, so that no
// rewrite of the graph can do it.
func (l *scopes) lowerBits(u *ir.UOp, at coords) (val, bool) {
	if u.Op != ir.OpShl || !u.DType.IsInt() || u.DType.IsSigned() || u.Src[0].Op != ir.OpAnd {
		return val{}, false
	}
	and := u.Src[0]
	m, ok := and.Src[1].Int()
	if !ok || and.Src[0].Op != ir.OpShr {
		return val{}, false
	}
	x := and.Src[0].Src[0]
	n, ok1 := l.knownAmount(u.Src[1], at)
	s, ok2 := l.knownAmount(and.Src[0].Src[1], at)
	_, most := u.DType.IntRange()
	if !ok1 || !ok2 || u.DType.Size() > 4 || m > most>>s || m<<n > most {
		return val{}, false
	}
	target := l.exprs.laneSubAxes(u, at)
	in := l.exprs.settle(l.wide.operand(x, at, target))
	constant := func(c int64) val { return l.exprs.scalarVal(l.exprs.constant(l.Arena.ConstInt(u.DType, c))) }
	switch {
	case n > s:
		in = l.exprs.alu(ir.OpShl, u.DType, in, constant(n-s))
	case n < s:
		in = l.exprs.alu(ir.OpShr, u.DType, in, constant(s-n))
	}
	return l.exprs.alu(ir.OpAnd, u.DType, in, constant(m<<n)), true
}

// knownAmount is a shift that is one number at the coordinates, within a byte.
func (l *scopes) knownAmount(u *ir.UOp, at coords) (int64, bool) {
	n, ok := l.exprs.known(u, at)
	return n, ok && n >= 0 && n < 8
}
