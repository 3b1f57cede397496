package shape

import "tgc/ir"

// splitter substitutes the sub-axes of ranges in a kernel.
type splitter struct {
	*State
	splits map[*ir.UOp]*Split
	sums   map[*ir.UOp][]*ir.UOp // the components of tuples that are no tuple any more
}
