package tensor

import (
	"math/bits"
	"slices"

	"tgc/ir"
)

// SearchSorted is where values would go into the last axis of t, which is ascending: the
// number of elements below each (or not above it, if right holds), i32 of the values'
// shape. The axes before the last are those of the values' (t [.. N], values [.. K]), or
// t is a vector. NaN comes after all numbers. The work is log2(N) steps a value.
func (t *Tensor) SearchSorted(values *Tensor, right bool) *Tensor {
	x, v := t.promoted(values)
	if !x.ok() || !v.ok() {
		return t.bad()
	}
	lead := max(x.Rank()-1, 0)
	if x.Rank() < 1 || lead > 0 && (v.Rank() != x.Rank() || !slices.Equal(v.shape()[:lead], x.shape()[:lead])) {
		return x.graph.fail("", "%s in %s; want [.. K] in [.. N], or any in [N]", values, t)
	}
	n := x.Extent(-1)
	before := func(at *Tensor) *Tensor { return x.at(at, v.shape()).precedes(v, right) }
	found := x.graph.Full(ir.I32, 0)
	if v.Rank() > 0 {
		found = found.fill(v.shape())
	}
	for step := 1 << bits.Len(uint(n)) >> 1; step > 0; step /= 2 {
		next := found.AddScalar(float64(step))
		last := x.graph.Scalar(ir.I32, float64(n))
		found = next.Le(last).And(before(next.AddScalar(-1))).Where(next, found)
	}
	return found
}

// promoted gives both operands their common dtype.
func (t *Tensor) promoted(u *Tensor) (x, y *Tensor) {
	if !t.ok() || !u.ok() {
		return t.bad(), t.bad()
	}
	dtype, ok := promoteTypes(t.DType(), u.DType())
	if t.graph != u.graph || !ok {
		bad := t.graph.fail("", "%s and %s; want one graph and a common dtype", t, u)
		return bad, bad
	}
	return t.Cast(dtype), u.Cast(dtype)
}

// at reads the last axis of t at indices of a shape; a vector is the same everywhere.
func (t *Tensor) at(index *Tensor, shape []*ir.UOp) *Tensor {
	if t.Rank() == 1 {
		return t.elementsAt([]*Tensor{index}, shape)
	}
	coords := make([]*Tensor, t.Rank())
	for k := range coords {
		coords[k] = t.graph.axisIota(ir.I32, shape, k)
	}
	coords[t.Rank()-1] = index
	return t.elementsAt(coords, shape)
}

// precedes says where t comes before v, or with it if also holds; NaN comes last.
func (t *Tensor) precedes(v *Tensor, also bool) *Tensor {
	before := t.Lt(v)
	if also {
		before = t.Le(v)
	}
	if !t.DType().IsFloat() {
		return before
	}
	if also {
		return before.Or(v.IsNaN())
	}
	return before.Or(v.IsNaN().And(t.IsNaN().Not()))
}

// Bincount counts how often each of the integers 0 .. bins-1 occurs in t: i32 [bins].
// Others are not counted. The work is one pass over t.
func (t *Tensor) Bincount(bins int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if !t.DType().IsInt() || bins < 0 {
		return t.graph.fail("", "%d bins of %s, want integers", bins, t)
	}
	n := t.count(nil)
	return t.graph.Zeros(ir.I32, bins).IndexAdd(0, t.Reshape(n), t.graph.Ones(ir.I32, n))
}

// Nonzero finds the elements that are not 0: their coordinates in order, i32 [size, rank],
// and how many there are, i32 []. As a result's shape may not depend on values, size says
// how many are kept; rows past the last are -1. The work is a running sum and log2 of the
// number of elements a row.
func (t *Tensor) Nonzero(size int) (coordinates, count *Tensor) {
	at, count := t.found(size)
	if !at.ok() || !count.ok() {
		return t.bad(), t.bad()
	}
	columns := make([]*Tensor, t.Rank())
	rest := at
	for k := t.Rank() - 1; k >= 0; k-- {
		extent := at.scalar(float64(max(t.Extent(k), 1)))
		columns[k], rest = rest.FloorMod(extent).Unsqueeze(1), rest.FloorDiv(extent)
	}
	if len(columns) == 0 {
		return t.graph.Full(ir.I32, 0, size, 0), count
	}
	all := columns[0].Cat(1, columns[1:]...)
	return at.Unsqueeze(1).Lt(at.scalar(0)).Where(at.scalar(-1), all), count
}

