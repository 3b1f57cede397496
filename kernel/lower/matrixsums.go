package lower

import (
	"fmt"
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// matrixSum is a sum over a sub-axis of MMA: of the product of what depends on the
// row and what does not. A side without factors is 1. Sums have factors of their type, or, of
// integers, bytes that hold them.
type matrixSum struct {
	rows   *ir.UOp // at the lane's points
	offset int64   // of rows that are bytes: added to each, by instructions of its own
	tiles  []columnTile
	copies []*ir.UOp // ranges of unrolled sums around it that the instruction goes on with, outer before inner
	around bool      // the loop around it is a sum of nothing else: its accumulators are those of the instruction
}

// columnTile is the factor of eight columns. Columns that are the four points
// of a lane (TILE) are two tiles, of two points each.
type columnTile struct {
	product *ir.UOp // names the result: it depends on what both factors do
	columns *ir.UOp // at the lane's points, of column lane/4
}

// matrixSumTypes are those of sums.
var matrixSumTypes = []ir.DType{ir.F32, ir.F64, ir.I32, ir.U32}

// matrixSums takes the sums over sub-axes of MMA apart.
func matrixSums(p *shape.Kernel, free *analyse.FreeSets) (map[*ir.UOp]*matrixSum, error) {
	if p.Tile == nil {
		return nil, nil
	}
	nodes := ir.Toposort(p.Sink)
	inSink := lists.Set(nodes)
	sums := make(map[*ir.UOp]*matrixSum)
	for _, u := range nodes {
		if u.Op != ir.OpReduce || p.Roles[free.Index.Of(u.ReduceRange())] != plan.Matrix {
			if m := goesOn(p, u, sums, free); m != nil {
				sums[u] = m
			}
			continue
		}
		double := u.DType == ir.F64
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || !slices.Contains(matrixSumTypes, u.DType) {
			return nil, fmt.Errorf("kernel: plan: MMA of a reduce that is no sum of f32, f64, i32 or u32")
		}
		if double && !plan.HasDoubleMatrices(p.Desc) {
			return nil, fmt.Errorf("kernel: plan: MMA of f64: %s has no such instruction", p.Desc.Name)
		}
		m, err := takeApart(p, u, free)
		if err != nil {
			return nil, err
		}
		if (double || m.severalBytes()) && (p.Tile.Rows.Staged || p.Tile.Columns.Staged) {
			return nil, fmt.Errorf("kernel: plan: MMA of %s with factors in shared memory: tiles of floats and bytes lie there", u.DType)
		}
		fresh := func(x *ir.UOp) bool { return x.Op == ir.OpReduce && !inSink[x] }
		if slices.ContainsFunc(m.tiles, func(t columnTile) bool { return analyse.Any(t.product, fresh) }) {
			return nil, fmt.Errorf("kernel: plan: MMA of a sum whose factors hold sums over its tile")
		}
		if p.Tile.Group != nil {
			if err := m.suitsGroup(p, free); err != nil {
				return nil, err
			}
		}
		sums[u] = m
	}
	markAround(p, nodes, sums, free)
	return sums, nil
}

// markAround finds sums with which the instructions of a loop go on: the loop's sum is of halves alone, and nothing else reads
// what the instructions of an iteration make.
func markAround(p *shape.Kernel, nodes []*ir.UOp, sums map[*ir.UOp]*matrixSum, free *analyse.FreeSets) {
	readers := make(map[*ir.UOp]int)
	for _, u := range nodes {
		for _, x := range u.Src {
			readers[x]++
		}
	}
	for _, u := range nodes {
		if !analyse.IsFloatSum(u) || sums[u] != nil || p.Roles[free.Index.Of(u.ReduceRange())] != plan.Serial {
			continue
		}
		if m := sums[u.Src[0]]; m != nil && readers[u.Src[0]] == 1 && len(m.tiles) == 1 {
			m.around = m.isOfHalves(p, m.tiles[0])
		}
	}
}

// mostCutOff is of how many points instructions go on with a sum of floats, each of which cuts off what it cannot hold
// where an addition would round. Sums of 64 to 128 points, added up in f32, have two to fifty times less error (NMSE) than an
// f32 that takes one product after the other, sums of whole rows up to ten thousand times more (simulated: decision 0048),
// which is less than what was lost where factors were rounded to halves.
const mostCutOff = 128

// isOfHalves reports factors of which each is one term: halves themselves, of which a sum of any length is as near as they are.
func (m *matrixSum) isOfHalves(p *shape.Kernel, t columnTile) bool {
	if !m.rows.DType.IsFloat() || m.rows.DType.Size() > 4 {
		return false
	}
	_, ofRows, ofColumns := shape.TermsOfProduct(p.Bounds, m.rows, t.columns)
	return ofRows == 1 && ofColumns == 1
}

// goesOn is an unrolled sum of sums of matrix instructions, each of which takes what the one before has summed up: of few
// points, of halves, or of integers that no sum rounds. It is nil for any other node.
func goesOn(p *shape.Kernel, u *ir.UOp, sums map[*ir.UOp]*matrixSum, free *analyse.FreeSets) *matrixSum {
	if !analyse.IsSum(u) || p.Roles[free.Index.Of(u.ReduceRange())] != plan.Unroll {
		return nil
	}
	inner := sums[u.Src[0]]
	if inner == nil {
		return nil
	}
	points := int64(plan.MatrixPoints)
	m := &matrixSum{rows: inner.rows, offset: inner.offset, copies: append([]*ir.UOp{u.ReduceRange()}, inner.copies...)}
	for _, r := range m.copies {
		n, _ := r.Src[0].Int()
		points *= n
	}
	for _, t := range inner.tiles {
		if points > mostCutOff && !u.DType.IsInt() && !m.isOfHalves(p, t) && !shape.IsExactSum(p.Bounds, m.rows, t.columns, points) {
			return nil
		}
		m.tiles = append(m.tiles, columnTile{product: p.Arena.Reduce(ir.OpAdd, t.product, u.ReduceRange()), columns: t.columns})
	}
	return m
}

// takeApart groups the factors of a product by the tile's axes.
func takeApart(p *shape.Kernel, u *ir.UOp, free *analyse.FreeSets) (*matrixSum, error) {
	a, tile := p.Arena, p.Tile
	ofRow, ofColumn := free.SetOf(tile.RowLane, tile.RowCopy), free.SetOf(tile.ColumnLane, tile.ColumnCopy, tile.Point)
	rows, columns := a.ConstInt(u.DType, 1), a.ConstInt(u.DType, 1)
	for _, f := range analyse.Factors(u.Src[0]) {
		s := free.Of(f)
		switch {
		case inLanes(p, s, free.Index.Of(tile.Point)):
			return nil, fmt.Errorf("kernel: plan: MMA of a sum of products with a factor in lanes: an instruction takes numbers of each thread, and VECTOR gives it several at once")
		case s.Meet(ofRow).Empty():
			columns = shape.Times(a, columns, f)
		case s.Meet(ofColumn).Empty():
			rows = shape.Times(a, rows, f)
		default:
			return nil, fmt.Errorf("kernel: plan: MMA of a sum of products with a factor that depends on rows and columns")
		}
	}
	if s := free.Of(columns); s.Has(free.Index.Of(tile.Point)) && s.Has(free.Index.Of(tile.ColumnCopy)) {
		return nil, fmt.Errorf("kernel: plan: MMA of a sum whose columns are of two tiles")
	}
	points := a.Add(a.Mul(tile.ColumnLane, tile.Point.Src[0]), tile.Point)
	m := &matrixSum{rows: p.Simplify.Do(a.Substitute(rows, map[*ir.UOp]*ir.UOp{u.ReduceRange(): points}))}
	copies := a.Mod(tile.RowLane, a.Index(plan.ColumnCopies))
	at := map[*ir.UOp]*ir.UOp{u.ReduceRange(): points, tile.ColumnLane: a.Div(tile.RowLane, a.Index(plan.ColumnCopies)), tile.ColumnCopy: copies}
	n := 1
	if point := free.Index.Of(tile.Point); free.Of(columns).Has(point) {
		n = plan.LanePoints / plan.ColumnCopies
	}
	for k := range int64(n) {
		if n > 1 {
			at[tile.Point] = a.Add(copies, a.Index(plan.ColumnCopies*k))
		}
		of := p.Simplify.Do(a.Substitute(columns, at))
		m.tiles = append(m.tiles, columnTile{product: a.Mul(m.rows, of), columns: narrowest(p, of)})
	}
	m.rows, m.offset = offsetByte(p, m.rows)
	if m.offset == 0 {
		m.rows = narrowest(p, m.rows)
	}
	return m, nil
}

// offsetByte takes an integer apart that is a byte and a constant. To add a constant to the bytes of a word, whose sums would carry
// into one another, takes six instructions; the product of the constant and the columns, for all rows at once, takes one.
func offsetByte(p *shape.Kernel, u *ir.UOp) (of *ir.UOp, offset int64) {
	if !u.DType.IsInt() || u.Op != ir.OpAdd {
		return u, 0
	}
	offset, constant := u.Src[1].Int()
	if !constant || offset < math.MinInt8 || offset > math.MaxInt8 {
		return u, 0
	}
	if x := shape.ByteFactor(p.Arena, p.Bounds, u.Src[0], true); x != nil {
		return x, offset
	}
	return u, 0
}

// inLanes reports a range in lanes, but for the lanes of the instruction itself.
func inLanes(p *shape.Kernel, s analyse.RangeSet, points int) bool {
	return slices.ContainsFunc(s.List(), func(i int) bool { return i != points && p.Roles[i] == plan.Lane })
}

// narrowest is an integer as the byte that holds it, if one does.
func narrowest(p *shape.Kernel, u *ir.UOp) *ir.UOp {
	if u.DType.IsInt() {
		if x := shape.ByteFactor(p.Arena, p.Bounds, u, true); x != nil {
			return x
		}
	}
	return u
}

// severalBytes reports integers that are taken apart where they are loaded.
func (m *matrixSum) severalBytes() bool {
	several := func(u *ir.UOp) bool { return u.DType.IsInt() && u.DType.Size() > 1 }
	return several(m.rows) || slices.ContainsFunc(m.tiles, func(t columnTile) bool { return several(t.columns) })
}

// suitsGroup refuses sums whose factors a warpgroup's instruction does not find in panels.
func (m *matrixSum) suitsGroup(p *shape.Kernel, free *analyse.FreeSets) error {
	t := p.Tile
	for _, tile := range m.tiles {
		elem, nx, ny := shape.TermsOfProduct(p.Bounds, m.rows, tile.columns)
		if len(m.tiles) > 1 || nx > 1 && ny > 1 && elem == ir.F16 || m.rows.DType != ir.F32 || elem.Size() != program.GroupPiece/plan.GroupPieces {
			return fmt.Errorf("kernel: plan: WGMMA of a sum of %s", m.rows.DType)
		}
		for _, side := range []struct {
			factor *ir.UOp
			n      int
			axes   []*ir.UOp
		}{{m.rows, nx, []*ir.UOp{t.RowLane, t.RowCopy, t.Group.Warp}}, {tile.columns, ny, append([]*ir.UOp{t.RowLane}, t.Group.ColumnTiles...)}} {
			s := free.Of(side.factor)
			if slices.ContainsFunc(side.axes, func(r *ir.UOp) bool { return !s.Has(free.Index.Of(r)) }) {
				return fmt.Errorf("kernel: plan: WGMMA of a factor that is the same for several rows or columns")
			}
			terms := groupTerms(side.factor, elem, side.n)
			if len(terms) != side.n || slices.ContainsFunc(terms, func(x shape.Term) bool { return !isPanel(x.Value) }) {
				return fmt.Errorf("kernel: plan: WGMMA of a factor that is in no tile in shared memory")
			}
		}
	}
	return nil
}

// groupTerms are the terms of a factor as they lie in panels; fewer than n where they do not.
func groupTerms(u *ir.UOp, elem ir.DType, n int) []shape.Term {
	if n > 1 {
		return storedTerms(u, elem, n)
	}
	if copies := shape.ScaledCopies(u); copies != nil && copies[0].Value.DType == elem {
		return copies[:1]
	}
	return nil
}

// storedTerms are the terms of a side that lie in memory or a panel as the instruction takes them; nil where it is split.
func storedTerms(u *ir.UOp, elem ir.DType, n int) []shape.Term {
	if stored := shape.StoredTerms(u); n > 1 && len(stored) == n && stored[0].Value.DType == elem {
		return stored
	}
	return nil
}

// isPanel reports a read of a panel.
func isPanel(u *ir.UOp) bool {
	return u.Op == ir.OpLoad && u.Src[0].Op == ir.OpStage && shape.IsSharedTile(u.Src[0])
}
