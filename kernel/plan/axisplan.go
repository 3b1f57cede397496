package plan

import "slices"

// Segment is a sub-axis that an Opt splits off, of Size elements; 0 is all that is
// left.
type Segment struct {
	Size int64
	Role Role
}

// AxisPlan collects what the Opts say about one axis.
type AxisPlan struct {
	Axis        Axis
	Segments    []Segment // from the low end
	Rest        Role      // of what is left
	Stage       bool
	StageAmount int64 // most elements of reduces in the array of a store axis; 0: all
	Pack        bool
	PackWords   int64 // of PACK, in a register
	Dot         bool  // the first segment is a lane-wise dot
	Scatter     bool
	Tile        int  // TILE: the number of segments that are a tile; 0: none
	Apart       bool // elements that fill no tile have a loop of their own
}

// Threads is how many threads of a block have points of the axis.
func (x *AxisPlan) Threads() int64 {
	n := int64(1)
	for _, s := range x.Segments {
		if s.Role.IsThread() {
			n *= s.Size
		}
	}
	return n
}

// Has reports a sub-axis of a role.
func (x *AxisPlan) Has(role Role) bool {
	return slices.ContainsFunc(x.Segments, func(s Segment) bool { return s.Role == role })
}
