package expr

// What ranges are called. A value's own ranges have unique ids from FirstFree up.
// A closed range, that of a REDUCE or STAGE, is named by the height of its node:
// one more than the largest name closed inside. So two reduces that are equal up
// to the names of their ranges are one node, and an inner range can never capture
// an outer one.
const (
	// FirstFree is the first id of ranges that are not closed: closed ranges have
	// the ids 1..FirstFree-1.
	FirstFree = 1 << 12
	// AnchorBase numbers the loops of a value by position while values are
	// compared; no other range has such an id.
	AnchorBase = 1 << 26
)
