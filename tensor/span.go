package tensor

import "fmt"

// Span names positions of one axis as a Python slice does: from Start up to,
// not including, Stop, every Step-th; negative positions count from the end,
// positions outside are cut off, a negative step walks backwards. The zero
// Span is the whole axis. Make one with Whole, From, Until or Between.
type Span struct {
	start, stop       int
	hasStart, hasStop bool
	step              int // 0 is 1
}

// Whole is all of an axis: [:].
func Whole() Span { return Span{} }

// From is the part from a position on: [start:].
func From(start int) Span { return Span{start: start, hasStart: true} }

// Until is the part before a position: [:stop].
func Until(stop int) Span { return Span{stop: stop, hasStop: true} }

// Between is the part from start up to, not including, stop: [start:stop].
func Between(start, stop int) Span {
	return Span{start: start, stop: stop, hasStart: true, hasStop: true}
}

// By takes every step-th position: [::step]. A negative step walks from the
// last position (or start) backwards.
func (s Span) By(step int) Span {
	s.step = step
	return s
}

// String writes the span as Python does.
func (s Span) String() string {
	text := ""
	if s.hasStart {
		text += fmt.Sprint(s.start)
	}
	text += ":"
	if s.hasStop {
		text += fmt.Sprint(s.stop)
	}
	if s.step != 0 {
		text += fmt.Sprintf(":%d", s.step)
	}
	return text
}

// resolve gives the first position, the number of positions and the step on an
// axis of n elements.
func (s Span) resolve(n int) (first, count, step int) {
	if step = s.step; step == 0 {
		step = 1
	}
	lowest, highest := 0, n // of a position, walking forwards
	if step < 0 {
		lowest, highest = -1, n-1
	}
	clip := func(at int) int {
		if at < 0 {
			at += n
		}
		return min(max(at, lowest), highest)
	}
	from, to := lowest, highest
	if step < 0 {
		from, to = highest, lowest
	}
	if s.hasStart {
		from = clip(s.start)
	}
	if s.hasStop {
		to = clip(s.stop)
	}
	if step > 0 {
		return from, max(to-from+step-1, 0) / step, step
	}
	return from, max(from-to-step-1, 0) / -step, step
}

// Cut takes a span of each axis; axes without one are kept whole. The result
// has t's rank.
func (t *Tensor) Cut(spans ...Span) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if len(spans) > t.Rank() {
		return t.graph.fail("cut", "%d spans of %s", len(spans), t)
	}
	out := t
	for k, s := range spans {
		if s == (Span{}) {
			continue
		}
		first, count, step := s.resolve(t.Extent(k))
		switch {
		case count == 0:
			out = out.SliceInts(k, 0, 0)
		case step > 0:
			out = out.SliceInts(k, first, (count-1)*step+1).every(k, step)
		default:
			out = out.SliceInts(k, first+(count-1)*step, (count-1)*-step+1).every(k, -step).Flip(k)
		}
	}
	return out
}

// every takes positions 0, step, 2*step, .. of axis k: the axis is padded to
// whole steps, which become rows of which the first column is kept.
func (t *Tensor) every(k, step int) *Tensor {
	n := t.Extent(k)
	if step == 1 || n <= 1 {
		return t
	}
	count := (n + step - 1) / step
	return t.Pad(k, 0, count*step-n).rows(k, count, step).SliceInts(k+1, 0, 1).Squeeze(k + 1)
}

// rows splits axis k, of rows*columns elements, into two.
func (t *Tensor) rows(k, rows, columns int) *Tensor {
	shape := t.Shape()
	all := append(shape[:k:k], t.graph.Dims(rows, columns)...)
	return t.ReshapeDims(append(all, shape[k+1:]...)...)
}
