package ir

// Rebuild makes the nodes under a root anew, sources first, each once: the one
// walk of all that replaces nodes of a graph. It does not recurse.
type Rebuild struct {
	Arena *Arena
	// Visit returns what a node becomes, given what its sources became, or nil
	// for the node with those sources. It must not change src.
	Visit func(u *UOp, src []*UOp) *UOp
	// Instead, if there is one, is asked before a node's sources are walked:
	// what it returns takes the node's place and is not walked; nil walks on.
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
	type frame struct {
		node *UOp
		next int
	}
	var stack []frame
	var open Visited // on the stack or done
	enter := func(u *UOp) {
		if r.done.Has(u) || !open.Add(u) {
			return
		}
		if r.Instead != nil {
			if to := r.Instead(u); to != nil {
				r.done.Set(u, to)
				return
			}
		}
		stack = append(stack, frame{node: u})
	}
	enter(root)
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next < len(top.node.Src) {
			top.next++
			enter(top.node.Src[top.next-1])
			continue
		}
		u := top.node
		stack = stack[:len(stack)-1]
		r.done.Set(u, r.visit(u))
	}
	return r.done.Of(root)
}

func (r *Rebuild) visit(u *UOp) *UOp {
	src := u.Src
	for i, s := range u.Src {
		to := r.done.Of(s)
		if to == s {
			continue
		}
		src = make([]*UOp, len(u.Src))
		copy(src, u.Src[:i])
		for j := i; j < len(src); j++ {
			src[j] = r.done.Of(u.Src[j])
		}
		break
	}
	if r.Visit != nil {
		if to := r.Visit(u, src); to != nil {
			return to
		}
	}
	return r.Arena.With(u, src)
}