// MaskedSelect is the elements of t where mask (Bool, broadcast) holds, in order, and how
// many there are, i32 []. Of them size are kept, zeros after the last: see Nonzero.
func (t *Tensor) MaskedSelect(mask *Tensor, size int) (values, count *Tensor) {
	if !t.ok() || !mask.ok() {
		return t.bad(), t.bad()
	}
	shape, ok := t.graph.broadcast(t.shape(), mask.shape())
	if !ok || mask.DType() != ir.Bool {
		return t.graph.fail("", "%s where %s; want bool that broadcasts", t, mask), t.bad()
	}
	at, count := mask.fill(shape).found(size)
	whole := t.fill(shape)
	flat := whole.Reshape(whole.count(nil))
	return at.Lt(at.scalar(0)).Where(t.scalar(0), flat.Gather(0, at)), count
}

// found are the positions, in row-major order, of the elements that are not 0: i32 [size], -1
// after the last, and their number.
func (t *Tensor) found(size int) (at, count *Tensor) {
	if !t.ok() {
		return t.bad(), t.bad()
	}
	if size < 0 {
		return t.graph.fail("", "%d elements of %s; want at least 0", size, t), t.bad()
	}
	n := t.count(nil)
	if n == 0 {
		return t.graph.Full(ir.I32, -1, size), t.graph.Full(ir.I32, 0)
	}
	sums := t.Truth().Reshape(n).Cast(ir.I32).Cumsum(0).Contiguous() // read again and again
	count = sums.SliceInts(0, n-1, 1).Squeeze(0)
	number := t.graph.Iota(ir.I32, t.graph.Dims(size)[0])
	found := sums.SearchSorted(number.AddScalar(1), false)
	return number.Lt(count).Where(found, number.scalar(-1)), count
}

// Distinct is what Unique finds.
type Distinct struct {
	Values  *Tensor // in ascending order, [size]; zeros after the last
	Inverse *Tensor // for each element of the input its place among Values, i32
	Counts  *Tensor // how often each occurs, i32 [size]
	Count   *Tensor // how many there are, i32 []
}

// Unique finds the different elements of t. All NaNs are one, and so are both zeros. Of
// the values size are kept (see Nonzero); elements of others have places past it. The work
// is that of Sort.
func (t *Tensor) Unique(size int) Distinct {
	if !t.ok() || size < 0 || !promotable(t.DType()) {
		if t.ok() {
			t.graph.fail("", "%d values of %s; want at least 0, of numbers", size, t)
		}
		return Distinct{t.bad(), t.bad(), t.bad(), t.bad()}
	}
	n := t.count(nil)
	if n == 0 {
		none := t.graph.Zeros(ir.I32, size)
		return Distinct{none.Cast(t.DType()), t.Cast(ir.I32), none, t.graph.Full(ir.I32, 0)}
	}
	flat := t.Reshape(n)
	keys := flat.sortKey(false).Contiguous()
	order := flat.Argsort(0, false).Contiguous()
	sorted := keys.Gather(0, order).Contiguous()
	number := t.graph.Iota(ir.I32, t.graph.Dims(n)[0])
	before := sorted.Gather(0, number.AddScalar(-1))
	starts := number.Eq(number.scalar(0)).Or(sorted.Ne(before))
	at, count := starts.found(size)
	known := at.Lt(at.scalar(0)).Not()
	ends, _ := starts.found(size + 1)
	next := ends.SliceInts(0, 1, size)
	next = next.Lt(next.scalar(0)).Where(next.scalar(float64(n)), next)
	place := starts.Cast(ir.I32).Cumsum(0).AddScalar(-1).Contiguous()
	return Distinct{
		Values:  known.Where(flat.Gather(0, order.Gather(0, at)), flat.scalar(0)),
		Inverse: place.Gather(0, sorted.SearchSorted(keys, false)).ReshapeDims(t.shape()...),
		Counts:  known.Where(next.Sub(at), at.scalar(0)),
		Count:   count,
	}
}

// Quantile is what a part q (0 to 1) of the elements of an axis lie below: between two
// elements in proportion, as numpy has it. The axis is dropped. NaN if one is NaN. The
// work is that of Sort.
func (t *Tensor) Quantile(q float64, axis int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || !(q >= 0 && q <= 1) || t.Extent(k) == 0 {
		return t.graph.fail("", "%v of axis %d of %s; want 0 to 1 of an axis with elements", q, axis, t)
	}
	return t.widely(func(x *Tensor) *Tensor {
		sorted, _ := x.Sort(k, false)
		n := sorted.Extent(k)
		place := q * float64(n-1)
		low := min(int(place), n-1)
		pick := func(i int) *Tensor { return sorted.SliceInts(k, i, 1).Squeeze(k) }
		value := pick(low)
		if part := place - float64(low); part > 0 {
			above := pick(low + 1)
			value = value.Eq(above).Where(value, value.Lerp(above, value.scalar(part))) // infinities too
		}
		return value.Add(pick(n - 1).nanOnly()) // NaN is sorted last
	})
}

// Median is Quantile of 1/2: the mean of the two in the middle of an even number.
func (t *Tensor) Median(axis int) *Tensor { return t.Quantile(0.5, axis) }
