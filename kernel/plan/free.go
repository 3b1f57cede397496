package plan

import (
	"fmt"
	"math/bits"

	"tgc/ir"
)

// maxRanges bounds the digits of a planned kernel.
const MaxRanges = 128

// rangeSet is a set of ranges by index.
type RangeSet [2]uint64

func (s *RangeSet) Add(i int)     { s[i>>6] |= 1 << (i & 63) }
func (s RangeSet) Has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }
func (s RangeSet) Empty() bool    { return s[0]|s[1] == 0 }
func (s RangeSet) Without(i int) RangeSet {
	s[i>>6] &^= 1 << (i & 63)
	return s
}

func (s RangeSet) Union(t RangeSet) RangeSet { return RangeSet{s[0] | t[0], s[1] | t[1]} }
func (s RangeSet) Meet(t RangeSet) RangeSet  { return RangeSet{s[0] & t[0], s[1] & t[1]} }
func (s RangeSet) Minus(t RangeSet) RangeSet { return RangeSet{s[0] &^ t[0], s[1] &^ t[1]} }

// list is the members in ascending order: outer ranges before inner.
func (s RangeSet) List() []int {
	var out []int
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			out = append(out, w<<6+bits.TrailingZeros64(word))
		}
	}
	return out
}

// freeSets remembers which ranges each node depends on: those it uses minus
// those that a REDUCE or STAGE below it closes.
type FreeSets struct {
	Index map[*ir.UOp]int
	memo  map[*ir.UOp]RangeSet
}

func NewFreeSets(ranges []*ir.UOp) (*FreeSets, error) {
	if len(ranges) > MaxRanges {
		return nil, fmt.Errorf("kernel: %d ranges after splitting, at most %d are allowed", len(ranges), MaxRanges)
	}
	f := &FreeSets{Index: make(map[*ir.UOp]int, len(ranges)), memo: make(map[*ir.UOp]RangeSet)}
	for i, r := range ranges {
		f.Index[r] = i
	}
	return f, nil
}

// of is the free ranges of a node.
func (f *FreeSets) Of(u *ir.UOp) RangeSet {
	if s, ok := f.memo[u]; ok {
		return s
	}
	for _, node := range ir.Toposort(u) {
		if _, ok := f.memo[node]; !ok {
			f.memo[node] = f.compute(node)
		}
	}
	return f.memo[u]
}

func (f *FreeSets) compute(u *ir.UOp) RangeSet {
	var s RangeSet
	for _, x := range u.Src {
		s = s.Union(f.memo[x])
	}
	switch u.Op {
	case ir.OpRange:
		s.Add(f.Index[u])
	case ir.OpReduce:
		s = s.Without(f.Index[u.ReduceRange()])
	case ir.OpProj:
		return f.projFree(u.Src[0], int(u.Arg.(ir.IntArg)))
	case ir.OpStage:
		for _, z := range u.Src[1:] {
			s = s.Without(f.Index[z])
		}
	}
	return s
}

// projFree is the free ranges of component c of a tuple.
func (f *FreeSets) projFree(u *ir.UOp, c int) RangeSet {
	var s RangeSet
	p := PartsOf(u)
	for _, o := range ComponentsOf(u, c) {
		s = s.Union(f.memo[p.Values[o]]).Union(f.memo[p.Identities[o]])
	}
	return s.Without(f.Index[p.over]).Union(f.memo[p.over].Without(f.Index[p.over]))
}

// Free answers which axes an expression depends on.
type Free struct {
	Sets *FreeSets
	axes []Axis
}

// NewFree analyses a kernel.
func NewFree(sink *ir.UOp) (*Free, error) {
	axes := Axes(sink)
	ranges := make([]*ir.UOp, len(axes))
	for i, x := range axes {
		ranges[i] = x.Range
	}
	sets, err := NewFreeSets(ranges)
	if err != nil {
		return nil, err
	}
	sets.Of(sink)
	return &Free{sets, axes}, nil
}

// Axes lists the kernel's axes.
func (f *Free) Axes() []Axis { return f.axes }

// Of lists the numbers (into Axes) of the axes that u depends on.
func (f *Free) Of(u *ir.UOp) []int { return f.Sets.Of(u).List() }

// Has reports that u depends on axis number i.
func (f *Free) Has(u *ir.UOp, i int) bool { return f.Sets.Of(u).Has(i) }

// Index is the number of the axis of a RANGE.
func (f *Free) Index(r *ir.UOp) int { return f.Sets.Index[r] }

// HasStore reports that u depends on an axis of a store.
func (f *Free) HasStore(u *ir.UOp) bool {
	for _, i := range f.Of(u) {
		if f.axes[i].Kind == StoreAxis {
			return true
		}
	}
	return false
}
