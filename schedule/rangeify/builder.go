package rangeify

import (
	"tgc/ir"
	"tgc/schedule/state"
)

// builder makes the values of a tensor graph.
type builder struct {
	*state.State
	shapes    *extents
	versionOf map[*ir.UOp]int          // BUFFER, ASSIGN or AFTER node -> index in versions
	valueOf   map[*ir.UOp]*state.Value // tensor node -> its value
	atMemo    map[atKey]*ir.UOp
	rowMemo   map[atKey]*ir.UOp // stages of rows
}

// atKey identifies a tensor element: the index tuple as one interned node.
type atKey struct{ tensor, index *ir.UOp }
