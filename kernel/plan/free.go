package plan

import (
	"tgc/ir"
	"tgc/ir/analyse"
)

// Free answers which axes an expression depends on.
type Free struct {
	Sets *analyse.FreeSets
	axes []Axis
}

// NewFree analyses a kernel.
func NewFree(sink *ir.UOp) (*Free, error) {
	axes := Axes(sink)
	ranges := make([]*ir.UOp, len(axes))
	for i, x := range axes {
		ranges[i] = x.Range
	}
	sets, err := analyse.NewFreeSets(ranges)
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
func (f *Free) Index(r *ir.UOp) int { return f.Sets.Index.Of(r) }

// Store are the numbers of the axes of stores that u depends on.
func (f *Free) Store(u *ir.UOp) (s analyse.RangeSet) {
	for _, i := range f.Of(u) {
		if f.axes[i].Kind == StoreAxis {
			s.Add(i)
		}
	}
	return s
}
