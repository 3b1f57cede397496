package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Matmul plans of a CPU for a matrix whose columns lie side by side, [k, n]: lanes
// run along n, and each element of the other matrix is one broadcast for all of
// them. The columns of a work unit are copied into a panel, [k, lanes], once for
// all rows of the other matrix: where n is a power of two, steps of k would all
// meet in a few sets of the caches.
//
// One Zen 5 core, f32, GFLOP/s of 265, k = 1024, 2048: 4 registers of lanes x 6
// rows 245, 237; 4 x 4 242, 230; 2 x 12 241, 209; 2 x 8 229, 226; 1 x 12 -, 181.
// Without a panel 2 x 8 160, 56. k = 4096, whose panel of 4 registers does not
// fit: 2 x 12 171.
const (
	columnShare = 3 // of 4 registers are accumulators
	// wholeRows is how many rows must fit beside all columns at once. 512 x 512 x 80:
	// 5 registers x 4 rows 202, 1 x 24 88.
	wholeRows = 4
	// turnedRows is how many rows are worth a panel of any length whose columns are turned, with fewer than manyRegisters.
	turnedRows    = 64
	manyRegisters = 32
	// turnedTerms is how many operations on a result are as much as a term of it that is turned for one row.
	turnedTerms    = 3
	transcendental = 16 // operations, about
	// columnReuse is how many tiles of rows must read a panel.
	columnReuse = 2
)

// columnRegisters are the registers of lanes that are tried in turn; half the
// registers leave room for half the accumulators.
var columnRegisters = []int64{4, 2, 1}

// columnsOf finds, beside a weight, the other matrix of the product if its columns
// must be the lanes: those of the weight are not side by side, or results would
// be stored far apart. A packed weight keeps its place, since reading it is the
// work.
func (a *analysis) columnsOf(w *operand) *operand {
	if w.rank() == 2 || a.lanesAlongRows(w) && a.storesAlong(a.innerRow(w)) {
		return nil
	}
	for _, o := range a.operands {
		if o.sum == w.sum && o != w && o.rank() < 2 && len(o.chain) > 0 && len(o.reuse) > 0 && !a.written[o.param] &&
			disjointRows(w, o) && a.lanesAlongRows(o) && (!a.lanesAlongRows(w) || a.storesAlong(a.innerRow(o))) {
			return o
		}
	}
	return nil
}

// turnedColumns finds a matrix that lies along k, whose columns are turned as they are
// copied into the panel: lanes along k would be folded for each result, which is more work
// where many rows read the panel, or the terms of a sum are few. One Zen 4 core with AVX2, rows x
// 1024 x 512, GFLOP/s: 16 rows 58 (61 along k), 32 67 (79), 48 79 (79), 64 79 (79), 128 81 (78); 512 x 2048 x 512 84 (60).
// So is much to be done with each result: attention over 96 x 96 with GELU after its last product on Zen 4, 303 us along k, 178 turned.
// With 32 registers tiles along k are large enough: Intel, AVX-512, LLaMA 1B's layers in F32, 128 tokens a second: 300 (366).
func (a *analysis) turnedColumns(w *operand) *operand {
	for _, o := range a.operands {
		if o.sum != w.sum || o.rank() > 0 || len(o.chain) == 0 || a.written[o.param] || a.lanesAlongRows(o) || !disjointRows(w, o) && o != w {
			continue
		}
		i := a.columnRow(o)
		if i < 0 || !a.storesAlong(i) || !a.everyStore(i) || a.size(i) < lanesOf(a.desc) || a.tested(o.sum, i) {
			continue
		}
		if slices.ContainsFunc(o.chain, func(k int) bool { return !a.constant(k) || !a.plainReduce(k) }) || a.lastStore(o.reuse) < 0 {
			continue
		}
		if uses := a.turnedUses(o, i); 4*uses >= 3*a.points(o.chain) || uses >= turnedRows && a.desc.VectorRegs < manyRegisters || uses > 0 && a.shortRuns(o) || uses > 0 && a.turnsForResults(o, i, uses) {
			return o
		}
	}
	return nil
}

// turnsForResults reports that much is to be done with each result, in lanes only where columns are turned: more than turning them is,
// into a panel that is an eighth of the second cache. Longer sums are little slower along their terms: LLaMA 1B's layers in F32, 512 tokens on Zen 4,
// 630 to 663 tokens a second, 583 to 639 with gate and up turned for the sake of their SILU.
func (a *analysis) turnsForResults(o *operand, column int, uses int64) bool {
	lanes, _, _ := a.plan().columnTile(o, column, a.lastStore(o.reuse))
	return 4*lanes*a.points(o.chain) <= int64(a.desc.CacheL2Bytes)/8 && a.after(o.sum)*uses >= turnedTerms*a.points(o.chain)
}

