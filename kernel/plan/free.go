package plan

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
)

// Free answers which axes of a kernel, by number, an expression depends on.
type Free struct {
	*analyse.FreeSets
	Axes []Axis
}

// NewFree analyses a kernel.
func NewFree(sink *ir.UOp) (*Free, error) {
	axes := Axes(sink)
	ranges := lists.Map(axes, func(x Axis) *ir.UOp { return x.Range })
	sets, err := analyse.NewFreeSets(ranges)
	if err != nil {
		return nil, err
	}
	sets.Of(sink)
	return &Free{sets, axes}, nil
}

// OfKind are the axes of a kind.
func (f *Free) OfKind(kind AxisKind) (s analyse.RangeSet) {
	for i, x := range f.Axes {
		if x.Kind == kind {
			s.Add(i)
		}
	}
	return s
}
