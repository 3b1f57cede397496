package tensor

import (
	"math"
	"math/bits"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/target"
)

// maxRanked is the longest axis that is sorted by counting ranks: n*n comparisons in two kernels. A
// longer one goes through a network, as does one of which a CPU has so many rows that counting
// takes longer. A GPU always has a network.
const maxRanked = 2048

// Operations of a comparison and its count, and of an exchange within a tile.
const (
	rankOps = 5
	tileOps = 4
)

// selected is the most elements that are found one after the other, by a pass each.
const selected = 16

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
	if k == 0 { // of nothing no order is made
		none := t.SliceInts(i, 0, 0)
		return none, none.graph.Full(ir.I32, 0).fill(none.shape())
	}
	return t.best(i, k, largest)
}

// best is the first count elements of axis k in order.
func (t *Tensor) best(k, count int, descending bool) (values, indices *Tensor) {
	key := t.sortKey(descending).MoveAxis(k, -1)
	items := key.withPositions()
	switch {
	case len(items) == 1 && count <= selected && count < t.Extent(k)/2:
		indices = items[0].selected(count)
	case t.Extent(k) <= maxRanked:
		indices = key.ranked(count)
	default:
		indices = positionsOf(network(items, 1)).SliceInts(-1, 0, count)
	}
	indices = indices.OnTarget(func(desc *target.Desc) *Tensor {
		switch {
		case desc.Kind == target.GPU:
		case t.Extent(k) <= maxRanked && !key.networkPays(desc), len(items) == 1 && count <= selected && count < t.Extent(k)/2:
			return nil
		}
		if len(items) > 1 {
			return key.firstByHalves(count, desc)
		}
		return items[0].first(count, desc)
	})
	indices = indices.MoveAxis(-1, k)
	if count == t.Extent(k) {
		return t.permuted(k, indices), indices
	}
	return t.GatherElements(k, indices), indices
}

// permuted is GatherElements at indices that name each element of axis k once.
func (t *Tensor) permuted(k int, indices *Tensor) *Tensor {
	y := t.GatherElements(k, indices)
	if _, known := t.Shape().Ints(); !known || !t.DType().IsFloat() {
		return y
	}
	return y.derived([]*Tensor{t}, func(_, g *Tensor, _ []*Tensor) []*Tensor { return []*Tensor{g.unpermuted(k, indices)} })
}

// unpermuted puts elements where permuted took them. A GPU, which would look for each among all,
// orders the indices instead, whose positions are where it is.
func (t *Tensor) unpermuted(k int, indices *Tensor) *Tensor {
	y := t.scalar(0).fill(t.shape()).ScatterElementsAdd(k, indices, t).OnTarget(func(desc *target.Desc) *Tensor {
		if desc.Kind != target.GPU {
			return nil
		}
		keys := indices.MoveAxis(k, -1)
		if t.Extent(k) <= 1<<16 {
			keys = keys.Cast(ir.U16)
		}
		words := keys.withPositions()[0]
		return t.GatherElements(k, words.first(t.Extent(k), desc).MoveAxis(-1, k))
	})
	return y.derived([]*Tensor{t}, func(_, g *Tensor, _ []*Tensor) []*Tensor { return []*Tensor{g.permuted(k, indices)} })
}

