package ir

import (
	"slices"

	"tgc/internal/lists"
)

// access is a LOAD or FIELD of a PARAM that some store writes, with the
// conditions under which it is not evaluated.
type access struct {
	node   *UOp
	unless []*UOp // conditions of WHEREs in whose false arm it stands
}

// hazards checks stores against each other and against what they read. A SINK
// computes all values of a point before it writes one of them.
func (v *kernelVerifier) hazards(root *UOp, stores []*UOp) error {
	sinks := sinksOf(root)
	written := make(map[*UOp][]*UOp)
	for i, s := range stores {
		for _, t := range stores[:i] {
			if s.Src[0] == t.Src[0] && !v.disjoint(s.Indices(), t.Indices()) {
				return nodeError(s, "writes where %s may write", NodeText(t))
			}
		}
		written[s.Src[0]] = append(written[s.Src[0]], s)
	}
	for _, s := range stores {
		if !v.readsWritten(s, written) {
			continue
		}
		for _, r := range v.accesses(s, written) {
			for _, w := range written[r.node.Src[0]] {
				if !v.mayRead(w, r) && !(sinks[s] == sinks[w] && readsOwnPoint(s, w, r.node)) {
					return nodeError(s, "reads %s, which %s writes at another point", NodeText(r.node), NodeText(w))
				}
			}
		}
	}
	return nil
}

// readsWritten is the quick answer for the usual kernel, which does not read
// what it writes.
func (v *kernelVerifier) readsWritten(s *UOp, written map[*UOp][]*UOp) bool {
	return slices.ContainsFunc(Toposort(s.Src[1:]...), func(u *UOp) bool { return written[u] != nil })
}

// maxAccessPaths bounds the walk over (node, conditions) pairs; past it a
// kernel counts as too tangled to prove.
const maxAccessPaths = 1 << 16

