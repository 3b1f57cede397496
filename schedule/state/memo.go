package state

import "tgc/ir"

// Facts are what cost decisions need to know of an expression.
type Facts struct {
	Constant bool // all extents of closed ranges are constants
	Weights  bool // reads a weight: packed, or a constant matrix
	State    bool // reads a buffer that kernels write
	Reduce   bool // holds a REDUCE
	Stage    bool
}

// Reads lists the values and buffer versions that an expression reads, sorted.
type Reads struct {
	Values   []int
	Versions []int
}

// Use is one read of a value inside a consumer's body.
type Use struct {
	Load   *ir.UOp
	Binder *ir.UOp   // innermost REDUCE or STAGE around it; nil outside all
	Values []*ir.UOp // what that binder evaluates at the use: of a tuple, the use's component and component 0
	Closed []*ir.UOp // ranges closed around it, outermost first
}

// instKey identifies the expression of a value's element.
type instKey struct{ body, index *ir.UOp }

// formKey identifies what a kernel stores: a body and the SINK of its loops.
type formKey struct{ body, loops *ir.UOp }
