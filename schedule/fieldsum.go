package schedule

import "tgc/ir"

// R2m distributes a sum over a packed weight of two terms (d*sc*q - dmin*m):
// REDUCE(ADD, y*(t1+t2)) -> REDUCE(ADD, y*t1) + REDUCE(ADD, y*t2), when a term
// has a factor of coarser granularity than the sum has. It must stand before
// R3, which finds no coarse factor in the sum itself.
func (s *scheduler) distributeFields(v *value) {
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		if !s.splitsSum(v, u) {
			return u
		}
		list := factors(u.Src[0])
		for i, f := range list {
			if s.isFieldSum(f, u.ReduceRange()) {
				return s.splitSum(u, list, i)
			}
		}
		return u
	})
	if body != v.body {
		v.body = body
		s.record(Distribute, v, true, "packed sum with a coarse factor")
	}
}

// splitSum distributes a REDUCE over its factor i, an ADD or SUB.
func (s *scheduler) splitSum(u *ir.UOp, list []*ir.UOp, i int) *ir.UOp {
	f := list[i]
	half := func(term *ir.UOp) *ir.UOp {
		part := make([]*ir.UOp, len(list))
		copy(part, list)
		part[i] = term
		return s.sumOf(part, u)
	}
	return s.a.Make(f.Op, f.DType, nil, half(f.Src[0]), half(f.Src[1]))
}

// isFieldSum reports t1+t2 or t1-t2 of FIELDs only where some term has a factor
// that is coarser in k than the whole.
func (s *scheduler) isFieldSum(f, k *ir.UOp) bool {
	if f.Op != ir.OpAdd && f.Op != ir.OpSub || !s.isFieldsOnly(f) {
		return false
	}
	whole := s.granularity(f, k)
	for _, t := range f.Src {
		if t.Op == ir.OpConst {
			return false // an integer constant: R2c
		}
	}
	for _, t := range f.Src {
		for _, g := range factors(t) {
			if c := s.granularity(g, k); c > whole || c == 0 {
				return true
			}
		}
	}
	return false
}

// isFieldsOnly reports an expression that reads packed fields and tables only. A
// row may be gathered: what its index reads is not decoded (an expert's number).
func (s *scheduler) isFieldsOnly(u *ir.UOp) bool {
	found, only := false, true
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if !only || !seen.Add(u) {
			return
		}
		list := u.Src
		switch u.Op {
		case ir.OpField:
			found = true
			list = u.Src[2:]
		case ir.OpValue, ir.OpReduce, ir.OpStage:
			only = false
		case ir.OpLoad:
			only = only && u.Src[0].Op == ir.OpTable
		}
		for _, x := range list {
			visit(x)
		}
	}
	visit(u)
	return found && only
}

// R2c distributes an integer constant: in an innermost REDUCE, a factor
// float(q)+c with integer q, where both are small enough to be exact, gives
// REDUCE(ADD, y*q) + c*REDUCE(ADD, y). After R3 the second sum is per group and
// shared by all rows. R2 without look-through then takes c out. Where a conversion
// of bytes takes c along, only dots of integers and matrix instructions gain.
func (s *scheduler) distributeConstant(v *value) {
	p := &s.opt.Profile
	matrix := p.MatrixTokens > 0 && s.weightReuse(v)%p.MatrixTokens == 0
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		if !s.splitsSum(v, u) || s.height(u.Src[0]) > 0 || p.OffsetsFree && !matrix && !s.hasIntegerFactor(u) {
			return u
		}
		list := factors(u.Src[0])
		for i, f := range list {
			if len(list) > 1 && s.isOffsetInteger(f) {
				return s.splitSum(u, list, i)
			}
		}
		return u
	})
	if body != v.body {
		v.body = body
		s.record(IntConstant, v, true, "integer plus constant")
	}
}

// R2d distributes a sum over the digits of integer activations:
// REDUCE(ADD, (c*f(hi) + f(lo))*q) -> REDUCE(ADD, c*f(hi)*q) + REDUCE(ADD,
// f(lo)*q), so that each is a sum of products of bytes.
func (s *scheduler) distributeDigits(v *value) {
	if !s.readsField(v.body) {
		return
	}
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		if !s.splitsSum(v, u) || s.height(u.Src[0]) > 0 {
			return u
		}
		list := factors(u.Src[0])
		for i, f := range list {
			if (f.Op == ir.OpAdd || f.Op == ir.OpSub) && s.isWidened(f) {
				return s.splitSum(u, list, i)
			}
		}
		return u
	})
	if body != v.body {
		v.body = body
		s.record(Digits, v, true, "digits of integers")
	}
}

// maxExactInteger bounds integers whose offset is exact in f32.
const maxExactInteger = 1 << 20

// isOffsetInteger reports float(q)+c or float(q)-c of packed fields.
func (s *scheduler) isOffsetInteger(f *ir.UOp) bool {
	if f.Op != ir.OpAdd && f.Op != ir.OpSub {
		return false
	}
	q, c := f.Src[0], f.Src[1]
	value, ok := c.Float()
	if !ok || value != float64(int64(value)) || value > maxExactInteger || value < -maxExactInteger {
		return false
	}
	if q.Op != ir.OpCast || !(q.Src[0].DType.IsInt() || q.Src[0].DType == ir.Bool) || !s.isFieldsOnly(q) {
		return false
	}
	return s.bounds.Of(q.Src[0]).Within(-maxExactInteger, maxExactInteger)
}
