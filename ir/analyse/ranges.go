package analyse

import (
	"fmt"
	"math/bits"

	"tgc/ir"
)

// MaxRanges is the most ranges that a RangeSet has room for.
const MaxRanges = 128

// RangeSet is a set of ranges, or axes, by index. Sets compare with ==.
type RangeSet [2]uint64

// Add adds i in place.
func (s *RangeSet) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Has reports that i is in the set.
func (s RangeSet) Has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }

// Empty reports that nothing is in the set.
func (s RangeSet) Empty() bool { return s[0]|s[1] == 0 }

// With is the set and i.
func (s RangeSet) With(i int) RangeSet {
	s.Add(i)
	return s
}

// Without is the set but for i.
func (s RangeSet) Without(i int) RangeSet {
	s[i>>6] &^= 1 << (i & 63)
	return s
}

// Union is what is in one of two sets.
func (s RangeSet) Union(t RangeSet) RangeSet { return RangeSet{s[0] | t[0], s[1] | t[1]} }

// Meet is what is in both sets.
func (s RangeSet) Meet(t RangeSet) RangeSet { return RangeSet{s[0] & t[0], s[1] & t[1]} }

// Minus is what is in s and not in t.
func (s RangeSet) Minus(t RangeSet) RangeSet { return RangeSet{s[0] &^ t[0], s[1] &^ t[1]} }

// List is the members in ascending order.
func (s RangeSet) List() []int {
	var out []int
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			out = append(out, w<<6+bits.TrailingZeros64(word))
		}
	}
	return out
}

// FreeSets is ir.Free as sets by the index of a range in a list: the view for
// passes that number the ranges of a kernel. Ranges that are not in the list are
// in no set.
type FreeSets struct {
	ir.Free[RangeSet]
	Ranges []*ir.UOp       // the list
	Index  ir.NodeMap[int] // of a range in it
}

// NewFreeSets makes one for a list of ranges, of which there may be too many.
func NewFreeSets(ranges []*ir.UOp) (*FreeSets, error) {
	if len(ranges) > MaxRanges {
		return nil, fmt.Errorf("%d ranges, at most %d are allowed", len(ranges), MaxRanges)
	}
	f := &FreeSets{Ranges: ranges}
	for i, r := range ranges {
		f.Index.Set(r, i)
	}
	f.RangeSets = ir.RangeSets[RangeSet]{One: f.one, Union: RangeSet.Union, Without: f.without}
	return f, nil
}

// SetOf is a set of ranges of the list.
func (f *FreeSets) SetOf(ranges ...*ir.UOp) (s RangeSet) {
	for _, r := range ranges {
		if i, ok := f.Index.Get(r); ok {
			s.Add(i)
		}
	}
	return s
}

func (f *FreeSets) one(r *ir.UOp) RangeSet { return f.SetOf(r) }

func (f *FreeSets) without(s RangeSet, ranges []*ir.UOp) RangeSet { return s.Minus(f.SetOf(ranges...)) }
