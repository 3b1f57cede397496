package expr

import (
	"tgc/ir"
	"tgc/pass"
	"tgc/rewrite"
)

// Simplify brings an index expression or condition to its canonical form.
func (s *Exprs) Simplify(u *ir.UOp) *ir.UOp { return s.index.Do(u) }

// TraceRewrites tells control of every rule that fires.
func (s *Exprs) TraceRewrites(control *pass.Control) { TraceRewrites(s.index, "", control) }

// TraceRewrites tells control of every rule that fires in a simplifier, if it wants to know.
func TraceRewrites(simplifier *rewrite.Simplifier, subject string, control *pass.Control) {
	if !control.WatchesRewrites() {
		return
	}
	simplifier.Trace(func(f rewrite.Firing) {
		control.Rewritten(subject, pass.Rewrite{Rule: f.Rule.String(), Before: KernelText(f.Before), After: KernelText(f.After)})
	})
}

// SimplifyNode simplifies a node whose sources are simplified: index
// expressions, conditions and integers that positions are computed in, and the
// WHEREs that they decide. Float arithmetic is left alone, also under the bits of
// a float: two readers of one value would no longer have it in the same form.
func (s *Exprs) SimplifyNode(u *ir.UOp) *ir.UOp {
	switch {
	case u.Op == ir.OpRange:
		return u
	case (u.DType == ir.I32 || u.DType == ir.I64) && s.readsBits(u):
		return u
	case u.DType == ir.Idx || u.DType == ir.Bool || u.DType == ir.I32 || u.DType == ir.I64:
		return s.Simplify(u)
	case u.Op == ir.OpWhere:
		return s.choose(u)
	}
	return u
}

// readsBits reports integers that come from the bits of floats.
func (s *Exprs) readsBits(u *ir.UOp) bool {
	if known, ok := s.bits.Get(u); ok {
		return known
	}
	out := u.Op == ir.OpBitcast && u.Src[0].DType.IsFloat()
	if u.Op.IsElementwise() {
		for _, x := range u.Src {
			out = out || !x.DType.IsFloat() && s.readsBits(x)
		}
	}
	s.bits.Set(u, out)
	return out
}
