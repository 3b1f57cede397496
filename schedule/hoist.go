package schedule

import (
	"slices"

	"tgc/ir"
)

// R2, hoist: REDUCE(ADD, f1*..*fn; k): factors free of k move out. With
// look-through, a factor that reads a pointwise value P is replaced by P's
// factors iff that exposes a factor free of k that is no constant. Then what
// stays behind, when it is more than a few operations, becomes a value of its
// own, one for all readers: else a quantised activation would be recomputed for
// every output row. Only sums: a maximum changes with the factor's sign, and a
// narrowing CAST, WHERE or EXP2 is opaque. Assumes finite inputs.
//
// "RMSNorm folds into the matvec" is this rule and R4.

// hoist applies R2 to every float sum of a value.
func (s *scheduler) hoist(v *value, lookThrough bool) {
	factors, times := int64(0), int64(1)
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || !u.DType.IsFloat() {
			return u
		}
		out, in := s.hoistFactors(u, lookThrough)
		if len(out) > 0 {
			factors += int64(len(out))
			times = max(times, s.points(binderRanges(u)))
		}
		if len(out) == 0 {
			return u
		}
		return s.product(append(out, s.sumOf(in, u)))
	})
	if body != v.body {
		v.body = body
		s.record(Hoist, v, true, "factor free of the sum", Number{"factors", factors}, Number{"extent", times})
	}
}

// sumOf is the sum over u's range of a product.
func (s *scheduler) sumOf(list []*ir.UOp, u *ir.UOp) *ir.UOp {
	p := s.product(list)
	if p == nil {
		p = s.a.Const(u.DType, 1)
	}
	return s.closeReduce(s.a.Reduce(ir.OpAdd, p, u.ReduceRange()))
}

// hoistFactors parts the factors of a sum into those free of its range and the
// rest.
func (s *scheduler) hoistFactors(u *ir.UOp, lookThrough bool) (out, in []*ir.UOp) {
	k := u.ReduceRange()
	for _, f := range factors(u.Src[0]) {
		if !s.dependsOn(f, k) {
			out = append(out, f)
			continue
		}
		if lookThrough {
			if exposed, rest, ok := s.lookThrough(f, func(g *ir.UOp) bool { return !s.dependsOn(g, k) }); ok {
				out = append(out, exposed...)
				in = append(in, rest...)
				continue
			}
		}
		in = append(in, f)
	}
	return out, in
}

// lookThrough replaces a read of a pointwise value by that value's factors, if
// one of them satisfies wanted and is no constant. It returns the wanted
// factors and the others, the latter possibly as one read of a new value.
func (s *scheduler) lookThrough(f *ir.UOp, wanted func(*ir.UOp) bool) (exposed, rest []*ir.UOp, ok bool) {
	p, isRead := s.isRead(f)
	if !isRead || p.pinned || p.target >= 0 || p.split || !s.isPointwise(p) || s.factsOf(p.body).weights {
		return nil, nil, false // a decode must not move into every row
	}
	index := f.Indices()
	var inner []*ir.UOp // factors of P that stay, over P's ranges
	for _, g := range factors(p.body) {
		at := s.atIndex(p.ranges, g, index)
		switch {
		case wanted(at):
			exposed = append(exposed, at)
			ok = ok || at.Op != ir.OpConst
			continue
		case s.isReadOfPointwise(g):
			if more, left, deeper := s.lookThrough(at, wanted); deeper {
				exposed, rest, ok = append(exposed, more...), append(rest, left...), true
				continue
			}
		}
		inner = append(inner, g)
	}
	if !ok {
		return nil, nil, false
	}
	if len(inner) > 0 {
		rest = append(rest, s.restOf(p, inner, index))
	}
	return exposed, rest, true
}

func (s *scheduler) isReadOfPointwise(g *ir.UOp) bool {
	p, ok := s.isRead(g)
	return ok && s.isPointwise(p)
}

// restOf is the product of some factors of P at an index: inline when it is
// cheap enough to be repeated for every output row, else a read of a value of
// its own.
func (s *scheduler) restOf(p *value, list, index []*ir.UOp) *ir.UOp {
	if narrow := s.narrowRest(p, list, index); narrow != nil {
		return narrow
	}
	body := s.product(list)
	if len(list) == 1 && body.Op == ir.OpLoad || !isNarrowing(body) && s.operations(body) <= s.opt.Profile.RepeatOps && s.points(p.ranges) <= s.opt.Profile.RepeatCap {
		return s.atIndex(p.ranges, body, index)
	}
	rest, ok := s.restMemo[body]
	if !ok {
		rest = s.newValue(body.DType, nil, nil)
		ranges := slices.DeleteFunc(slices.Clone(p.ranges), func(r *ir.UOp) bool { return !s.dependsOn(body, r) })
		s.setSignature(rest, ranges, body)
		s.restMemo[body] = rest
	}
	var at []*ir.UOp
	for i, r := range p.ranges {
		if s.dependsOn(body, r) {
			at = append(at, index[i])
		}
	}
	return s.a.Load(rest.node, at...)
}

