package tensor

import (
	"slices"

	"tgc/ir"
)

// PadMode says what is around a padded tensor.
type PadMode uint8

// The pad modes, with the result of padding [a b c] by 2 on both sides.
const (
	PadConstant  PadMode = iota // v v a b c v v: the same value everywhere
	PadReflect                  // c b a b c b a: mirrored, the edge not repeated
	PadReplicate                // a a a b c c c: the edge repeated
	PadCircular                 // b c a b c a b: the axis as a ring
)

var padModeNames = [...]string{"constant", "reflect", "replicate", "circular"}

// String is the mode's name.
func (m PadMode) String() string { return nameOf(padModeNames[:], int(m)) }

// PadOptions says how PadAll fills the new elements.
type PadOptions struct {
	Mode  PadMode
	Value float64 // of PadConstant
}

// PadAll puts pads[k][0] elements before and pads[k][1] after axis k of t; a
// negative number crops. Every axis has an entry. A reflected pad is shorter
// than its axis, a circular one no longer, as in PyTorch.
func (t *Tensor) PadAll(pads [][2]int, options ...PadOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() {
		return t.bad()
	}
	if len(pads) != t.Rank() || int(o.Mode) >= len(padModeNames) {
		return t.graph.fail("pad", "%s by %v, mode %s; want one pair for each axis", t, pads, o.Mode)
	}
	out, inside := t, (*Tensor)(nil)
	for k, p := range pads {
		if _, constant := t.shape()[k].Int(); !constant && p == [2]int{} {
			continue
		}
		n := t.Extent(k)
		low, high := max(-p[0], 0), max(-p[1], 0)
		if low+high > n {
			return t.graph.fail("pad", "%s by %v crops more than axis %d has", t, pads, k)
		}
		out = out.SliceInts(k, low, n-low-high)
		before, after := max(p[0], 0), max(p[1], 0)
		if before+after == 0 {
			continue
		}
		if o.Mode == PadConstant {
			inside = both(inside, t.within(k, n-low-high, before, after))
			out = out.Pad(k, before, after)
		} else {
			out = out.padEdge(k, before, after, o.Mode)
		}
	}
	if inside == nil || o.Value == 0 || !out.ok() {
		return out
	}
	return inside.Where(out, out.scalar(o.Value))
}

// within is true (Bool, axis k of t's rank) where an axis of extent n that was
// padded holds the old elements.
func (t *Tensor) within(k, n, before, after int) *Tensor {
	at := t.graph.alongAxis(t.Rank(), k, before+n+after)
	return at.scalar(float64(before - 1)).Lt(at).And(at.Lt(at.scalar(float64(before + n))))
}

// both is the and of conditions of which the first may be absent.
func both(c, d *Tensor) *Tensor {
	if c == nil {
		return d
	}
	return c.And(d)
}

// padEdge pads axis k with elements of t.
func (t *Tensor) padEdge(k, before, after int, mode PadMode) *Tensor {
	n := t.Extent(k)
	limit := map[PadMode]int{PadReflect: n - 1, PadReplicate: max(before, after), PadCircular: n}[mode]
	if n == 0 || before > limit || after > limit {
		return t.graph.fail("pad", "%s by %d and %d on axis %d, mode %s", t, before, after, k, mode)
	}
	if mode == PadCircular {
		return t.ring(k, n-before, before+n+after)
	}
	head, tail := t.SliceInts(k, 0, 1), t.SliceInts(k, n-1, 1)
	if mode == PadReflect {
		head, tail = t.SliceInts(k, 1, before).Flip(k), t.SliceInts(k, n-1-after, after).Flip(k)
	} else {
		head, tail = head.stretch(k, before), tail.stretch(k, after)
	}
	return head.Cat(k, t, tail)
}

// stretch repeats an axis of extent 1.
func (t *Tensor) stretch(k, n int) *Tensor {
	shape := t.Shape()
	shape[k] = t.graph.arena.Index(int64(n))
	return t.ExpandDims(shape...)
}

// ring reads axis k as a ring: count elements from start (not negative) on.
func (t *Tensor) ring(k, start, count int) *Tensor {
	n := t.Extent(k)
	if n == 0 || count == 0 {
		return t.SliceInts(k, 0, 0)
	}
	turns := (start + count + n - 1) / n
	return t.turns(k, turns).SliceInts(k, start, count)
}

// turns repeats axis k, turns times in all.
func (t *Tensor) turns(k, turns int) *Tensor {
	if turns == 1 {
		return t
	}
	shape := t.Shape()
	n := t.Extent(k)
	all := append([]*ir.UOp(nil), shape[:k]...)
	all = append(append(all, t.graph.Dims(turns, n)...), shape[k+1:]...)
	shape[k] = t.graph.arena.Index(int64(turns * n))
	return t.Unsqueeze(k).ExpandDims(all...).ReshapeDims(shape...)
}

// alongAxis is 0..n-1 (i32) along one axis of a rank, extent 1 on the others.
func (g *Graph) alongAxis(rank, axis, n int) *Tensor {
	shape := slices.Repeat([]int{1}, rank)
	shape[axis] = n
	return g.Iota(ir.I32, g.arena.Index(int64(n))).Reshape(shape...)
}

// nameOf is names[i], or the number for a value outside the table.
func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
