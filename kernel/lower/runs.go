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
	minRun     = 16 // bytes that a run must have to be a load of its own
	maxColumns = 64 // runs that are put in order by shuffles
)

// runs are the lanes of a place as runs of neighbours.
type runs struct {
	starts  []int64 // offset of each, in the order of their first lanes
	length  int     // elements of each
	columns bool    // neighbours in memory are len(starts) lanes apart; else they are neighbours
}

// runsOf finds the runs of offsets, if they are rows or columns of one tile.
func runsOf(offsets []int64, size int64) (r runs, ok bool) {
	n := 1
	for n < len(offsets) && offsets[n] == offsets[n-1]+1 {
		n++
	}
	if r.columns = n == 1; r.columns {
		count := slices.Index(offsets, offsets[0]+1)
		if count < 2 || count > maxColumns || len(offsets)%count != 0 {
			return runs{}, false
		}
		n = len(offsets) / count
	}
	if len(offsets)%n != 0 || int64(n)*size < minRun {
		return runs{}, false
	}
	r.length, r.starts = n, make([]int64, len(offsets)/n)
	for lane, o := range offsets {
		run, element := lane/n, lane%n
		if r.columns {
			run, element = lane%len(r.starts), lane/len(r.starts)
		}
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
	order := make([]int, len(r.starts)) // by address: neighbouring lines are asked for together
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(r.starts[i], r.starts[j]) })
	for _, i := range order {
		at, align := p.ptr, p.align
		if o := r.starts[i]; o > 0 {
			at, align = l.b.PtrAdd(p.ptr, l.b.Index(o)), int(lowBit(ir.GCD(int64(p.align), size*o)))
		}
		parts[i] = l.b.Load(at, r.length, align)
	}
	if !r.columns {
		return l.b.Concat(parts...)
	}
	return l.interleave(parts)
}

// interleave is lane 0 of all vectors, then lane 1 of all, and so on. An even number of
// them are merged two by two, first those that are farthest apart; of an odd number one
// joins the others last.
func (l *memory) interleave(parts []*program.Value) *program.Value {
	if len(parts)%2 == 1 && len(parts) > 1 {
		last := parts[len(parts)-1]
		return l.mergeLanes(l.interleave(parts[:len(parts)-1]), last, len(parts)-1)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	half := len(parts) / 2
	merged := lists.Make(half, func(i int) *program.Value { return l.mergeLanes(parts[i], parts[half+i], 1) })
	return l.interleave(merged)
}

// mergeLanes is the first lanes of x, each time the same number of them, then one of y,
// and so on.
func (l *memory) mergeLanes(x, y *program.Value, lanes int) *program.Value {
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
	for k := range m {
		for i := range lanes {
			mask = append(mask, k*lanes+i)
		}
		mask = append(mask, n+k)
	}
	return l.b.Shuffle(x, y, mask...)
}
