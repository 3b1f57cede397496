package ir

// Rebuild makes the nodes under a root anew, sources first, each once: the one
// walk of all that replaces nodes of a graph. It does not recurse.
type Rebuild struct {
	Arena *Arena
	// Visit returns what a node becomes, given what its sources became, or nil
	// for the node with those sources. It must not change src.
	Visit func(u *UOp, src []*UOp) *UOp
	// Instead, if there is one, is asked before a node's sources are walked, once
	// for every use: what it returns takes the node's place and is not walked; nil
	// walks on.
	Instead func(u *UOp) *UOp

	done NodeMap[*UOp]
}

// Rebuild walks one graph with a visitor alone.
func (a *Arena) Rebuild(root *UOp, visit func(u *UOp, src []*UOp) *UOp) *UOp {
	r := Rebuild{Arena: a, Visit: visit}
	return r.Do(root)
}

// Of is what a node became that was walked; nil for others.
func (r *Rebuild) Of(u *UOp) *UOp { return r.done.Of(u) }

// Do returns what root becomes. Several roots may be done one after another:
// nodes that they share are visited once.
func (r *Rebuild) Do(root *UOp) *UOp {
	if to := r.known(root); to != nil {
		return to
	}
	type frame struct {
		node *UOp
		next int
	}
	stack := []frame{{node: root}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		u := top.node
		if top.next == len(u.Src) {
			stack = stack[:len(stack)-1]
			r.done.Set(u, r.visit(u))
			continue
		}
		source := u.Src[top.next]
		top.next++
		if r.known(source) == nil {
			stack = append(stack, frame{node: source})
		}
	}
	return r.done.Of(root)
}

// known is what a node becomes, nil where that is not known yet.
func (r *Rebuild) known(u *UOp) *UOp {
	if r.Instead != nil {
		if to := r.Instead(u); to != nil {
			return to
		}
	}
	return r.done.Of(u)
}

func (r *Rebuild) visit(u *UOp) *UOp {
	src, own := u.Src, false
	for i, s := range u.Src {
		to := r.known(s)
		if to == s {
			continue
		}
		if !own {
			src, own = append([]*UOp(nil), u.Src...), true
		}
		src[i] = to
	}
	if r.Visit != nil {
		before := r.Arena.MakeFor(u)
		to := r.Visit(u, src)
		r.Arena.MakeAgainFor(before)
		if to != nil {
			r.Arena.foundFor(u, to)
			return to
		}
	}
	return r.Arena.With(u, src)
}
