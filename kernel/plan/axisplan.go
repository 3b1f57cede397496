package plan

import "tgc/ir"

// segment is a digit that an Opt splits off, low end first; size 0 is all that
// is left.
type Segment struct {
	Size int64
	Role Role
}

// axisPlan collects what the Opts say about one axis.
type AxisPlan struct {
	Axis        Axis
	Segments    []Segment
	Top         []Segment // from the high end
	Rest        Role
	PadTo       int64
	Stage       bool
	Fragment    bool  // STAGE of a kernel with MMA: fragments are read from panels
	StageAmount int64 // most points of reduces in a panel of a store axis; 0: all
	Pack        bool
	Dot         bool    // the first segment is a lane-wise dot
	Tile        int     // TILE: so many segments are a tile; 0: none
	Limit       *ir.UOp // from this point on all elements are identities; nil: unknown
}