// narrowRest is restOf where the factors widen narrow integers (the digits of
// quantised activations): those become the values, a byte each instead of a
// float, and every reader widens them. nil where that is not so.
func (s *scheduler) narrowRest(p *value, list, index []*ir.UOp) *ir.UOp {
	body := s.product(list)
	var wide []*ir.UOp
	for _, u := range ir.Toposort(body) {
		if s.widensInteger(u) {
			wide = append(wide, u)
		}
	}
	if len(wide) == 0 {
		return nil
	}
	with := make(map[*ir.UOp]*ir.UOp, len(wide))
	for i, u := range wide {
		with[u] = s.a.Const(u.DType, float64(i+2)) // stands for the read, which has other ranges
	}
	shell := s.substitute(body, with)
	if len(s.free.of(shell)) > 0 || s.operations(shell) > s.opt.Profile.InlineOps {
		return nil
	}
	clear(with)
	for _, u := range wide {
		with[u] = s.a.Cast(s.restOf(p, u.Src, index), u.DType)
	}
	return s.substitute(body, with)
}

// widensInteger reports the conversion to float of a narrow integer that is
// computed: neither read from memory as it is, nor from packed fields.
func (s *scheduler) widensInteger(u *ir.UOp) bool {
	if u.Op != ir.OpCast || !u.DType.IsFloat() {
		return false
	}
	x := u.Src[0]
	return x.DType.IsInt() && x.DType.Size() <= 2 && x.Op != ir.OpLoad && x.Op != ir.OpConst && !s.readsField(x)
}

// isNarrowing reports the conversion to a byte of something wider: a value worth
// keeping, however cheap it is to make.
func isNarrowing(u *ir.UOp) bool {
	return u.Op == ir.OpCast && u.DType.IsInt() && u.DType.Size() == 1 && u.Src[0].DType.Size() > 1
}

// readsField reports an expression that reads packed data.
func (s *scheduler) readsField(u *ir.UOp) bool {
	if len(u.Src) == 0 || u.Op == ir.OpField {
		return u.Op == ir.OpField
	}
	hit, ok := s.fields.Get(u)
	if !ok {
		hit = slices.ContainsFunc(u.Src, s.readsField)
		s.fields.Set(u, hit)
	}
	return hit
}

// hasIntegerFactor reports a sum of products with integers that are no weights:
// a factor that widens narrow integers, itself or as a factor of the pointwise
// value that it reads.
func (s *scheduler) hasIntegerFactor(u *ir.UOp) bool {
	for _, f := range factors(u.Src[0]) {
		if s.isWidened(f) {
			return true
		}
		if p, ok := s.isRead(f); ok && s.isPointwise(p) && !s.factsOf(p.body).weights && slices.ContainsFunc(factors(p.body), s.isWidened) {
			return true
		}
	}
	return false
}

// isWidened reports narrow integers converted to float, or a sum of such with
// constant factors.
func (s *scheduler) isWidened(f *ir.UOp) bool {
	switch f.Op {
	case ir.OpCast:
		x := f.Src[0]
		return x.DType.IsInt() && x.DType.Size() <= 2 && !s.readsField(x)
	case ir.OpAdd, ir.OpSub:
		return s.isWidened(f.Src[0]) && s.isWidened(f.Src[1])
	case ir.OpMul:
		return s.isWidened(f.Src[0]) && f.Src[1].Op == ir.OpConst
	}
	return false
}

// splitsSum reports a sum of v that the packed-sum rules may take apart. Of a
// matrix product on a CPU they may not: its decoded rows are staged once for all
// tokens, and a step of a group's sum costs more than one of f32.
func (s *scheduler) splitsSum(v *value, u *ir.UOp) bool {
	if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || !u.DType.IsFloat() {
		return false
	}
	p := &s.opt.Profile
	return !p.IntegerSums || s.hasIntegerFactor(u) && (p.TileReuse == 0 || s.weightReuse(v) <= p.TileReuse)
}

// setSignature gives a new value ranges of its own for those that its body uses.
func (s *scheduler) setSignature(v *value, ranges []*ir.UOp, body *ir.UOp) {
	own := make([]*ir.UOp, len(ranges))
	extents := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		own[i] = s.newRange(r.Src[0])
		extents[i] = r.Src[0]
	}
	v.ranges, v.body = own, s.atIndex(ranges, body, own)
	v.node = s.a.Make(ir.OpValue, body.DType, ir.ValueArg{ID: v.id}, extents...)
}