// accesses lists the reads of written params in a store's value and indices.
func (v *kernelVerifier) accesses(s *UOp, written map[*UOp][]*UOp) []access {
	type visit struct {
		node   *UOp
		unless *UOp
	}
	seen := make(map[visit]bool)
	var list []access
	stack := lists.Map(s.Src[1:], func(u *UOp) access { return access{node: u} })
	for len(stack) > 0 && len(seen) < maxAccessPaths {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		key := visit{node: top.node}
		if len(top.unless) > 0 {
			key.unless = top.unless[len(top.unless)-1]
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		u := top.node
		if (u.Op == OpLoad || u.Op == OpField) && written[u.Src[0]] != nil {
			list = append(list, top)
		}
		for i, src := range u.Src {
			next := access{node: src, unless: top.unless}
			if u.Op == OpWhere && i == 2 {
				next.unless = append(slices.Clone(top.unless), u.Src[0])
			}
			stack = append(stack, next)
		}
	}
	return list
}

// sinksOf tells to which SINK a store belongs.
func sinksOf(root *UOp) map[*UOp]*UOp {
	sinks := []*UOp{root}
	if root.Op == OpPar {
		sinks = root.Src
	}
	of := make(map[*UOp]*UOp)
	for _, sink := range sinks {
		for _, s := range sink.Src {
			of[s] = sink
		}
	}
	return of
}

// readsOwnPoint reports a LOAD in store s of what store w of the same SINK writes
// in the same iteration: itself, or one whose loops are the same and all in its
// index, so that no other iteration writes there.
func readsOwnPoint(s, w, load *UOp) bool {
	if load.Op != OpLoad || !slices.Equal(load.Indices(), w.Indices()) {
		return false
	}
	if s == w {
		return true
	}
	for _, r := range w.Ranges() {
		if !slices.Contains(w.Indices(), r) {
			return false
		}
	}
	return slices.Equal(s.Ranges(), w.Ranges())
}

// mayRead reports that a read never meets what store w writes.
func (v *kernelVerifier) mayRead(w *UOp, r access) bool {
	index := r.node.Src[1:]
	if r.node.Op == OpField {
		return false
	}
	return v.disjoint(index, w.Indices()) || v.guarded(r, w.Indices())
}

// disjoint proves that two index tuples never meet, ranges of both renamed
// apart: in some axis the bounds or the residues exclude each other.
func (v *kernelVerifier) disjoint(x, y []*UOp) bool {
	for i := range x {
		p, q := v.bounds.Of(x[i]), v.bounds.Of(y[i])
		equal := compareInterval(OpCmpEq, Idx, p, q)
		if c, ok := equal.Const(); ok && c == 0 {
			return true
		}
	}
	return false
}

// apartBase is added to the ids of a store's ranges to tell them from those of
// the store that reads.
const apartBase = 1 << 24

// guarded reports a read in the false arm of a WHERE whose condition holds
// wherever the read index is the written one: there the other arm is taken.
// Both stores may use one range, each with its own value: the writer's ranges
// are renamed. Where a coordinate is such a range, it equals the read's index.
func (v *kernelVerifier) guarded(r access, written []*UOp) bool {
	if len(r.unless) == 0 {
		return false
	}
	a := v.arena
	apart, equal := make(map[*UOp]*UOp), make(map[*UOp]*UOp)
	for _, x := range written {
		for _, u := range v.free.Of(x) {
			apart[u] = a.Range(u.Arg.(RangeArg).ID+apartBase, u.Src[0])
		}
	}
	index := r.node.Src[1:]
	renamed := make([]*UOp, len(written))
	for i, x := range written {
		renamed[i] = a.Substitute(x, apart)
		if renamed[i].Op == OpRange {
			equal[renamed[i]] = index[i]
		}
	}
	var gaps []LinearForm
	for i, x := range index {
		for _, y := range []*UOp{renamed[i], a.Substitute(renamed[i], equal)} {
			if gap, ok := v.linear.Of(x).Plus(v.linear.Of(y), -1); ok {
				gaps = append(gaps, gap)
			}
		}
	}
	return slices.ContainsFunc(r.unless, func(cond *UOp) bool { return v.implied(cond, gaps, 0) })
}

// maxConditionDepth bounds the nesting of and and or that is looked through.
const maxConditionDepth = 32

// implied reports that a condition holds if all gaps are 0.
func (v *kernelVerifier) implied(cond *UOp, gaps []LinearForm, depth int) bool {
	if depth > maxConditionDepth {
		return false
	}
	switch cond.Op {
	case OpAnd:
		return v.implied(cond.Src[0], gaps, depth+1) && v.implied(cond.Src[1], gaps, depth+1)
	case OpOr:
		return v.implied(cond.Src[0], gaps, depth+1) || v.implied(cond.Src[1], gaps, depth+1)
	case OpCmpEq, OpCmpLt, OpNot:
		return v.impliedCompare(cond, gaps)
	}
	return false
}

// impliedCompare is implied for a comparison of indices: an equality that is one
// of the gaps, or an order that the bounds prove once a gap is added.
func (v *kernelVerifier) impliedCompare(cond *UOp, gaps []LinearForm) bool {
	compare, margin := cond, int64(-1) // x < y: y - x - 1 >= 0
	if cond.Op == OpNot {
		compare, margin = cond.Src[0], 0
	}
	if compare.Op != OpCmpEq && compare.Op != OpCmpLt || compare.Src[0].DType != Idx {
		return false
	}
	x, y := v.linear.Of(compare.Src[0]), v.linear.Of(compare.Src[1])
	if cond.Op == OpNot { // not x < y: x - y >= 0
		x, y = y, x
	}
	room, ok := y.Plus(x, -1)
	if !ok {
		return false
	}
	if compare.Op == OpCmpEq {
		return cond == compare && slices.ContainsFunc(gaps, func(gap LinearForm) bool { return sameUpToSign(gap, room) })
	}
	return slices.ContainsFunc(gaps, func(gap LinearForm) bool { return v.roomBeside(room, margin, gap) })
}

// roomBeside proves room + margin >= 0 where gap is 0: for a scale k, which
// makes terms of room and gap cancel, k*room plus or minus gap has bounds above
// -k*(margin+1), and room is an integer.
func (v *kernelVerifier) roomBeside(room LinearForm, margin int64, gap LinearForm) bool {
	scales := []int64{1}
	for _, t := range room.Terms {
		if c := gap.Coef(t.Atom); c != 0 && c > -maxID && c < maxID && !slices.Contains(scales, max(c, -c)) {
			scales = append(scales, max(c, -c))
		}
	}
	for _, k := range scales {
		scaled, ok := LinearForm{}.Plus(room, k)
		for _, sign := range []int64{1, -1} {
			f, fits := scaled.Plus(gap, sign)
			if ok && fits && v.bounds.OfForm(f).Lo > -k*(margin+1) {
				return true
			}
		}
	}
	return false
}

func sameUpToSign(f, g LinearForm) bool {
	negated, ok := LinearForm{}.Plus(f, -1)
	return f.Equal(g) || ok && negated.Equal(g)
}
