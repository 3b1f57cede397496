package lower

import (
	"cmp"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Results whose lanes lie far apart, and whose copies side by side: queries in lanes, of which each has a row of
// elements. Stored copy by copy each lane would be a store of its own; shuffles put the copies of each lane side by
// side, a run of which is one store.

// turned says how copies of a store lie in memory.
type turned struct {
	base    place     // of the first
	offsets [][]int64 // of each lane and copy, in elements
	run     int       // copies that lie side by side for each lane, which are turned at once
}

// turnedCopies is how copies of a store lie, at points of some copy axes and at lanes of sub-axes, where they are to be
// turned.
func (l *memory) turnedCopies(u *ir.UOp, points []coords, axes, subAxes []int) (t turned, ok bool) {
	lanes, n := l.exprs.laneCount(subAxes), 1
	for 2*n*lanes <= plan.MaxLanes && len(points)%(2*n) == 0 {
		n *= 2
	}
	if lanes < 2 || int64(n)*int64(u.Src[0].DType.Size()) < minRun {
		return t, false
	}
	t = turned{offsets: l.offsetsOf(u, points, slices.Concat(axes, subAxes), subAxes), run: n}
	if t.offsets == nil || t.offsets[1][0] == t.offsets[0][0]+1 {
		return t, false
	}
	apart := slices.ContainsFunc(t.offsets, func(row []int64) bool {
		return slices.ContainsFunc(lists.Upto(len(row)), func(k int) bool { return k%n > 0 && row[k] != row[k-1]+1 })
	})
	return t, !apart
}

// offsetsOf is how many elements behind the first each lane of each copy lies; nil where that is not known. axes are
// those of copies and lanes.
func (l *memory) offsetsOf(u *ir.UOp, points []coords, axes, subAxes []int) (offsets [][]int64) {
	var static []ir.Term
	for _, t := range l.addressOf(u).form.Terms {
		switch free := l.free.Of(t.Atom); {
		case l.exprs.isStatic(t.Atom):
			static = append(static, t)
		case slices.ContainsFunc(axes, free.Has):
			return nil
		}
	}
	offsets = make([][]int64, l.exprs.laneCount(subAxes))
	for _, copied := range points {
		for lane, o := range l.staticOffsets(static, subAxes, copied) {
			offsets[lane] = append(offsets[lane], o)
		}
	}
	first := slices.MinFunc(offsets, func(x, y []int64) int { return cmp.Compare(x[0], y[0]) })[0] // to which the base points
	for _, row := range offsets {
		for k := range row {
			row[k] -= first
		}
	}
	return offsets
}

// storeTurned stores the run of copies that begins with the first, for every lane whose condition holds: one for all,
// one for each, or none.
func (l *memory) storeTurned(t turned, first int, values []*program.Value, cond *program.Value) {
	size, all := int64(t.base.ptr.Type.Elem.Size()), l.interleave(values, 1)
	store := func(lane int) {
		o := t.offsets[lane][first]
		align := int(lowBit(ir.GCD(int64(t.base.align), size*o)))
		l.b.StoreCached(l.b.PtrAdd(t.base.ptr, l.b.Index(o)), l.b.Slice(all, lane*t.run, t.run), align, t.base.cache)
	}
	each := func() []*program.Value {
		for lane := range t.offsets {
			store(lane)
		}
		return nil
	}
	switch {
	case cond == nil:
		each()
	case cond.Type.Lanes == 1:
		l.b.If(cond, each, nil)
	default:
		for lane := range t.offsets {
			l.b.If(l.b.Extract(cond, lane), func() []*program.Value { store(lane); return nil }, nil)
		}
	}
}
