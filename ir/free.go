package ir

import "slices"

// Free answers which RANGEs a node uses that nothing below it closes, as sets
// of kind S. It is the one meaning of "depends on a range":
//
//	free(RANGE r)            = {r} + free(extent of r)
//	free(REDUCE(op, v..; k)) = free(v..) - {k} + (free(extent of k) - {k})
//	free(PROJ(tuple, i))     = the same over the values that component i needs
//	free(STAGE(v; z..))      = free(v) - {z..} + (free(extents of z..) - {z..})
//
// and otherwise the union over the sources: a STORE is free in its own loops. A
// component of a tuple needs itself and what the combine steps of the needed
// ones read (ComponentsOf).
//
// It remembers results, may serve many graphs of one arena, and does not recurse.
type Free[S any] struct {
	RangeSets[S]
	// Mentions counts what a projection hides too: the ranges of all components
	// of its tuple. Whoever renames ranges must reach those, else the tuple of
	// one projection parts from that of its neighbour.
	Mentions bool

	known NodeMap[S]
	todo  []*UOp
}

// RangeSets is the arithmetic of sets of ranges of kind S, whose zero value is
// the empty set. The functions must not change their arguments.
type RangeSets[S any] struct {
	One     func(r *UOp) S
	Union   func(x, y S) S
	Without func(x S, ranges []*UOp) S
}

// Of is the free ranges of u.
func (f *Free[S]) Of(u *UOp) S {
	if set, ok := f.get(u); ok {
		return set
	}
	f.todo = append(f.todo[:0], u)
	for len(f.todo) > 0 {
		top := f.todo[len(f.todo)-1]
		ready := true
		for _, s := range top.Src {
			if len(s.Src) > 0 && !f.known.Has(s) {
				f.todo = append(f.todo, s)
				ready = false
			}
		}
		if !ready {
			continue
		}
		f.todo = f.todo[:len(f.todo)-1]
		if !f.known.Has(top) {
			f.known.Set(top, f.compute(top))
		}
	}
	return f.known.Of(u)
}

// get is what is known of a node; leaves use no range (a RANGE is no leaf: it
// has an extent).
func (f *Free[S]) get(u *UOp) (set S, ok bool) {
	if len(u.Src) == 0 {
		return set, true
	}
	return f.known.Get(u)
}

func (f *Free[S]) compute(u *UOp) (set S) {
	switch u.Op {
	case OpRange:
		return f.Union(f.One(u), f.of(u.Src[0]))
	case OpReduce:
		for _, v := range u.ReduceValues() {
			set = f.Union(set, f.of(v))
		}
		return f.close(set, []*UOp{u.ReduceRange()})
	case OpProj:
		tuple := u.Src[0]
		if f.Mentions {
			return f.of(tuple)
		}
		for _, c := range ComponentsOf(tuple, int(u.Arg.(IntArg))) {
			set = f.Union(set, f.of(tuple.Src[c]))
		}
		return f.close(set, []*UOp{tuple.ReduceRange()})
	case OpStage:
		return f.close(f.of(u.Src[0]), u.Src[1:])
	}
	for _, s := range u.Src {
		set = f.Union(set, f.of(s))
	}
	return set
}

func (f *Free[S]) of(u *UOp) S {
	set, _ := f.get(u)
	return set
}

// close takes ranges out of a set and adds what their extents use.
func (f *Free[S]) close(set S, closed []*UOp) S {
	set = f.Without(set, closed)
	for _, r := range closed {
		if extent := r.Src[0]; len(extent.Src) > 0 {
			set = f.Union(set, f.Without(f.of(extent), closed))
		}
	}
	return set
}

// ComponentsOf lists, in ascending order, the components of a tuple REDUCE that
// component c needs: itself and, transitively, those whose accumulator or
// element the combine step of a needed one reads.
func ComponentsOf(tuple *UOp, c int) []int {
	n := tuple.Arg.(ReduceArg).N
	combine := tuple.ReduceCombine()
	needed := []int{c}
	for k := 0; k < len(needed); k++ {
		for _, u := range Toposort(combine[needed[k]]) {
			if u.Op != OpArg {
				continue
			}
			if o := int(u.Arg.(IntArg)) % n; !slices.Contains(needed, o) {
				needed = append(needed, o)
			}
		}
	}
	slices.Sort(needed)
	return needed
}

// FreeRanges is Free as lists sorted by Compare: of ranges, by number. Lists are
// shared and must not be changed.
type FreeRanges struct{ Free[[]*UOp] }

// NewFreeRanges makes an empty one.
func NewFreeRanges() *FreeRanges {
	return &FreeRanges{Free[[]*UOp]{RangeSets: rangeLists}}
}

// NewMentionedRanges makes one that counts what projections hide.
func NewMentionedRanges() *FreeRanges {
	return &FreeRanges{Free[[]*UOp]{RangeSets: rangeLists, Mentions: true}}
}

var rangeLists = RangeSets[[]*UOp]{
	One:     func(r *UOp) []*UOp { return []*UOp{r} },
	Union:   UnionRanges,
	Without: WithoutRanges,
}

// UnionRanges merges two lists sorted by Compare; it returns one of them when
// that holds the other.
func UnionRanges(x, y []*UOp) []*UOp {
	switch {
	case HoldsRanges(x, y):
		return x
	case HoldsRanges(y, x):
		return y
	}
	merged := make([]*UOp, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		switch c := Compare(x[0], y[0]); {
		case c == 0:
			merged = append(merged, x[0])
			x, y = x[1:], y[1:]
		case c < 0:
			merged = append(merged, x[0])
			x = x[1:]
		default:
			merged = append(merged, y[0])
			y = y[1:]
		}
	}
	return append(append(merged, x...), y...)
}

// HoldsRanges reports that all of y are in x; both are sorted.
func HoldsRanges(x, y []*UOp) bool {
	for _, r := range y {
		for len(x) > 0 && x[0] != r {
			x = x[1:]
		}
		if len(x) == 0 {
			return false
		}
	}
	return true
}

// WithoutRanges is list without some ranges: list itself where it has none.
func WithoutRanges(list, ranges []*UOp) []*UOp {
	if !slices.ContainsFunc(ranges, func(r *UOp) bool { return slices.Contains(list, r) }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(r *UOp) bool { return slices.Contains(ranges, r) })
}
