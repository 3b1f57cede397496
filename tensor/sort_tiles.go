package tensor

import (
	"math/bits"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/target"
)

// A network in registers. A step compares elements whose positions differ in one binary digit:
// those that differ in a few digits are a tile, and steps along these digits stay within it. So a
// kernel takes several digits at once: it loads each element once and compares it once a step. Lanes run along
// what is neither: rows, or segments of rows, which are laid side by side.

// tileSort is a network under way. Words lie as [groups, positions, lanes], where lanes are the rows
// of a group or, of few rows, the segments of one.
type tileSort struct {
	items     []*Tensor
	word      ir.DType
	dims      []*ir.UOp // of what shall be sorted
	rows      int       // of these
	digits    int       // of a position
	positions int       // of a segment, so far: as many as there are words, in whole blocks
	lanes     int       // digits of a lane
	segments  int       // digits of a position that name a segment, the highest: those of a lane, or none
	most      int       // digits of a tile
}

// leastLanes is the fewest digits of a lane: fewer than four neighbours are not worth lanes.
const leastLanes = 2

// manyRows is how many rows are lanes themselves: but the last vector, all are full.
const manyRows = 32

// firstInTiles are the positions of the count smallest words of the last axis, in order; nil where rows
// are few and short, or their number is not known.
func firstInTiles(words *Tensor, count int, desc *target.Desc) *Tensor {
	for part := partOf(count); words.Extent(-1) > part; {
		s := newTileSort(words.inParts(part), desc)
		if s == nil {
			return nil
		}
		words = s.sorted(count, func(x *Tensor) *Tensor { return x }).Flatten(-2, -1)
	}
	s := newTileSort(words, desc)
	if s == nil {
		return nil
	}
	return s.sorted(count, func(x *Tensor) *Tensor { return positionsOf([]*Tensor{x}) })
}

// newTileSort lays out the words whose last axis shall be sorted.
func newTileSort(words *Tensor, desc *target.Desc) *tileSort {
	dims, n := words.shape(), words.Extent(-1)
	rows, symbols := countOf(dims[:len(dims)-1])
	s := &tileSort{word: words.DType(), dims: dims, rows: int(rows), digits: bits.Len(uint(n - 1))}
	s.lanes = max(bits.Len(uint(desc.VectorBytes/words.DType().Size()))-1, leastLanes)
	s.most = bits.Len(uint(desc.VectorRegs)) - 2
	if s.rows < manyRows {
		s.segments = s.lanes
	}
	if len(symbols) > 0 || rows == 0 || s.within() < 1 {
		return nil
	}
	s.positions = wholeBlocks((n+1<<s.segments-1)>>s.segments, s.first())
	x := padWords([]*Tensor{words.Reshape(s.rows, n)}, s.positions<<s.segments)[0]
	if s.segments > 0 { // any words will do for a segment to begin with: they know their positions
		x = x.Reshape(s.rows, s.positions, -1)
	} else {
		x = x.Pad(0, 0, wholeBlocks(s.rows, s.lanes)-s.rows)
		x = x.Reshape(-1, 1<<s.lanes, s.positions).Permute(0, 2, 1).Contiguous()
	}
	s.items = []*Tensor{x}
	return s
}

// wholeBlocks is n, or how many are whole blocks of a power of two.
func wholeBlocks(n, digits int) int { return (n + 1<<digits - 1) >> digits << digits }

// sorted is what is taken of the words in order, the first count of each row.
func (s *tileSort) sorted(count int, take func(*Tensor) *Tensor) *Tensor {
	s.sort()
	x, last := take(s.items[0]), len(s.dims)-1
	if s.segments == 0 {
		x = x.SliceInts(1, 0, count)
	}
	x = x.Permute(0, 2, 1).Contiguous().Reshape(-1, x.Extent(1)<<s.segments)
	dims := append(s.dims[:last:last], x.graph.arena.Index(int64(count)))
	return x.SliceInts(0, 0, s.rows).SliceInts(1, 0, count).ReshapeDims(dims...)
}

// sort puts the words of lanes, or of all lanes of a row, in order.
func (s *tileSort) sort() {
	first := s.first()
	s.kernel(first-1, 0, func(v *tileView) {
		for m := 1; m < first; m++ {
			v.steps(m-1, 0, v.bit(m))
		}
		v.complement(v.bit(first))
		v.steps(first-1, 0, nil)
	})
	for m := first + 1; m <= s.digits; m++ {
		s.grow(m)
		s.mergeDown(m, 0, func(high int) int { return s.lowest(min(high, s.within()-1)) })
	}
}

// first is the digits of the blocks that one kernel sorts.
func (s *tileSort) first() int { return min(s.tileDigits(0), s.within()) }

// grow adds a block of words that come last, which the last block is merged with: one that is sorted downwards.
func (s *tileSort) grow(m int) {
	if more := 1 << (m - 1); m <= s.within() && s.positions&more > 0 {
		s.items = lists.Map(s.items, func(x *Tensor) *Tensor {
			last := x.most().Not()
			return x.within(1, s.positions, 0, more).Where(x.Pad(1, 0, more), last)
		})
		s.positions += more
	}
}