// after is how many operations are made of a sum's results: one by one, where lanes run along its terms.
func (a *analysis) after(sum *ir.UOp) (n int64) {
	after := map[*ir.UOp]bool{sum: true}
	for _, u := range a.order {
		if u.Op == ir.OpReduce || u.Op == ir.OpStage || !slices.ContainsFunc(u.Src, func(s *ir.UOp) bool { return after[s] }) {
			continue
		}
		after[u] = true
		switch {
		case u.Op == ir.OpExp2 || u.Op == ir.OpLog2 || u.Op == ir.OpSin:
			n += transcendental
		case u.DType.IsFloat():
			n++
		}
	}
	return n
}

// shortRuns reports a matrix of which neighbours along the sum lie side by side in runs shorter
// than a register: the windows of an image as rows, say, whose lanes would be gathered by each
// tile of rows. Two Zen 4 cores, 24 x 144 x 1444: 1,200 us along the sum, 80 turned.
func (a *analysis) shortRuns(w *operand) bool {
	k := w.chain[len(w.chain)-1]
	return slices.ContainsFunc(a.cuts[a.axes[k].Range], func(n int64) bool { return n < lanesOf(a.desc) })
}

// turnedUses is how many rows read a panel of turned columns in one work unit: where the
// panels are few, several units copy each.
func (a *analysis) turnedUses(o *operand, row int) int64 {
	token := a.lastStore(o.reuse)
	lanes, rows, panel := a.plan().columnTile(o, row, token)
	if !panel {
		return 0
	}
	columns := ceil(a.size(row), lanes) * a.points(setOf(o.rows).Without(row).List())
	tiles := ceil(a.size(token), rows)
	return min(panelTilesOf(tiles, columns), tiles) * rows
}

// panelTilesOf is how many tiles of rows a work unit takes, of so many in so many panels. Each unit of a panel fills it again: there are
// as few as leave enough of them for the workers, of about the same size. What an eighth of the workers would gain is less than
// a second filling costs all. One Zen 5 core, 960 rows of Q5_0 and 128 tokens, in 15 panels: units of 41 and 2 tiles 609 us, whole ones 341.
func panelTilesOf(tiles, columns int64) int64 {
	if columns >= panelUnits*7/8 {
		return tiles
	}
	parts := ceil(panelUnits, columns)
	return min(max(ceil(tiles, parts), columnReuse), tiles)
}

// columnRow is the axis of a matrix's columns.
func (a *analysis) columnRow(w *operand) int {
	if i := a.innerRow(w); i >= 0 {
		return i
	}
	if i := a.lastStore(w.rows); i >= 0 && a.laneSafe(i) {
		return i
	}
	return -1
}

// storesAlong reports an axis along which all stores are contiguous.
func (a *analysis) storesAlong(axis int) bool {
	return !slices.ContainsFunc(a.sink.Src, func(store *ir.UOp) bool { return a.stride(store, axis) != 1 })
}

// turnedRun is how many copies of a result lanes must have side by side, at least, to be turned when they are stored: 16
// bytes of f32.
const turnedRun = 4

// turnsAlong reports a store axis along which results lie side by side, in runs that can be turned.
func (a *analysis) turnsAlong(axis int) bool {
	return a.size(axis)%turnedRun == 0 && a.storesAlong(axis)
}

// columnTile is the lanes and rows of a register tile, and whether its panel fits
// and is worth its copy.
func (p *planner) columnTile(w *operand, row, token int) (lanes, rows int64, panel bool) {
	accumulators := int64(p.desc.VectorRegs) * columnShare / 4 / p.sumsOver(w.chain, row)
	size := int64(max(w.sum.DType.Size(), 4))
	register := max(int64(p.desc.VectorBytes)/size, 1)
	for _, registers := range columnRegisters {
		lanes = p.lanes(p.size(row), registers*register)
		if n := p.size(row); lanes < n && n%register == 0 && n/register*wholeRows <= accumulators {
			lanes = n
		}
		used := max(lanes/register, 1)
		rows = 1
		if token >= 0 {
			rows = evenTiles(p.size(token), accumulators/used)
		}
		if registers > 2 && p.desc.VectorRegs < 32 {
			continue // too few rows to hide the latency of a broadcast
		}
		bytes := satMul(size*lanes, p.points(w.chain))
		panel = p.allConstant(w.chain) && bytes <= int64(p.desc.CacheL2Bytes)/2 && p.points(w.reuse) >= columnReuse*rows
		if panel {
			return lanes, rows, true
		}
	}
	lanes = p.lanes(p.size(row), matvecRegisters*register)
	if token >= 0 {
		rows = run(p.size(token), accumulators/2)
	}
	return lanes, rows, false
}

