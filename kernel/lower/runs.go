package lower

import (
	"cmp"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Lanes along several ranges may lie in memory as runs of neighbours, far apart: the
// rows of a tile, or its columns. Each run is one load; of columns, log2 of their number
// steps of shuffles put the lanes in order, where a gather takes a load for each lane.
// 2048 x 2048 f32 on one Zen 5 core: 1.2 ms against 27.

const (
	minRun     = 16 // bytes that a run must have to be a load of its own; of a thread of a GPU, a word
	maxColumns = 64 // runs that are put in order by shuffles
)

// runs are the lanes of a place as runs of neighbours.
type runs struct {
	starts []int64 // offset of each, in the order of their first lanes
	length int     // elements of each
	unit   int     // elements of a run that are neighbouring lanes, before those of the next run come: 1 for columns
}

// runsOf finds the runs of offsets, if they are rows or columns of one tile and have some
// bytes each.
func runsOf(offsets []int64, size, least int64) (r runs, ok bool) {
	n := 1
	for n < len(offsets) && offsets[n] == offsets[n-1]+1 {
		n++
	}
	r.unit, r.length = n, n
	if int64(n)*size < least {
		lanes := slices.Index(offsets, offsets[0]+int64(n)) // of a unit of all runs
		if lanes < 2*n || lanes%n != 0 || lanes/n > maxColumns || len(offsets)%lanes != 0 {
			return runs{}, false
		}
		r.length = len(offsets) / (lanes / n)
	}
	if len(offsets)%r.length != 0 || int64(r.length)*size < least || r.length%n != 0 {
		return runs{}, false
	}
	r.starts = make([]int64, len(offsets)/r.length)
	for lane, o := range offsets {
		unit := lane / n
		run, element := unit%len(r.starts), unit/len(r.starts)*n+lane%n
		if element == 0 {
			r.starts[run] = o
		}
		if o != r.starts[run]+int64(element) {
			return runs{}, false
		}
	}
	return r, true
}

// readRuns loads each run and puts the lanes in order.
func (l *memory) readRuns(p place, r runs) *program.Value {
	size := int64(p.ptr.Type.Elem.Size())
	parts := make([]*program.Value, len(r.starts))
	order := lists.Upto(len(r.starts)) // by address: neighbouring lines are asked for together
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(r.starts[i], r.starts[j]) })
	for _, i := range order {
		at, align := p.ptr, p.align
		if o := r.starts[i]; o > 0 {
			at, align = l.b.PtrAdd(p.ptr, l.b.Index(o)), int(lowBit(ir.GCD(int64(p.align), size*o)))
		}
		parts[i] = l.b.Load(at, r.length, align)
	}
	if r.unit == r.length {
		return l.b.Concat(parts...)
	}
	return l.interleave(parts, r.unit)
}

// interleave is the first lanes of all vectors, so many of each, then the next of all, and
// so on. An even number of vectors are merged two by two, first those that are farthest
// apart; of an odd number one joins the others last.
func (l *memory) interleave(parts []*program.Value, unit int) *program.Value {
	if len(parts)%2 == 1 && len(parts) > 1 {
		last := parts[len(parts)-1]
		return l.mergeLanes(l.interleave(parts[:len(parts)-1], unit), last, (len(parts)-1)*unit, unit)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	half := len(parts) / 2
	merged := lists.Make(half, func(i int) *program.Value { return l.mergeLanes(parts[i], parts[half+i], unit, unit) })
	return l.interleave(merged, unit)
}

// mergeLanes is the first lanes of x, each time the same number of them, then a unit of y,
// and so on.
func (l *memory) mergeLanes(x, y *program.Value, lanes, unit int) *program.Value {
	n, m := x.Type.Lanes, y.Type.Lanes
	if m < n { // a shuffle takes two vectors of one type
		widened := make([]int, n)
		for i := range widened {
			widened[i] = -1
			if i < m {
				widened[i] = i
			}
		}
		y = l.b.Shuffle(y, y, widened...)
	}
	mask := make([]int, 0, n+m)
	for k := range m / unit {
		for i := range lanes {
			mask = append(mask, k*lanes+i)
		}
		for i := range unit {
			mask = append(mask, n+k*unit+i)
		}
	}
	return l.b.Shuffle(x, y, mask...)
}
