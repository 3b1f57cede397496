package ir

import "slices"

// FreeRanges answers which RANGEs a node uses that nothing below it closes:
//
//	free(RANGE)              = itself and those of its extent
//	free(REDUCE(op, v; k))   = free(v) - {k} + free(extent of k)
//	free(PROJ(tuple, i))     = free(v0) + free(vi) - {k} + free(extent of k)
//	free(STAGE(v; z))        = free(v) - {z} + free(extents of z)
//	free(STORE(p, v; r))     = free(v) + free(indices) - {r} + free(extents of r)
//
// and otherwise the union of the sources'. Lists are sorted by Compare, shared,
// and must not be changed. It remembers results and does not recurse.
type FreeRanges struct {
	memo map[*UOp][]*UOp
	todo []*UOp
}

// NewFreeRanges makes an empty memo; it may serve many graphs of one arena.
func NewFreeRanges() *FreeRanges { return &FreeRanges{memo: make(map[*UOp][]*UOp)} }

// Of lists the free ranges of u.
func (f *FreeRanges) Of(u *UOp) []*UOp {
	f.todo = append(f.todo[:0], u)
	for len(f.todo) > 0 {
		top := f.todo[len(f.todo)-1]
		if _, done := f.memo[top]; done {
			f.todo = f.todo[:len(f.todo)-1]
			continue
		}
		ready := true
		for _, s := range top.Src {
			if _, done := f.memo[s]; !done {
				f.todo = append(f.todo, s)
				ready = false
			}
		}
		if ready {
			f.memo[top] = f.compute(top)
			f.todo = f.todo[:len(f.todo)-1]
		}
	}
	return f.memo[u]
}

func (f *FreeRanges) compute(u *UOp) []*UOp {
	switch u.Op {
	case OpRange:
		return unionSorted(f.memo[u.Src[0]], []*UOp{u})
	case OpReduce:
		return f.close(u.ReduceValues(), []*UOp{u.ReduceRange()})
	case OpProj:
		tuple := u.Src[0]
		values := tuple.ReduceValues()
		return f.close([]*UOp{values[0], values[u.Arg.(IntArg)]}, []*UOp{tuple.ReduceRange()})
	case OpStage:
		return f.close(u.Src[:1], u.Src[1:])
	case OpStore:
		return f.close(u.Src[:2+len(u.Indices())], u.Ranges())
	}
	var list []*UOp
	for _, s := range u.Src {
		list = unionSorted(list, f.memo[s])
	}
	return list
}

// close is the union over nodes without the closed ranges, plus what the
// closed ranges' extents use.
func (f *FreeRanges) close(nodes, closed []*UOp) []*UOp {
	var list []*UOp
	for _, u := range nodes {
		list = unionSorted(list, f.memo[u])
	}
	list = slices.DeleteFunc(slices.Clone(list), func(r *UOp) bool { return slices.Contains(closed, r) })
	for _, r := range closed {
		for _, s := range r.Src {
			outer := slices.DeleteFunc(slices.Clone(f.memo[s]), func(r *UOp) bool { return slices.Contains(closed, r) })
			list = unionSorted(list, outer)
		}
	}
	return list
}

// unionSorted merges two lists sorted by Compare; it returns one of them when
// that holds the other.
func unionSorted(x, y []*UOp) []*UOp {
	switch {
	case len(x) == 0:
		return y
	case len(y) == 0:
		return x
	}
	merged := make([]*UOp, 0, len(x)+len(y))
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		switch c := Compare(x[i], y[j]); {
		case c == 0:
			merged = append(merged, x[i])
			i, j = i+1, j+1
		case c < 0:
			merged = append(merged, x[i])
			i++
		default:
			merged = append(merged, y[j])
			j++
		}
	}
	merged = append(append(merged, x[i:]...), y[j:]...)
	if len(merged) == len(x) {
		return x
	}
	if len(merged) == len(y) {
		return y
	}
	return merged
}
