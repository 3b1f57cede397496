package schedule

import (
	"slices"
)

// Temporaries are planned into one arena by lifetime: the launches from the one
// that writes a buffer to the last that reads it. Kernels of one launch overlap,
// so a lifetime covers whole launches.

// bufferAlign is the alignment of every temporary in bytes; bufferPad is how
// many bytes stay free behind it, so that gated vector loads stay inside.
const (
	bufferAlign = 64
	bufferPad   = 64
)

// planMemory places the temporaries first-fit, the largest first.
func (e *emission) planMemory() {
	var temps []int
	for i, b := range e.out.Buffers {
		if b.UserID < 0 {
			temps = append(temps, i)
		}
	}
	slices.SortStableFunc(temps, func(x, y int) int {
		return int(min(max(e.out.Buffers[y].Bytes-e.out.Buffers[x].Bytes, -1), 1))
	})
	var placed []int
	for _, i := range temps {
		e.out.Buffers[i].Offset = e.firstFit(i, placed)
		placed = append(placed, i)
		e.out.ArenaBytes = max(e.out.ArenaBytes, e.out.Buffers[i].Offset+e.reserved(i))
	}
}

// reserved is the space that a temporary occupies, padding included.
func (e *emission) reserved(i int) int64 {
	return (e.out.Buffers[i].Bytes + bufferPad + bufferAlign - 1) / bufferAlign * bufferAlign
}

// firstFit is the lowest offset where buffer i overlaps no placed buffer that
// lives at the same time.
func (e *emission) firstFit(i int, placed []int) int64 {
	type span struct{ lo, hi int64 }
	var taken []span
	for _, j := range placed {
		if e.writers[j] <= e.last[i] && e.writers[i] <= e.last[j] {
			taken = append(taken, span{e.out.Buffers[j].Offset, e.out.Buffers[j].Offset + e.reserved(j)})
		}
	}
	slices.SortFunc(taken, func(x, y span) int { return int(min(max(x.lo-y.lo, -1), 1)) })
	offset := int64(0)
	for _, t := range taken {
		if offset+e.reserved(i) <= t.lo {
			break
		}
		offset = max(offset, t.hi)
	}
	return offset
}
