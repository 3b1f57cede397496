package emit

import (
	"slices"

	"tgc/internal/lists"
	"tgc/schedule/state"
)

// Temporaries are planned into one arena by lifetime: the launches from the one
// that writes a buffer to the last that reads it. Kernels of one launch overlap,
// so a lifetime covers whole launches.

// bufferAlign is the alignment of every temporary in bytes; bufferPad is how
// many bytes stay free after it, so that gated vector loads stay inside.
const (
	bufferAlign = 128
	bufferPad   = 64
)

// arena places the temporaries of a schedule.
type arena struct {
	out         *state.Schedule
	first, last map[int]int // buffer -> launch
}

// PlanMemory places the temporaries first-fit, the largest first.
func PlanMemory(s *state.State) {
	p := &arena{out: s.Out, first: make(map[int]int), last: make(map[int]int)}
	for i, launch := range s.Out.Launches {
		for _, k := range launch.Kernels {
			for _, buffer := range k.Args {
				if _, seen := p.first[buffer]; !seen {
					p.first[buffer] = i
				}
				p.last[buffer] = i
			}
		}
	}
	temps := lists.Indices(p.out.Buffers, func(b state.Buffer) bool { return b.UserID < 0 })
	slices.SortStableFunc(temps, func(x, y int) int {
		return int(min(max(p.out.Buffers[y].Bytes-p.out.Buffers[x].Bytes, -1), 1))
	})
	var placed []int
	for _, i := range temps {
		p.out.Buffers[i].Offset = p.firstFit(i, placed)
		placed = append(placed, i)
		p.out.ArenaBytes = max(p.out.ArenaBytes, p.out.Buffers[i].Offset+p.reserved(i))
	}
}

// reserved is the space in bytes that a temporary occupies, padding included.
func (p *arena) reserved(i int) int64 {
	return (p.out.Buffers[i].Bytes + bufferPad + bufferAlign - 1) / bufferAlign * bufferAlign
}

// firstFit is the lowest offset where buffer i overlaps no placed buffer that
// lives at the same time.
func (p *arena) firstFit(i int, placed []int) int64 {
	type span struct{ lo, hi int64 }
	var taken []span
	for _, j := range placed {
		if p.first[j] <= p.last[i] && p.first[i] <= p.last[j] {
			taken = append(taken, span{p.out.Buffers[j].Offset, p.out.Buffers[j].Offset + p.reserved(j)})
		}
	}
	slices.SortFunc(taken, func(x, y span) int { return int(min(max(x.lo-y.lo, -1), 1)) })
	offset := int64(0)
	for _, t := range taken {
		if offset+p.reserved(i) <= t.lo {
			break
		}
		offset = max(offset, t.hi)
	}
	return offset
}
