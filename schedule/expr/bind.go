package expr

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// CloseReduce gives the range of a REDUCE its canonical name, or the next that
// is not free in its values: a reduce that just became deeper may be inside
// one whose range still has the name that it needs.
func (s *Exprs) CloseReduce(u *ir.UOp) *ir.UOp {
	r := u.ReduceRange()
	h := 0
	for _, v := range u.ReduceValues() {
		h = max(h, s.Height(v))
	}
	name := s.A.Range(h+1, r.Src[0])
	for name != r && slices.ContainsFunc(u.ReduceValues(), func(v *ir.UOp) bool { return s.DependsOn(v, name) }) {
		h++
		name = s.A.Range(h+1, r.Src[0])
	}
	if name == r {
		return u
	}
	return s.A.With(u, s.Rename(u.Src, map[*ir.UOp]*ir.UOp{r: name}))
}

// CloseStage gives the ranges of a STAGE their canonical names.
func (s *Exprs) CloseStage(u *ir.UOp) *ir.UOp {
	h := s.Height(u.Src[0])
	with := make(map[*ir.UOp]*ir.UOp)
	for _, r := range u.Src[1:] {
		name := s.A.Range(h+1, r.Src[0])
		for !slices.Contains(u.Src[1:], name) && s.DependsOn(u.Src[0], name) {
			h++
			name = s.A.Range(h+1, r.Src[0])
		}
		with[r] = name
		h++
	}
	return s.A.With(u, s.Rename(u.Src, with))
}

// Rename substitutes in several expressions with one memo.
func (s *Exprs) Rename(list []*ir.UOp, with map[*ir.UOp]*ir.UOp) []*ir.UOp {
	if len(with) == 0 {
		return slices.Clone(list)
	}
	t := s.substitution(with)
	return lists.Map(list, t.do)
}

// Substitute replaces ranges (or reads) in u. Subtrees that do not use a
// replaced range are kept without a visit.
func (s *Exprs) Substitute(u *ir.UOp, with map[*ir.UOp]*ir.UOp) *ir.UOp {
	if len(with) == 0 {
		return u
	}
	return s.substitution(with).do(u)
}

func (s *Exprs) substitution(with map[*ir.UOp]*ir.UOp) *substitution {
	t := &substitution{s: s, with: with, onlyRanges: true, onlyBinding: true}
	for k := range with {
		t.onlyRanges = t.onlyRanges && k.Op == ir.OpRange
		t.onlyBinding = t.onlyBinding && s.Height(k) > 0
	}
	return t
}

type substitution struct {
	s    *Exprs
	with map[*ir.UOp]*ir.UOp
	done ir.NodeMap[*ir.UOp]

	onlyRanges  bool // all that is replaced are ranges
	onlyBinding bool // all of it closes a range
}

func (t *substitution) do(u *ir.UOp) *ir.UOp {
	if r, ok := t.with[u]; ok {
		return r
	}
	if len(u.Src) == 0 || t.onlyBinding && t.s.Height(u) == 0 {
		return u
	}
	if r, ok := t.done.Get(u); ok {
		return r
	}
	r := u
	if !t.onlyRanges || t.touches(u) {
		src := u.Src
		for i, x := range u.Src {
			y := t.do(x)
			if y != x {
				if &src[0] == &u.Src[0] {
					src = append([]*ir.UOp(nil), u.Src...)
				}
				src[i] = y
			}
		}
		if &src[0] != &u.Src[0] {
			r = t.s.SimplifyNode(t.s.A.With(u, src))
		}
	}
	t.done.Set(u, r)
	return r
}

// touches reports that a replaced range may occur in u, also in components of
// tuples that no projection in u shows.
func (t *substitution) touches(u *ir.UOp) bool {
	return slices.ContainsFunc(t.s.Mentions.Of(u), func(r *ir.UOp) bool {
		_, ok := t.with[r]
		return ok
	})
}

// AtIndex substitutes an index for ranges in an expression over them.
func (s *Exprs) AtIndex(ranges []*ir.UOp, body *ir.UOp, index []*ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for i, r := range ranges {
		if r != index[i] {
			with[r] = index[i]
		}
	}
	return s.Substitute(body, with)
}
