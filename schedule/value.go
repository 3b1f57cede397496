package schedule

import (
	"fmt"

	"tgc/ir"
)

// value is the unit of all rules: P[ranges] := body. Other values are read in
// body as LOAD(VALUE, index...), buffers as LOAD or FIELD of a version's PARAM.
//
// Names of ranges. A value's own ranges have unique ids from firstFree up. A
// closed range (of a REDUCE or STAGE) is named by the height of its node: one
// more than the largest name closed inside. So two reduces that are equal up to
// the names of their ranges are one node, and an inner range can never capture
// an outer one.
type value struct {
	id     int
	node   *ir.UOp   // the VALUE node that reads refer to; sources are extents
	ranges []*ir.UOp // signature: one RANGE per axis; extent-1 axes have none
	body   *ir.UOp

	// loops and index describe the store. nil: loops are the ranges and the
	// index is the ranges too. A tile epilogue splits loops without touching
	// the signature; an assignment has index expressions into its buffer.
	loops []*ir.UOp
	index []*ir.UOp

	target int  // version that this value writes, -1: a temporary
	pinned bool // CONTIGUOUS and COPY: always a buffer of its own
	beside bool // made of the tile of a stored value: stored beside it, or else the tile would be made again
	split  bool // loops differ from the signature: must not be inlined
	group  int  // parts of one split reduce have one number: they wait for each other's operands; 0: none
	update int  // values that one kernel stores point by point have one number (joinUpdates); 0: none
	dead   bool

	name    string   // what it writes, for people
	reasons []string // what was fused into it
}

// firstFree is the first id of ranges that are not closed; closed ranges have
// the small ids 1..firstFree-1 (their heights).
const firstFree = 1 << 12

// version is one state of a user's buffer, between two assignments.
type version struct {
	buffer   *ir.UOp // the BUFFER node
	number   int
	param    *ir.UOp // PARAM that stands for this version in bodies; its slot is the index in versions
	previous int     // version before, -1
	writer   int     // value that makes it, -1: it is the input
	under    int     // -1, or the version whose region the reads leave out (R0f)
	waits    []int   // values that reads wait for (AFTER)
}

func (v *version) String() string {
	arg, ok := v.buffer.Arg.(ir.BufferArg)
	if !ok {
		return "a temporary"
	}
	return fmt.Sprintf("buffer%d@%d", arg.ID, v.number)
}

// newRange makes a RANGE with an id of its own.
func (s *scheduler) newRange(extent *ir.UOp) *ir.UOp {
	s.nextRange++
	return s.a.Range(s.nextRange, extent)
}

func rangeID(r *ir.UOp) int { return r.Arg.(ir.RangeArg).ID }

// isClosed reports a range that some REDUCE or STAGE closes.
func isClosed(r *ir.UOp) bool { return rangeID(r) < firstFree }

// newValue adds a value over the given ranges. The body is set by the caller
// when it is not known yet.
func (s *scheduler) newValue(dtype ir.DType, ranges []*ir.UOp, body *ir.UOp) *value {
	extents := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		extents[i] = r.Src[0]
	}
	id := len(s.values)
	v := &value{
		id: id, ranges: ranges, body: body, target: -1,
		node: s.a.Make(ir.OpValue, dtype, ir.ValueArg{ID: id}, extents...),
	}
	s.values = append(s.values, v)
	return v
}

// storeLoops is the loop order of the value's store.
func (v *value) storeLoops() []*ir.UOp {
	if v.loops != nil {
		return v.loops
	}
	return v.ranges
}

// storeIndex is where the store writes.
func (v *value) storeIndex() []*ir.UOp {
	if v.index != nil {
		return v.index
	}
	return v.ranges
}

// isUnit reports an extent of 1: such an axis has index 0 and no range.
func isUnit(extent *ir.UOp) bool { return extent.IsInt(1) }

// rangesOf makes a range for every axis of a shape that is not 1, and the full
// index (0 on the axes of extent 1).
func (s *scheduler) rangesOf(shape []*ir.UOp) (ranges, index []*ir.UOp) {
	index = make([]*ir.UOp, len(shape))
	for i, extent := range shape {
		if isUnit(extent) {
			index[i] = s.a.Index(0)
			continue
		}
		index[i] = s.newRange(extent)
		ranges = append(ranges, index[i])
	}
	return ranges, index
}

// dropUnits keeps the index entries of axes that are not 1.
func dropUnits(shape, index []*ir.UOp) []*ir.UOp {
	var kept []*ir.UOp
	for i, extent := range shape {
		if !isUnit(extent) {
			kept = append(kept, index[i])
		}
	}
	return kept
}