// within is the digits of a position within a segment.
func (s *tileSort) within() int { return s.digits - s.segments }

// mergeDown sorts blocks of 2^m words, of which the halves are sorted, one upwards and one downwards: it takes
// the steps along the digits down to low. The tile of which a digit is the highest ends where lowest says.
func (s *tileSort) mergeDown(m, low int, lowest func(high int) int) {
	for high := m - 1; high >= low; {
		last := lowest(high)
		s.kernel(high, last, func(v *tileView) {
			if high == m-1 {
				v.complement(v.differ(m-1, m))
			}
			v.steps(high, last, nil)
		})
		high = last - 1
	}
}

// lowest is the lowest digit of a tile of which high is the highest.
func (s *tileSort) lowest(high int) int {
	low := 0
	for low+s.tileDigits(low) <= high {
		low += s.tileDigits(low)
	}
	return low
}

// tileDigits is how many digits of a tile are worth it from digit low on: vectors that lie aliasBytes
// apart share a set of the first cache.
func (s *tileSort) tileDigits(low int) int {
	step := s.word.Size() << (low + s.lanes)
	return min(s.most, bits.Len(uint(max(aliasBytes/step, 1)))-1+setDigits)
}

// A set of a first cache has ways for 2^setDigits vectors that are read and as many that are written.
const (
	aliasBytes = 4096
	setDigits  = 3
)

// kernel takes steps along the digits from high to low.
func (s *tileSort) kernel(high, low int, steps func(*tileView)) {
	v := &tileView{tileSort: s, high: min(high, s.within()-1), low: low}
	tile, inner := v.high+1-low, low+s.lanes
	v.shape = slices.Concat([]int{-1, s.positions >> (v.high + 1)}, slices.Repeat([]int{2}, tile), []int{1 << inner})
	v.items = lists.Map(s.items, func(x *Tensor) *Tensor { return x.Reshape(v.shape...) })
	steps(v)
	dims := s.items[0].shape()
	s.items = lists.Map(v.items, func(x *Tensor) *Tensor { return x.Contiguous().ReshapeDims(dims...) })
}

// tileView is the words with an axis for each digit of a tile.
type tileView struct {
	*tileSort
	items     []*Tensor
	high, low int
	shape     []int
}

// place is the axis that has a digit of the positions, and which digit it is of the axis's own.
func (v *tileView) place(k int) (axis, digit int) {
	switch {
	case k >= v.within():
		return len(v.shape) - 1, k - v.within()
	case k > v.high:
		return 1, k - v.high - 1
	}
	return 2 + v.high - k, 0
}

// bit is a digit of the positions, as Bool; nil where it is always 0.
func (v *tileView) bit(k int) *Tensor {
	if k >= v.digits {
		return nil
	}
	axis, digit := v.place(k)
	x := v.items[0]
	at := x.graph.axisIota(ir.I32, x.shape(), axis)
	mask := at.scalar(float64(int(1) << digit))
	return at.And(mask).Eq(mask)
}

// differ says where two digits do.
func (v *tileView) differ(k, m int) *Tensor {
	x, y := v.bit(k), v.bit(m)
	if y == nil {
		return x
	}
	return x.Xor(y)
}

// partner has for each word the one from which its position differs in a digit.
func (v *tileView) partner(x *Tensor, k int) *Tensor {
	axis, digit := v.place(k)
	n := v.shape[axis]
	return x.Unflatten(axis, n>>(digit+1), 2, 1<<digit).Flip(axis+1).Flatten(axis, axis+2)
}

// complement turns the order around where other says so: words are sorted downwards as their
// complements upwards. A block of 2^m words is complemented while it is sorted where digit m is set.
func (v *tileView) complement(other *Tensor) {
	if other != nil {
		v.items = lists.Map(v.items, func(x *Tensor) *Tensor { return other.Where(x.Not(), x) })
	}
}

// steps compares along the digits from high to low; down says where the larger comes first.
func (v *tileView) steps(high, low int, down *Tensor) {
	for k := high; k >= low; k-- {
		upper := v.bit(k)
		if down != nil {
			upper = upper.Xor(down)
		}
		partners := lists.Map(v.items, func(x *Tensor) *Tensor { return v.partner(x, k) })
		if x, y := v.items[0], partners[0]; len(v.items) == 1 { // of a point of a tile, upper is a constant
			v.items = []*Tensor{upper.Where(x.Maximum(y), x.Minimum(y))}
		} else {
			v.items = keepOrSwap(v.items, partners, upper)
		}
	}
}

// keepOrSwap takes, of two words, the larger where upper is true, else the smaller.
func keepOrSwap(items, partners []*Tensor, upper *Tensor) []*Tensor {
	var before *Tensor // the partner comes first
	for i := len(items) - 1; i >= 0; i-- {
		less := partners[i].Lt(items[i])
		if before != nil {
			less = less.Or(partners[i].Eq(items[i]).And(before))
		}
		before = less
	}
	swap := before.Xor(upper)
	out := make([]*Tensor, len(items))
	for i, x := range items {
		out[i] = swap.Where(partners[i], x)
	}
	return out
}
