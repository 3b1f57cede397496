package tensor

import (
	"slices"

	"tgc/internal/lists"
	"tgc/target"
)

// tupleFold is an associative operation on tuples, whose running folds are made by its combinations alone.
type tupleFold struct {
	identity []func(x *Tensor) *Tensor
	combine  func(first, then []*Tensor) []*Tensor
	fromEnd  bool // the last element comes first
}

// Running folds of tuples are made in blocks of tupleBlock: totals of all, running folds of these in turn, and
// then the elements of each block after what came before it. Lanes run along another axis, the last where it has
// tupleLanes elements. Derivatives of running products of rows of 1021 x 1023 on one Zen 4 core, us: 5588 in blocks
// of 2, 4906 of 4, 5623 of 8, 8152 of 16. A block of a GPU keeps rows; where it takes tupleSteps steps at once, a
// pair is made of 7 numbers, of 15 for one step more.
const (
	tupleBlock = 4
	tupleLanes = 16
	tupleSteps = 2
)

// running is what finish makes of the running folds along axis k, whose extent is known.
// The work is of order n; of order n log n in rows that a block of a GPU keeps.
func (f tupleFold) running(items []*Tensor, k int, finish func([]*Tensor) *Tensor) *Tensor {
	return finish(f.inBlocks(items, k)).OnTarget(func(desc *target.Desc) *Tensor {
		if desc.Kind == target.GPU {
			return finish(alongAxis(items, k, items[0].Rank()-1, f.ofRows))
		}
		return finish(f.inLanes(items, k))
	})
}

// alongAxis applies f, which works along axis to, to tensors with axis k there.
func alongAxis(items []*Tensor, k, to int, f func(items []*Tensor, k int) []*Tensor) []*Tensor {
	if k == to {
		return f(items, k)
	}
	items = lists.Map(items, func(x *Tensor) *Tensor { return x.MoveAxis(k, to).Contiguous() })
	return lists.Map(f(items, to), func(x *Tensor) *Tensor { return x.Contiguous().MoveAxis(to, k) })
}

// inLanes runs along an axis of a CPU that has enough elements beside it, if need be those of blocks.
func (f tupleFold) inLanes(items []*Tensor, k int) []*Tensor {
	dims := items[0].Shape()
	inner, symbols := countOf(dims[k+1:])
	if inner >= tupleLanes || len(symbols) > 0 {
		return f.inBlocks(items, k)
	}
	others, symbols := countOf(slices.Delete(dims, k, k+1))
	if n := items[0].Extent(k); others < tupleLanes && len(symbols) == 0 && n > tupleLanes*tupleLanes {
		return f.ofBlocks(items, k, (n+tupleLanes-1)/tupleLanes, f.inLanes)
	}
	return alongAxis(items, k, 0, f.inBlocks)
}

// inBlocks runs along axis k in blocks of a few.
func (f tupleFold) inBlocks(items []*Tensor, k int) []*Tensor {
	n := items[0].Extent(k)
	if n <= tupleBlock {
		return f.chain(items, k)
	}
	cut := f.cut(items, k, tupleBlock)
	totals := lists.Map(f.total(cut, k+1), (*Tensor).Contiguous)
	before := f.moved(f.inBlocks(totals, k), k, 1)
	return joined(f.combine(unsqueezed(before, k+1), f.chain(cut, k+1)), k, n)
}

// ofRows runs along the last axis, in rows that blocks of a GPU keep.
func (f tupleFold) ofRows(items []*Tensor, k int) []*Tensor {
	switch n := items[0].Extent(k); {
	case n <= tupleBlock:
		return f.chain(items, k)
	case n <= mostRowWords:
		return f.steps(items, k)
	}
	return f.ofBlocks(items, k, mostRowWords, f.ofRows)
}

// ofBlocks runs along axis k in blocks, and combines what comes before a block with its own.
func (f tupleFold) ofBlocks(items []*Tensor, k, block int, run func(items []*Tensor, k int) []*Tensor) []*Tensor {
	inside := lists.Map(run(f.cut(items, k, block), k+1), (*Tensor).Contiguous)
	last := block - 1
	if f.fromEnd {
		last = 0
	}
	totals := lists.Map(inside, func(x *Tensor) *Tensor { return x.SliceInts(k+1, last, 1).Squeeze(k + 1) })
	before := f.moved(run(totals, k), k, 1)
	return joined(f.combine(unsqueezed(before, k+1), inside), k, items[0].Extent(k))
}

// cut makes blocks of axis k, the last of which ends with identities.
func (f tupleFold) cut(items []*Tensor, k, block int) []*Tensor {
	out := make([]*Tensor, len(items))
	for i, x := range items {
		out[i] = x.inBlocks(k, fold{identity: f.identity[i]}, block)
	}
	return out
}

// joined puts blocks together.
func joined(items []*Tensor, k, n int) []*Tensor {
	return lists.Map(items, func(x *Tensor) *Tensor { return x.Contiguous().Flatten(k, k+1).SliceInts(k, 0, n) })
}

func unsqueezed(items []*Tensor, k int) []*Tensor {
	return lists.Map(items, func(x *Tensor) *Tensor { return x.Unsqueeze(k) })
}

// total is the fold of a few elements along axis k.
func (f tupleFold) total(items []*Tensor, k int) []*Tensor {
	n := items[0].Extent(k)
	at := func(i int) []*Tensor {
		if f.fromEnd {
			i = n - 1 - i
		}
		return lists.Map(items, func(x *Tensor) *Tensor { return x.SliceInts(k, i, 1).Squeeze(k) })
	}
	sum := at(0)
	for i := 1; i < n; i++ {
		sum = f.combine(sum, at(i))
	}
	return sum
}

// chain runs along axis k by as many combinations as there are elements before each.
func (f tupleFold) chain(items []*Tensor, k int) []*Tensor {
	n := items[0].Extent(k)
	sum := f.moved(items, k, n-1)
	for by := n - 2; by >= 0; by-- {
		sum = f.combine(sum, f.moved(items, k, by))
	}
	return sum
}

// steps combines each element with those that lie 1, 2, 4 .. before it (Hillis and Steele 1986), in rows that
// a block keeps.
func (f tupleFold) steps(items []*Tensor, k int) []*Tensor {
	items = lists.Map(items, (*Tensor).stageRow)
	for step, by := 1, 1; by < items[0].Extent(k); step, by = step+1, 2*by {
		if items = f.combine(f.moved(items, k, by), items); step%tupleSteps == 0 {
			items = lists.Map(items, (*Tensor).stageRow)
		}
	}
	return lists.Map(items, (*Tensor).stageRow)
}

// moved moves elements on; identities come first.
func (f tupleFold) moved(items []*Tensor, k, by int) []*Tensor {
	if by <= 0 { // of no elements none come before
		return items
	}
	out := make([]*Tensor, len(items))
	for i, x := range items {
		move := fold{identity: f.identity[i]}.moved
		if f.fromEnd {
			move = fold{identity: f.identity[i]}.movedBack
		}
		out[i] = move(x, k, by)
	}
	return out
}
