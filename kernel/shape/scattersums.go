package shape

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// SCATTER. A store of a fold each of whose terms counts at one point k of the axis,
//
//	z[k, c] = epilogue(fold(op, WHERE(k == at(j) & cond, term(j, c), identity); j))
//
// becomes three stores into the same buffer, one after the other in each work unit:
//
//	for k: for c:            z[k, c] = identity
//	for j: if cond: for c:   z[at(j), c] = op(z[at(j), c], term(j, c))
//	for k: for c:            z[k, c] = epilogue(z[k, c])
//
// Terms of a point meet in the order of j, as they would in the fold. A work unit that
// has some of the points takes the terms that are theirs. Threads of a block have every
// n-th of its points: a condition of its own says whose a term is, so that lowering finds
// what belongs to the block first (kernel/lower/sparse.go).

// scatterSums carries SCATTER out. All ranges are split.
func scatterSums(st *State) error {
	for _, x := range st.Axes {
		if !x.Scatter {
			continue
		}
		if len(st.Sink.Src) != 1 {
			return planError("SCATTER of %s: %d stores, want one", x.Axis.Name, len(st.Sink.Src))
		}
		return st.scatter(x)
	}
	return nil
}

func (st *State) scatter(x Axis) error {
	a, store := st.Arena, st.Sink.Src[0]
	target, value := store.Src[0], store.Src[1]
	k, thread, err := st.scatteredPoint(x)
	if err != nil {
		return err
	}
	s, ok := analyse.ScatterOf(a, st.bounds, value, k)
	switch {
	case !ok:
		return planError("SCATTER of %s: no fold whose terms count at one point of it", x.Axis.Name)
	case s.Fold.DType != target.DType:
		return planError("SCATTER of %s: what is folded is %s, what is stored %s", x.Axis.Name, s.Fold.DType, target.DType)
	case readsStored(st.Sink):
		return planError("SCATTER of %s: the kernel reads what it writes", x.Axis.Name)
	case thread != nil && !thread.Src[0].IsInt(s.Stride):
		return planError("SCATTER of %s: threads have every point of a few, not one after the other", x.Axis.Name)
	case slices.ContainsFunc(s.Loops, func(r *ir.UOp) bool { return st.roles[r] != plan.Serial }):
		return planError("SCATTER of %s: what is folded is split", x.Axis.Name)
	}
	op := s.Fold.Arg.(ir.ReduceArg).Op
	stores := []*ir.UOp{st.storing(store, a.FoldIdentity(op, s.Fold.DType))}
	gates := [][]*ir.UOp{st.gates[0]}
	added, when := st.addedTerm(store, s, k, thread)
	stores, gates = append(stores, added), append(gates, when)
	if value != s.Fold {
		own := a.Load(target, store.Indices()...)
		stores = append(stores, st.storing(store, a.Substitute(value, map[*ir.UOp]*ir.UOp{s.Fold: own})))
		gates = append(gates, st.gates[0])
	}
	st.Sink, st.gates = st.simp.Do(a.With(st.Sink, stores)), gates
	return nil
}

// scatteredPoint is the loop over the points of an axis within a work unit, or else that
// over work units, and the threads that share them; nil for none.
func (st *State) scatteredPoint(x Axis) (k, thread *ir.UOp, err error) {
	subAxes := x.Split.SubAxes
	if n := len(subAxes); n > 1 && subAxes[n-1].Role.IsThread() && subAxes[n-1].Stride == 1 {
		thread, subAxes = subAxes[n-1].Range, subAxes[:n-1]
	}
	for i, d := range subAxes {
		last := i == len(subAxes)-1
		if last && (d.Role == plan.Serial || d.Role == plan.Grid) && x.Split.last == nil {
			return d.Range, thread, nil
		}
		if last || d.Role != plan.Grid {
			break
		}
	}
	return nil, nil, planError("SCATTER of %s: want its points in work units, in a loop within those, and among threads", x.Axis.Name)
}

// storing is a store with another value.
func (st *State) storing(store, value *ir.UOp) *ir.UOp {
	src := slices.Clone(store.Src)
	src[1] = value
	return st.Arena.With(store, src)
}

// addedTerm is the store of a term where it belongs, with its conditions. The element is
// read where it is written: inside the loops of the fold and of the store.
func (st *State) addedTerm(store *ir.UOp, s *analyse.Scatter, k, thread *ir.UOp) (added *ir.UOp, when []*ir.UOp) {
	a, target := st.Arena, store.Src[0]
	whole, stride := s.Whole, a.Index(1)
	if thread != nil { // of the points of a block those of a thread are Stride apart
		whole, stride = a.Substitute(whole, map[*ir.UOp]*ir.UOp{thread: a.Index(0)}), a.Index(s.Stride)
		when = append(when, a.Eq(thread, a.Mod(whole, stride)))
	} else {
		whole = s.At
	}
	own := a.Div(whole, stride)
	point := map[*ir.UOp]*ir.UOp{k: own}
	if st.roles[k] == plan.Grid {
		when = append(when, a.Eq(k, own))
	} else {
		when = append(when, a.Lt(a.Index(-1), whole), a.Lt(whole, a.Mul(k.Src[0], stride)))
	}
	at := func(u *ir.UOp) *ir.UOp { return a.Substitute(u, point) }
	op := s.Fold.Arg.(ir.ReduceArg).Op
	indices := lists.Map(store.Indices(), at)
	sum := a.Binary(op, a.Load(target, indices...), at(s.Term))
	src := append([]*ir.UOp{target, sum}, indices...)
	src = append(src, s.Loops...)
	for _, r := range store.Ranges() {
		if r != k || st.roles[k] == plan.Grid {
			src = append(src, r)
		}
	}
	conditions := s.Cond
	if thread != nil { // that nothing remains is said by the thread's condition
		conditions = conditions[:len(conditions)-1]
	}
	for _, g := range append(slices.Clone(st.gates[0]), conditions...) {
		when = append(when, at(g))
	}
	return a.Make(ir.OpStore, store.DType, store.Arg, src...), when
}
