package tensor

import (
	"math/bits"

	"tgc/ir"
	"tgc/target"
)

// maxRanked is the longest axis that is sorted by counting ranks: n*n
// comparisons in two kernels. A longer one goes through a network of about
// log2(n)^2/2 kernels, as does one of which a target has so many rows that counting
// takes manyTimes as long: each kernel of a network has to be compiled, too.
const (
	maxRanked = 2048
	manyTimes = 8
)

// Operations of a comparison and its count, and of an exchange of a network.
const (
	rankOps     = 5
	exchangeOps = 10
)

// Sort orders an axis and gives the values and the indices (i32) that they had.
// It is stable: equal elements keep their order. NaN counts as larger than all
// numbers, -0 equals 0.
func (t *Tensor) Sort(axis int, descending bool) (values, indices *Tensor) {
	if !t.ok() {
		return t.bad(), t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail("sort", "axis %d of %s", axis, t), t.bad()
	}
	return t.best(k, t.Extent(k), descending)
}

// Argsort is the indices (i32) that order an axis: see Sort.
func (t *Tensor) Argsort(axis int, descending bool) *Tensor {
	_, indices := t.Sort(axis, descending)
	return indices
}

// TopK is the k largest or smallest elements of an axis, best first, and their
// indices (i32); equal elements in order of index. NaN counts as largest.
func (t *Tensor) TopK(k, axis int, largest bool) (values, indices *Tensor) {
	if !t.ok() {
		return t.bad(), t.bad()
	}
	i, ok := normalAxis(axis, t.Rank())
	if !ok || k < 0 || k > t.Extent(i) {
		return t.graph.fail("topk", "%d of axis %d of %s", k, axis, t), t.bad()
	}
	return t.best(i, k, largest)
}

// best is the first count elements of axis k in order.
func (t *Tensor) best(k, count int, descending bool) (values, indices *Tensor) {
	key := t.sortKey(descending).MoveAxis(k, -1)
	if t.Extent(k) <= maxRanked {
		indices = key.ranked(count).OnTarget(func(desc *target.Desc) *Tensor {
			// Of a part of a network's results all steps would be one kernel.
			if count < t.Extent(k) || !key.networkPays(&desc.Cost) {
				return nil
			}
			return key.network(count)
		})
	} else {
		indices = key.network(count)
	}
	indices = indices.MoveAxis(-1, k)
	return t.GatherElements(k, indices), indices
}

// sortKey maps elements to integers of the same order. Of a float, the bits
// below the sign are flipped where it is negative; both zeros have the key 0,
// all NaNs the largest.
func (t *Tensor) sortKey(descending bool) *Tensor {
	key := t
	switch {
	case t.DType().IsFloat():
		w := t.wide()
		word := ir.I32
		if w.DType() == ir.F64 {
			word = ir.I64
		}
		plain := w.Eq(w.scalar(0)).Where(w.scalar(0), w).Bitcast(word)
		sign := plain.Shr(plain.scalar(float64(word.Size()*8 - 1)))
		most := plain.most()
		key = w.Eq(w).Where(plain.Xor(sign.And(most)), most)
	case t.DType() == ir.Bool:
		key = t.Cast(ir.U8)
	}
	if descending {
		key = key.Not() // turns the order of integers around, without overflow
	}
	return key
}

// networkPays compares the ways to sort the last axis, in picoseconds.
func (t *Tensor) networkPays(cost *target.Cost) bool {
	n, elements := t.Extent(-1), 1.0
	for _, extent := range t.shape() {
		m, _ := extent.Int()
		elements *= float64(m)
	}
	log := bits.Len(uint(max(n, 1) - 1))
	kernels := float64(log * (log + 1) / 2)
	op := float64(cost.Op) / float64(max(cost.Workers, 1))
	network := elements*kernels*exchangeOps*op + kernels*float64(cost.Launch)
	return elements*float64(n)*rankOps*op > manyTimes*network
}

// ranked is the positions of the count smallest keys of the last axis, by
// counting how many come before each: smaller ones, and equal ones with a
// smaller index.
func (t *Tensor) ranked(count int) *Tensor {
	g := t.graph
	own, other := t.Unsqueeze(-1), t.Unsqueeze(-2) // [.. n 1], [.. 1 n]
	id := g.Iota(ir.I32, t.Dim(-1))
	earlier := id.Unsqueeze(0).Lt(id.Unsqueeze(1)) // [n n]: other comes before own
	before := other.Lt(own).Or(other.Eq(own).And(earlier))
	yes, no := g.Scalar(ir.I32, 1), g.Scalar(ir.I32, 0)
	rank := before.Where(yes, no).Sum(-1)
	slot := g.Iota(ir.I32, g.arena.Index(int64(count))).Unsqueeze(-1) // [count 1]
	return rank.Unsqueeze(-2).Eq(slot).Where(id, no).Sum(-1)
}

// network is ranked by a bitonic network (Batcher 1968) in the form in which
// all comparisons point the same way: sorted blocks of half the size are
// merged by comparing each element with its mirror image in the block, then
// with its partner half the distance away, and so on. Keys and positions travel
// together; the position decides between equal keys.
func (t *Tensor) network(count int) *Tensor {
	n := t.Extent(-1)
	size := 1 << bits.Len(uint(max(n, 1)-1)) // the next power of two
	pads := make([][2]int, t.Rank())
	pads[t.Rank()-1][1] = size - n
	inside := t.within(t.Rank()-1, n, 0, size-n)
	key := inside.Where(t.PadAll(pads, PadOptions{}), t.most()) // padding comes last
	at := t.graph.alongAxis(t.Rank(), t.Rank()-1, size).ExpandDims(key.shape()...)
	for block := 2; block <= size; block *= 2 {
		key, at = exchange(key, at, block, func(x *Tensor) *Tensor {
			return x.Unflatten(-1, size/block, block).Flip(-1).Flatten(-2, -1)
		})
		for distance := block / 4; distance >= 1; distance /= 2 {
			key, at = exchange(key, at, 2*distance, func(x *Tensor) *Tensor {
				return x.Unflatten(-1, size/(2*distance), 2, distance).Flip(-2).Flatten(-3, -1)
			})
		}
	}
	return at.SliceInts(-1, 0, count)
}

// exchange lets each element keep itself or take its partner's place: in the
// lower half of a block the smaller of the two stays, in the upper the larger.
func exchange(key, at *Tensor, block int, partner func(*Tensor) *Tensor) (*Tensor, *Tensor) {
	otherKey, otherAt := partner(key), partner(at)
	before := otherKey.Lt(key).Or(otherKey.Eq(key).And(otherAt.Lt(at)))
	position := key.graph.Iota(ir.I32, key.Dim(-1))
	upper := position.And(position.scalar(float64(block / 2))).Eq(position.scalar(float64(block / 2)))
	swap := before.Xor(upper)
	return swap.Where(otherKey, key), swap.Where(otherAt, at)
}
