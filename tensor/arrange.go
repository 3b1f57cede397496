package tensor

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Flatten joins the axes start to end, both inclusive.
func (t *Tensor) Flatten(start, end int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() == 0 {
		return t.Reshape(1)
	}
	i, ok1 := normalAxis(start, t.Rank())
	j, ok2 := normalAxis(end, t.Rank())
	if !ok1 || !ok2 || i > j {
		return t.graph.fail("flatten", "axes %d to %d of %s", start, end, t)
	}
	shape := t.Shape()
	joined := shape[i]
	for _, dim := range shape[i+1 : j+1] {
		joined = t.graph.arena.Mul(joined, dim)
	}
	return t.ReshapeDims(slices.Concat(shape[:i], []*ir.UOp{joined}, shape[j+1:])...)
}

// Unflatten splits an axis into several; one size may be -1.
func (t *Tensor) Unflatten(axis int, sizes ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail("unflatten", "axis %d of %s into %v", axis, t, sizes)
	}
	known, hole := 1, -1
	for i, n := range sizes {
		if n == -1 && hole < 0 {
			hole = i
		} else {
			known *= n
		}
	}
	n := t.Extent(k)
	if hole >= 0 && known > 0 && n%known == 0 {
		sizes = slices.Clone(sizes)
		sizes[hole], known = n/known, n
	}
	if known != n {
		return t.graph.fail("unflatten", "axis %d of %s into %v", axis, t, sizes)
	}
	shape := t.Shape()
	return t.ReshapeDims(slices.Concat(shape[:k], t.graph.Dims(sizes...), shape[k+1:])...)
}

// Stack joins tensors of one shape along a new axis, at position axis of the
// result.
func (t *Tensor) Stack(axis int, others ...*Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank()+1)
	if !ok {
		return t.graph.fail("stack", "axis %d of %d tensors like %s", axis, len(others)+1, t)
	}
	parts := make([]*Tensor, len(others))
	for i, u := range others {
		if !u.ok() || !slices.Equal(u.shape(), t.shape()) || u.DType() != t.DType() {
			return t.graph.fail("stack", "%s beside %s", u, t)
		}
		parts[i] = u.Unsqueeze(k)
	}
	return t.Unsqueeze(k).Cat(k, parts...)
}

// Split cuts an axis into consecutive parts of the given sizes.
func (t *Tensor) Split(axis int, sizes ...int) []*Tensor {
	if !t.ok() {
		return slices.Repeat([]*Tensor{t.bad()}, len(sizes))
	}
	k, ok := normalAxis(axis, t.Rank())
	total := 0
	for _, n := range sizes {
		total += n
		ok = ok && n >= 0
	}
	if !ok || total != t.Extent(k) {
		return slices.Repeat([]*Tensor{t.graph.fail("split", "axis %d of %s into %v", axis, t, sizes)}, len(sizes))
	}
	parts := make([]*Tensor, len(sizes))
	at := 0
	for i, n := range sizes {
		parts[i] = t.SliceInts(k, at, n)
		at += n
	}
	return parts
}

// Chunk cuts an axis into at most the given number of parts, of equal size but
// for the last, which may be smaller.
func (t *Tensor) Chunk(axis, chunks int) []*Tensor {
	if !t.ok() {
		return []*Tensor{t.bad()}
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || chunks < 1 {
		return []*Tensor{t.graph.fail("chunk", "axis %d of %s into %d", axis, t, chunks)}
	}
	n := t.Extent(k)
	size := (n + chunks - 1) / chunks
	if n == 0 {
		return t.Split(k, make([]int, chunks)...)
	}
	var sizes []int
	for at := 0; at < n; at += size {
		sizes = append(sizes, min(size, n-at))
	}
	return t.Split(k, sizes...)
}

// Repeat is t reps[k] times along axis k; axes are aligned at
// the last one, as numpy.tile does: missing repeats and missing axes are 1.
func (t *Tensor) Repeat(reps ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	out := t
	for out.Rank() < len(reps) {
		out = out.Unsqueeze(0)
	}
	for i, n := range reps {
		k := out.Rank() - len(reps) + i
		if n < 0 {
			return t.graph.fail("repeat", "%s by %v", t, reps)
		}
		if n == 0 {
			out = out.SliceInts(k, 0, 0)
		} else {
			out = out.turns(k, n)
		}
	}
	return out
}

// RepeatInterleave repeats each slice along an axis in place: a a b b c c.
func (t *Tensor) RepeatInterleave(axis, repeats int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || repeats < 0 {
		return t.graph.fail("repeat_interleave", "axis %d of %s, %d times", axis, t, repeats)
	}
	if repeats == 0 {
		return t.SliceInts(k, 0, 0)
	}
	return t.Unsqueeze(k+1).stretch(k+1, repeats).Flatten(k, k+1)
}

// Roll shifts axes cyclically: element i goes to i+shifts[j] along axes[j].
func (t *Tensor) Roll(shifts, axes []int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if len(shifts) != len(axes) {
		return t.graph.fail("roll", "%s by %v along %v", t, shifts, axes)
	}
	out := t
	for i, axis := range axes {
		k, ok := normalAxis(axis, t.Rank())
		if !ok {
			return t.graph.fail("roll", "%s by %v along %v", t, shifts, axes)
		}
		n := t.Extent(k)
		if n == 0 {
			continue
		}
		if start := ((-shifts[i])%n + n) % n; start > 0 {
			out = out.ring(k, start, n)
		}
	}
	if out == t {
		return t
	}
	return out.derived([]*Tensor{t}, func(_, adjoint *Tensor, _ []*Tensor) []*Tensor {
		return []*Tensor{adjoint.Roll(lists.Map(shifts, func(n int) int { return -n }), axes)}
	})
}

// MoveAxis takes an axis out and puts it at another position of the result.
func (t *Tensor) MoveAxis(from, to int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	i, ok1 := normalAxis(from, t.Rank())
	j, ok2 := normalAxis(to, t.Rank())
	if !ok1 || !ok2 {
		return t.graph.fail("move_axis", "axis %d of %s to %d", from, t, to)
	}
	axes := lists.Filter(lists.Upto(t.Rank()), func(k int) bool { return k != i })
	return t.Permute(slices.Insert(axes, j, i)...)
}
