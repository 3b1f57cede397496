package kernel

import (
	"fmt"
	"math/bits"

	"tgc/ir"
)

// maxRanges bounds the digits of a planned kernel.
const maxRanges = 128

// rangeSet is a set of ranges by index.
type rangeSet [2]uint64

func (s *rangeSet) add(i int)     { s[i>>6] |= 1 << (i & 63) }
func (s rangeSet) has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }
func (s rangeSet) empty() bool    { return s[0]|s[1] == 0 }
func (s rangeSet) without(i int) rangeSet {
	s[i>>6] &^= 1 << (i & 63)
	return s
}

func (s rangeSet) union(t rangeSet) rangeSet { return rangeSet{s[0] | t[0], s[1] | t[1]} }
func (s rangeSet) meet(t rangeSet) rangeSet  { return rangeSet{s[0] & t[0], s[1] & t[1]} }
func (s rangeSet) minus(t rangeSet) rangeSet { return rangeSet{s[0] &^ t[0], s[1] &^ t[1]} }

// list is the members in ascending order: outer ranges before inner.
func (s rangeSet) list() []int {
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
type freeSets struct {
	index map[*ir.UOp]int
	memo  map[*ir.UOp]rangeSet
}

func newFreeSets(ranges []*ir.UOp) (*freeSets, error) {
	if len(ranges) > maxRanges {
		return nil, fmt.Errorf("kernel: %d ranges after splitting, at most %d are allowed", len(ranges), maxRanges)
	}
	f := &freeSets{index: make(map[*ir.UOp]int, len(ranges)), memo: make(map[*ir.UOp]rangeSet)}
	for i, r := range ranges {
		f.index[r] = i
	}
	return f, nil
}

// of is the free ranges of a node.
func (f *freeSets) of(u *ir.UOp) rangeSet {
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

func (f *freeSets) compute(u *ir.UOp) rangeSet {
	var s rangeSet
	for _, x := range u.Src {
		s = s.union(f.memo[x])
	}
	switch u.Op {
	case ir.OpRange:
		s.add(f.index[u])
	case ir.OpReduce:
		s = s.without(f.index[u.ReduceRange()])
	case ir.OpProj:
		return f.projFree(u.Src[0], int(u.Arg.(ir.IntArg)))
	case ir.OpStage:
		for _, z := range u.Src[1:] {
			s = s.without(f.index[z])
		}
	}
	return s
}

// projFree is the free ranges of component c of a tuple.
func (f *freeSets) projFree(u *ir.UOp, c int) rangeSet {
	var s rangeSet
	p := partsOf(u)
	for _, o := range componentsOf(u, c) {
		s = s.union(f.memo[p.values[o]]).union(f.memo[p.identities[o]])
	}
	return s.without(f.index[p.over]).union(f.memo[p.over].without(f.index[p.over]))
}

// Free answers which axes an expression depends on.
type Free struct {
	sets *freeSets
	axes []Axis
}

// NewFree analyses a kernel.
func NewFree(sink *ir.UOp) (*Free, error) {
	axes := Axes(sink)
	ranges := make([]*ir.UOp, len(axes))
	for i, x := range axes {
		ranges[i] = x.Range
	}
	sets, err := newFreeSets(ranges)
	if err != nil {
		return nil, err
	}
	sets.of(sink)
	return &Free{sets, axes}, nil
}

// Axes lists the kernel's axes.
func (f *Free) Axes() []Axis { return f.axes }

// Of lists the numbers (into Axes) of the axes that u depends on.
func (f *Free) Of(u *ir.UOp) []int { return f.sets.of(u).list() }

// Has reports that u depends on axis number i.
func (f *Free) Has(u *ir.UOp, i int) bool { return f.sets.of(u).has(i) }

// Index is the number of the axis of a RANGE.
func (f *Free) Index(r *ir.UOp) int { return f.sets.index[r] }

// HasStore reports that u depends on an axis of a store.
func (f *Free) hasStore(u *ir.UOp) bool {
	for _, i := range f.Of(u) {
		if f.axes[i].Kind == StoreAxis {
			return true
		}
	}
	return false
}
