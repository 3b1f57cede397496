package state

import (
	"fmt"

	"tgc/ir"
)

// Value is the unit of all rules: P[ranges] := body. Other values are read in
// body as LOAD(VALUE, index...), buffers as LOAD or FIELD of a version's PARAM.
// What ranges are called is said in expr/ranges.go.
type Value struct {
	ID     int
	Node   *ir.UOp   // the VALUE node that reads refer to; sources are extents
	Ranges []*ir.UOp // signature: one RANGE per axis; extent-1 axes have none
	Body   *ir.UOp

	// Loops and Index describe the store. nil: loops are the ranges and the
	// index is the ranges too. A tile epilogue splits loops without touching
	// the signature; an assignment has index expressions into its buffer.
	Loops []*ir.UOp
	Index []*ir.UOp

	Target         int  // version that this value writes, -1: a temporary
	Pinned         bool // CONTIGUOUS, COPY and what stage-prologues stores: always a buffer of its own
	StoredWithTile bool // computed from the tile of a stored value: stored by the same kernel, else the tile would be computed again
	Split          bool // loops differ from the signature: must not be inlined
	Group          int  // parts of one split reduce have one number: they wait for each other's operands; 0: none
	Update         int  // values that one kernel stores point by point have one number (fuse-updates); 0: none
	Dead           bool
	Apart          int64 // price of the kernels that it was made of, 0: of its own (see State.Pays)

	Key     string   // see State.NameValues; empty: it has none yet
	Name    string   // what it writes, for people
	Reasons []string // what was fused into it
}

// Version is one state of a user's buffer, between two assignments.
type Version struct {
	Buffer   *ir.UOp // the BUFFER node
	Number   int
	Param    *ir.UOp // PARAM of this version in bodies; its slot is the index in versions
	Previous int     // version before, -1
	Writer   int     // value that makes it, -1: it is the input
	Under    int     // -1, or the version whose region the reads leave out (forward-stores)
	Waits    []int   // values that reads wait for (AFTER)
}

// String is the buffer and its state: buffer3@1.
func (v *Version) String() string {
	arg, ok := v.Buffer.Arg.(ir.BufferArg)
	if !ok {
		return "a temporary"
	}
	return fmt.Sprintf("buffer%d@%d", arg.ID, v.Number)
}

// StoreLoops is the loop order of the value's store.
func (v *Value) StoreLoops() []*ir.UOp {
	if v.Loops != nil {
		return v.Loops
	}
	return v.Ranges
}

// StoreIndex is where the store writes.
func (v *Value) StoreIndex() []*ir.UOp {
	if v.Index != nil {
		return v.Index
	}
	return v.Ranges
}
