package plan

import (
	"slices"

	"tgc/ir/program"
	"tgc/target"
)

// Matrix instructions: the Opt MMA. The sub-axis of a reduce that it splits off is
// summed by the warp together, one mma.sync for a tile of 16 rows by 8 columns
// and 16 points of the sum. The plan shapes the tile by the low sub-axes of two
// store axes, which are the places of its result in the lanes:
//
//	rows      LOCAL 8; UPCAST 2     row    = lane/4 + 8*copy
//	columns   UPCAST 2; LOCAL 4     column = 2*(lane%4) + copy
//
// Accumulators are then those of any other plan: one for each copy. The factors
// are what differs: a lane holds a quarter of the points of the sum of its rows,
// and of column lane/4 instead of its own. Which points is free, as long as both
// factors agree: a lane takes four neighbours, so it loads a word of packed
// bytes, or 16 bytes of floats, at once; where twice as many are summed, eight.
const (
	matrixRows    = 16
	MatrixColumns = 8
	MatrixPoints  = 16
	WidePoints    = 2 * MatrixPoints // in one instruction of bytes, or two of floats

	RowLanes, RowCopies       = 8, 2
	ColumnLanes, ColumnCopies = 4, 2
	LanePoints                = MatrixPoints / ColumnLanes
)

// The lowest sub-axes of the rows and of the columns of a warp's tile.
var (
	RowSegments    = []Segment{{Size: RowLanes, Role: Local}, {Size: RowCopies, Role: Unroll}}
	ColumnSegments = []Segment{{Size: ColumnCopies, Role: Unroll}, {Size: ColumnLanes, Role: Local}}
)

// Matrix instructions of a warpgroup (Opt WGMMA) have the tiles of four warps, one below the other, and as many side by side as
// the columns have copies; points of the sum lie in pieces of eight, of which a line holds eight.
const (
	GroupWarps       = program.GroupThreads / WarpSize
	GroupPieces      = program.GroupPiece / halfBytes // points of a piece
	LinePieces       = program.GroupLine / program.GroupPiece
	MostGroupColumns = program.MostGroupColumns

	halfBytes = 2 // of a point
)

// GroupSegment follows the lowest sub-axes of rows.
var GroupSegment = Segment{Size: GroupWarps, Role: Local}

// IsMatrixSide reports an axis of the rows or columns of tiles.
func IsMatrixSide(segments []Segment) bool {
	return StartsWith(segments, RowSegments) || StartsWith(segments, ColumnSegments)
}

// StartsWith reports lowest sub-axes.
func StartsWith(segments, lowest []Segment) bool {
	return len(segments) >= len(lowest) && slices.Equal(segments[:len(lowest)], lowest)
}

// A CPU's tile instructions (AMX) sum up to 64 bytes, or 32 BF16, for up to 16 columns, which
// are copies, and 16 rows, which are lanes of a register. The axis of the rows has a STAGE: its
// factor lies in a panel, words along the sum side by side (kernel/shape: panel.go), the other
// one in memory as it is. The sum of the instruction is one of its rows: a register.
const (
	TileRows   = 16
	TilePoints = 64

	// tileSpare is how many registers sums of tiles leave: of two registers of rows a scale and a minimum
	// each, one of an activation, and one more.
	tileSpare = 6
)

// TileSums is how many sums of tiles a loop over groups has room for in registers.
func TileSums(desc *target.Desc) int { return max(desc.VectorRegs-tileSpare, 1) }

// HasDoubleMatrices reports a target with the instruction of f64.
func HasDoubleMatrices(desc *target.Desc) bool {
	return desc.Matrix("f64", "f64", matrixRows, MatrixColumns, MatrixPoints)
}

// hasMatrices reports a target with the instructions: of bf16, f16 and bytes.
func hasMatrices(desc *target.Desc) bool {
	const m, n, k = matrixRows, MatrixColumns, MatrixPoints
	return desc.Matrix("bf16", "bf16", m, n, k) && desc.Matrix("f16", "f16", m, n, k) && desc.Matrix("i8", "i8", m, n, k)
}
