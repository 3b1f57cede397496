// Package expr builds and analyses the expressions of values:
// their free and closed ranges, their canonical names, substitution, index
// arithmetic, products, tuples, and what an expression costs.
//
// It knows expressions only: no value but as the target of a LOAD, no option, no
// rule. Start at ranges.go (what ranges are called), then bind.go.
package expr

import (
	"tgc/ir"
	"tgc/rewrite"
)

// Exprs are the expressions of one arena, with what is known of them. What is
// remembered of a node never changes, because nodes do not.
type Exprs struct {
	A         *ir.Arena
	NextRange int // last id that NewRange gave

	Free     *ir.FreeRanges // free ranges
	Mentions *ir.FreeRanges // free ranges, also those that projections hide
	Bounds   *ir.Bounds
	Linear   *ir.Linearizer

	heights ir.NodeMap[int]
	fields  ir.NodeMap[bool] // see ReadsField
	bits    ir.NodeMap[bool] // integers that come from the bits of floats
	index   *rewrite.Simplifier
	opsMemo map[*ir.UOp]int64
}

// New makes the expressions of an arena.
func New(a *ir.Arena) *Exprs {
	return &Exprs{
		A: a, NextRange: FirstFree, Free: ir.NewFreeRanges(), Mentions: ir.NewMentionedRanges(), Bounds: ir.NewBounds(), Linear: ir.NewLinearizer(a),
		index: rewrite.NewSimplifier(a), opsMemo: make(map[*ir.UOp]int64),
	}
}