// sumsOver is how many sums for each column one loop over a chain adds up. One Zen 4 core, a program with two products of
// 256 x 256 in one kernel: 1182 us with tiles of one, which did not fit the registers, 678.
func (p *planner) sumsOver(chain []int, column int) int64 {
	own := lists.Filter(p.reduces[chain[len(chain)-1]], func(u *ir.UOp) bool { return analyse.IsSum(u) && p.free.Of(u).Has(column) })
	return max(int64(len(own)), 1)
}

// evenTiles cuts n points into as few tiles as a limit allows, all about as large.
func evenTiles(n, limit int64) int64 {
	return ceil(n, ceil(n, limit))
}

// matmulColumns runs lanes along the rows of a transposed weight.
func (p *planner) matmulColumns(weights []*operand, w *operand) string {
	row, token := p.columnRow(w), p.lastStore(w.reuse)
	lanes, rows, panel := p.columnTile(w, row, token)
	if panel {
		p.add(plan.STAGE, p.axes[row].Name, 0)
	}
	vector := powerOfTwoDivisor(lanes, lanes)
	p.split(plan.VECTOR, row, vector)
	p.split(plan.UPCAST, row, lanes/vector)
	p.done[row] = true
	if token >= 0 {
		p.split(plan.UPCAST, token, rows)
		rows *= p.moreTokens(w, token, lanes, rows)
	}
	how := fmt.Sprintf("tile %d lanes of rows x %d tokens", lanes, rows)
	if panel {
		how += ", columns copied into a panel"
	} else if n := p.moreRows(w, row, lanes*rows); n > 1 {
		how += fmt.Sprintf(" x %d rows apart", n)
	}
	p.rollRows(w, token, panel)
	p.leaveSums(weights)
	p.tileAxes(p.rowsOf(weights))
	p.lightReduces()
	p.fma()
	return how
}

// moreRows takes rows apart from the lanes', where a tile has room for more sums and the other matrix is the same for
// them: it is read once. It says how many. One Zen 4 core, 2 x 2 pixels of each of 4 x 32 x 32, 64 to 32 planes: 2929 us, 901.
func (p *planner) moreRows(w *operand, row int, sums int64) int64 {
	i := lists.Last(w.rows, func(i int) bool {
		same := func(o *operand) bool { return o.sum == w.sum && o != w && !slices.Contains(o.rows, i) }
		return i != row && !p.done[i] && p.size(i) > 1 && p.constant(i) && p.axes[i].Kind == plan.StoreAxis && p.everyStore(i) && slices.ContainsFunc(p.operands, same)
	}, -1)
	most := int64(p.desc.VectorRegs) * lanesOf(p.desc) / sums
	if i < 0 || most < 2 {
		return 1
	}
	n := p.copiesOf(i, most)
	p.split(plan.UPCAST, i, n)
	return n
}

// moreTokens takes points of other axes of the other matrix, where all of one are fewer than a tile has room for: the elements of a
// window. It says how many times as many. One Zen 4 core, weights of 64 to 64 planes of 28 x 28 by 3 x 3, 8 images: 3 points at a
// time 4.7 ms, 9 4.1.
func (p *planner) moreTokens(w *operand, token int, lanes, rows int64) (times int64) {
	times = 1
	registers := max(lanes/lanesOf(p.desc), 1) * max(int64(w.sum.DType.Size())/4, 1) * p.sumsOver(w.chain, p.columnRow(w))
	room := int64(p.desc.VectorRegs) * columnShare / 4 / (registers * rows)
	for _, i := range slices.Backward(w.reuse) {
		if i == token || p.axes[i].Kind != plan.StoreAxis || !p.constant(i) || !p.everyStore(i) || p.size(i) <= 1 {
			continue
		}
		if rows < p.size(token) || room < 2 {
			break
		}
		n := divisor(p.size(i), room)
		p.split(plan.UPCAST, i, n)
		times, room = times*n, room/n
		if n < p.size(i) {
			break
		}
	}
	return times
}

// rollRows leaves the rows of the other matrix to one work unit, which copies the
// panel once; but a few columns are shared out over the workers by rows.
func (p *planner) rollRows(w *operand, token int, panel bool) {
	columns := p.leftAlong(setOf(w.rows).Meet(p.storeSet()).List())
	for _, i := range w.reuse {
		p.done[i] = true
		switch tiles := p.left(i); {
		case p.axes[i].Kind != plan.StoreAxis:
		case i == token && panel && panelTilesOf(tiles, columns) < tiles:
			p.split(plan.ROLL, i, panelTilesOf(tiles, columns))
		default:
			p.roll(i)
		}
	}
}
