package kernel

import "tgc/ir"

// segment is a digit that an Opt splits off, low end first; size 0 is all that
// is left.
type segment struct {
	size int64
	role role
}

// axisPlan collects what the Opts say about one axis.
type axisPlan struct {
	axis     Axis
	segments []segment
	top      []segment // from the high end
	rest     role
	padTo    int64
	stage    bool
	fragment bool  // STAGE of a kernel with MMA: fragments are read from panels
	panel    int64 // most points of reduces in a panel of a store axis; 0: all
	pack     bool
	dot      bool    // the first segment is a lane-wise dot
	tile     int     // TILE: so many segments are a tile; 0: none
	limit    *ir.UOp // from this point on all elements are identities; nil: unknown
}
