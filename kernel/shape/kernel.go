package shape

import (
	"slices"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/rewrite"
	"tgc/target"
)

// Kernel is a shaped kernel, whose ranges all are sub-axes with a role: what
// lowering reads.
type Kernel struct {
	Arena    *ir.Arena
	Sink     *ir.UOp
	Stores   []Store
	Tile     *MatrixTile      // of MMA; nil without
	Ranges   []*ir.UOp        // every RANGE, outer before inner, high sub-axes before low
	Roles    []plan.Role      // by index into Ranges
	Dots     analyse.RangeSet // of Ranges: sums over them may be dot instructions
	Rising   analyse.RangeSet // of Ranges: of work units, towards whose end loops are longer
	Options  plan.Global
	Desc     *target.Desc
	Simplify *rewrite.Simplifier
	Bounds   *ir.Bounds
}

// Store is a STORE and the conditions of its padded ranges.
type Store struct {
	Node  *ir.UOp
	Gates []*ir.UOp
}

// MatrixTile says which sub-axes make a tile.
type MatrixTile struct {
	RowLane, RowCopy       *ir.UOp
	ColumnLane, ColumnCopy *ir.UOp
	Point                  *ir.UOp // the lane's points: lanes of a vector
	Rows, Columns          *TileSide
	Points                 *TileSide  // of a tile of a softmax: a sub-axis of MMA, then copies; nil without
	Group                  *TileGroup // whose tile it is together; nil: a warp's
}

// TileGroup are the further sub-axes of a tile that a warpgroup has.
type TileGroup struct {
	Warp        *ir.UOp   // of its rows: the warps of the group
	ColumnTiles []*ir.UOp // of its columns: copies, low first
}

// Columns are those of an instruction.
func (g *TileGroup) Columns() int64 {
	n := int64(plan.MatrixColumns)
	for _, r := range g.ColumnTiles {
		extent, _ := r.Src[0].Int()
		n *= extent
	}
	return n
}

// TileSide is a store axis of a tile: its sub-axes within a block, low first.
type TileSide struct {
	SubAxes []SubAxis
	Staged  bool
}

// has reports a sub-axis of a side.
func (s *TileSide) has(r *ir.UOp) bool {
	return slices.ContainsFunc(s.SubAxes, func(d SubAxis) bool { return d.Range == r })
}