// sortKey maps elements to integers of the same order. Of a float, the bits
// below the sign are flipped where it is negative; both zeros have the key 0,
// all NaNs the largest.
func (t *Tensor) sortKey(descending bool) *Tensor {
	key := t
	switch {
	case t.DType() == ir.F16 || t.DType() == ir.BF16:
		key = t.shortKey()
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

// shortKey is the key of a float of 16 bits, which has as many: no wider float is needed.
func (t *Tensor) shortKey() *Tensor {
	infinity := 0x7c00
	if t.DType() == ir.BF16 {
		infinity = 0x7f80
	}
	plain := t.Bitcast(ir.I16)
	most := plain.most()
	size := plain.And(most)
	key := size.Eq(size.scalar(0)).Where(size, plain.Xor(plain.Shr(plain.scalar(15)).And(most)))
	return size.scalar(float64(infinity)).Lt(size).Where(most, key)
}

// networkPays compares the ways to sort the last axis on a CPU, in picoseconds.
func (t *Tensor) networkPays(desc *target.Desc) bool {
	n, elements, cost := t.Extent(-1), 1.0, &desc.Cost
	for _, extent := range t.shape() {
		m, _ := extent.Int()
		elements *= float64(m)
	}
	log := bits.Len(uint(max(n, 1) - 1))
	steps := float64(log * (log + 1) / 2)
	if t.DType().Size() > ir.U32.Size() {
		steps *= 2 // by halves
	}
	op := float64(cost.Op) / float64(max(cost.Workers, 1))
	return elements*float64(n)*rankOps*op > elements*steps*tileOps*op+steps*float64(cost.Launch)
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

// withPositions is what takes part in comparisons, what counts most first: keys and their
// positions along the last axis, in one word where they fit, of 32 bits if they do.
func (t *Tensor) withPositions() []*Tensor {
	at := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-1).ExpandDims(t.shape()...)
	dtype, half := ir.I64, ir.U32
	if n, known := t.Dim(-1).Int(); known && n <= 1<<16 && t.DType().Size() <= 2 {
		dtype, half = ir.I32, ir.U16
	}
	if t.DType().Size() > half.Size() {
		return []*Tensor{t, at}
	}
	word := t.Cast(dtype)
	if t.DType() == half {
		word = word.AddScalar(-math.Ldexp(1, half.Bits()-1))
	}
	return []*Tensor{word.Shl(word.scalar(float64(half.Bits()))).Or(at.Cast(dtype))}
}

// positionsOf are the positions that take part.
func positionsOf(items []*Tensor) *Tensor {
	if len(items) > 1 {
		return items[1]
	}
	word := items[0]
	return word.And(word.scalar(math.Ldexp(1, word.DType().Bits()/2) - 1)).Cast(ir.I32)
}

// selected is the positions of the count smallest words of the last axis: each is the
// smallest of those after the one before.
func (t *Tensor) selected(count int) *Tensor {
	best := make([]*Tensor, count)
	left := t
	for i := range best {
		best[i] = left.MinKeep(-1).Contiguous()
		left = best[i].Lt(t).Where(t, t.most())
	}
	return positionsOf([]*Tensor{best[0].Cat(-1, best[1:]...)})
}

// first are the positions of the count smallest words of the last axis, in order; nil where a CPU has
// few rows and short ones.
func (t *Tensor) first(count int, desc *target.Desc) *Tensor {
	if desc.Kind == target.GPU {
		return positionsOf([]*Tensor{t.firstWords(count, longestRow(t.DType(), desc))})
	}
	return firstInTiles(t, count, desc)
}

// firstByHalves are the positions of the count smallest keys of 64 bits of the last axis, in order: they are
// ordered by their lower halves, and then, which keeps the order of equals, by their upper ones. Rows of
// 1021 x 1023 on one Zen 4 core: 20 ms so, 88 ms with each key beside its position.
func (t *Tensor) firstByHalves(count int, desc *target.Desc) *Tensor {
	half := ir.U32
	if t.DType().IsSigned() {
		half = ir.I32
	}
	byLower := t.Cast(ir.U32).withPositions()[0].first(t.Extent(-1), desc)
	if byLower == nil {
		return nil
	}
	byLower = byLower.Contiguous()
	upper := t.Shr(t.scalar(float64(half.Bits()))).Cast(half).GatherElements(-1, byLower)
	return byLower.GatherElements(-1, upper.withPositions()[0].first(count, desc))
}

// firstWords are the count smallest words of the last axis, in order, by networks of which blocks
// of a GPU keep rows of so many words: a kernel a round.
func (t *Tensor) firstWords(count, row int) *Tensor {
	if n := t.Extent(-1); n <= row || partOf(count) > row {
		return network([]*Tensor{t}, row)[0].SliceInts(-1, 0, count)
	}
	winners := network([]*Tensor{t.inParts(partOf(count))}, row)[0].SliceInts(-1, 0, count)
	return winners.Contiguous().Flatten(-2, -1).firstWords(count, row)
}

// partOf is how many words have count winners: of few, those of parts come first, then those of the parts' winners.
func partOf(count int) int { return max(leastPart, 1<<bits.Len(uint(shrinks*count-1))) }

// inParts cuts the last axis.
func (t *Tensor) inParts(part int) *Tensor {
	parts := (t.Extent(-1) + part - 1) / part
	return padWords([]*Tensor{t}, parts*part)[0].Unflatten(-1, parts, part)
}

// Winners come from parts of shrinks times as many words, and at least leastPart.
const (
	shrinks   = 8
	leastPart = 512
)

// mostRowWords is how many words of a row a block keeps, at most.
const mostRowWords = 1024

// longestRow is how many words a block keeps of which two sets are in shared memory.
func longestRow(word ir.DType, desc *target.Desc) int {
	return min(1<<(bits.Len(uint(desc.SharedBytes/(2*word.Size())))-1), mostRowWords)
}

// network orders the words of the last axis by a bitonic network (Batcher 1968) in the form in which
// all comparisons point the same way: sorted blocks of half the size are
// merged by comparing each element with its mirror image in the block, then
// with its partner half the distance away, and so on. Keys and positions travel
// together; the position decides between equal keys. A few steps are a kernel, or
// those within rows of so many words.
func network(items []*Tensor, row int) []*Tensor {
	size := 1 << bits.Len(uint(max(items[0].Extent(-1), 1)-1)) // the next power of two
	items = padWords(items, size)
	if row = min(row, size); row > 1 {
		return rowNetwork(items, row)
	}
	steps := exchanges(size)
	for k, e := range steps {
		if items = e.apply(items); k%together == together-1 && k < len(steps)-1 {
			items = lists.Map(items, (*Tensor).Contiguous)
		}
	}
	return items
}

// rowNetwork sorts rows of so many words, the steps of which are stages of one kernel, and
// merges them: by tiles of elements that lie whole rows apart, then within rows again.
func rowNetwork(items []*Tensor, row int) []*Tensor {
	size := items[0].Extent(-1)
	s := &tileSort{items: items, digits: bits.Len(uint(size)) - 1, positions: size}
	low := bits.Len(uint(row)) - 1
	if low < s.digits { // every other row downwards
		g := items[0].graph
		at, odd := g.Iota(ir.I32, items[0].Dim(-1)), g.Scalar(ir.I32, float64(row))
		s.items = lists.Map(items, func(x *Tensor) *Tensor { return at.And(odd).Eq(odd).Where(x.Not(), x) })
	}
	s.items = exchangeRows(s.items, exchanges(row), row)
	var within []exchange
	for distance := row / 2; distance >= 1; distance /= 2 {
		within = append(within, exchange{0, 2, distance})
	}
	for m := low + 1; m <= s.digits; m++ {
		s.mergeDown(m, low, func(high int) int { return max(high+1-rowTileDigits, low) })
		s.items = exchangeRows(s.items, within, row)
	}
	return s.items
}

// rowTileDigits are the digits of a tile that a thread of a GPU holds: 8 words of two registers.
const rowTileDigits = 3

// exchangeRows takes steps within rows that a block keeps.
func exchangeRows(items []*Tensor, steps []exchange, row int) []*Tensor {
	parts := items[0].Extent(-1) / row
	items = lists.Map(items, func(x *Tensor) *Tensor { return x.Unflatten(-1, parts, row).stageRow() })
	for k, e := range steps {
		e.blocks = row / e.span()
		items = e.apply(items)
		if k%together == together-1 || k == len(steps)-1 {
			items = lists.Map(items, (*Tensor).stageRow)
		}
	}
	if parts > 1 {
		items = lists.Map(items, (*Tensor).Contiguous)
	}
	return lists.Map(items, func(x *Tensor) *Tensor { return x.Flatten(-2, -1) })
}

// stageRow says that rows of the last axis are stages of the kernels that read them.
func (t *Tensor) stageRow() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.make(ir.OpStageRow, t.DType(), nil)
}

// padWords makes the last axis longer; what is added comes last.
func padWords(items []*Tensor, size int) []*Tensor {
	n := items[0].Extent(-1)
	return lists.Map(items, func(x *Tensor) *Tensor {
		if n == size {
			return x
		}
		pads := make([][2]int, x.Rank())
		pads[x.Rank()-1][1] = size - n
		return x.within(x.Rank()-1, n, 0, size-n).Where(x.PadAll(pads, PadOptions{}), x.most())
	})
}

// together is how many exchanges may be one kernel, or one stage. What is computed for an element
// doubles with each. Rows of 256 x 256 on one Zen 5 core, us: 1 306, 2 240, any number
// 456,000.
const together = 2

// exchange is a step of a network: partners are what turning blocks of a part around
// brings together.
type exchange struct{ blocks, parts, part int }

// span is how far apart the elements of a part that is turned around are, and one more.
func (e exchange) span() int { return e.parts * e.part }

// exchanges are the steps for a power of two.
func exchanges(size int) (list []exchange) {
	for block := 2; block <= size; block *= 2 {
		list = append(list, exchange{size / block, 1, block})
		for distance := block / 4; distance >= 1; distance /= 2 {
			list = append(list, exchange{size / (2 * distance), 2, distance})
		}
	}
	return list
}

// partner has for each element the one that it is compared with: its mirror image in a
// block, or that of the other half.
func (e exchange) partner(x *Tensor) *Tensor {
	turned := -1
	if e.parts > 1 {
		turned = -2
	}
	return x.Unflatten(-1, e.blocks, e.parts, e.part).Flip(turned).Flatten(-3, -1)
}

// apply lets each element keep itself or take its partner's place: in the
// lower half of a block the smaller of the two stays, in the upper the larger.
func (e exchange) apply(items []*Tensor) []*Tensor {
	g := items[0].graph
	half := g.Scalar(ir.I32, float64(e.parts*e.part/2))
	upper := g.Iota(ir.I32, items[0].Dim(-1)).And(half).Eq(half)
	return keepOrSwap(items, lists.Map(items, e.partner), upper)
}
