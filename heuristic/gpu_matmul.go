package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/kernel/plan"
)

// Matrix products of a GPU. Where matrix instructions do not fit, a thread holds a tile
// of outputs and shares the sum with the other lanes of a few threads. Packed
// rows are decoded once for all tokens of a block, into a panel in shared
// memory that holds some points of the sum at a time; where that is not
// possible, a thread decodes its rows for the tokens of its tile.
const (
	gpuTileRows   = 4
	gpuTileTokens = 8
	gpuTileLanes  = 8
	gpuApartLanes = 2                // where nothing lies side by side along the sum (docs/bench/library-h100.txt)
	gpuTileBytes  = 16               // of one load
	gpuFewUses    = matrixTokens / 2 // of a weight in sums of bytes, up to which a tile of matrix instructions would be half empty

	matrixBytes = 2 // of an operand of matrix instructions; what is wider is several of them for each tile

	gpuQuarterUses = matrixTokens / 4 // of a weight, up to which a tile is a quarter full

	gpuPanelThreads = 256 // of a block that shares a panel
	gpuPanelTokens  = 8   // threads along the tokens of a panel
	gpuPanelPoints  = 256 // of the sum in a panel: a block of most packed formats
	gpuPanelLeast   = 128 // points below which barriers cost more than decoding again
	gpuPanelCopies  = 4   // of the innermost loop
)

func gpuMatmul(a *analysis, weights []*operand, w *operand) proposal {
	few := a.fewUses(weights, gpuFewUses)
	if few && a.dotAxis(w.chain[len(w.chain)-1]) {
		return gpuMatvec(a, weights)
	}
	chosen := gpuMatrix(a, reusedOf(weights), w)
	wide := !isPacked(w.param) && (w.param.DType.Size() > matrixBytes || !chosen.record.Applied)
	if few || wide && a.fewUses(weights, matrixTokens) {
		other := gpuMatvec(a, weights)
		tiles := chosen.priced
		if isPacked(w.param) && a.points(w.reuse) <= gpuQuarterUses {
			tiles.Price *= a.desc.Threads.QuarterFull
		}
		if !chosen.record.Applied || other.priced.Prices != nil && other.priced.preferred(tiles, a.knobs.BlockThreads) {
			chosen, other = other, chosen
		}
		chosen.priced.Prices = cheapest(other.priced.Prices, chosen.priced.Prices)
	}
	if few || chosen.record.Applied {
		return chosen
	}
	if !isPacked(w.param) && w.total < largeBytes {
		return declined("small-operand", "%s is %s, and matrix instructions do not fit", w.name(), size(w.total))
	}
	if z := a.longStage(weights); z >= 0 {
		return declined("rows-of-a-stage", "a block makes the %d points of %s itself", a.size(z), a.axes[z].Name)
	}
	return gpuTiles(a, weights, w)
}

// gpuTiles plans a product without matrix instructions: tiles of rows and tokens in the
// registers of a thread, from a panel that a block shares where one fits.
func gpuTiles(a *analysis, weights []*operand, w *operand) proposal {
	p := a.plan()
	row, token := a.lastStore(w.rows), a.lastStore(w.reuse)
	panel := row >= 0 && token >= 0 && a.size(token) > gpuTileTokens && a.panelFits(w) && !a.lastStage(weights)
	lanes := int64(1)
	for _, o := range weights {
		if !p.done[o.chain[len(o.chain)-1]] {
			lanes = max(lanes, p.lanesOfTile(o, panel))
		}
	}
	rows, tokens := int64(1), int64(1)
	threads := lanes
	beside := int64(1) // threads along tokens
	if token >= 0 {
		tokens = copies(p.size(token), gpuTileTokens)
	}
	if panel {
		beside = shares(ceil(p.size(token), tokens), gpuPanelTokens)
	}
	if row >= 0 {
		rows = copies(p.size(row), gpuTileRows)
		if panel { // matrices share the registers of accumulators
			rows = min(rows, max(gpuTileRows/int64(len(p.matricesOf(weights))), 1))
			block := gpuPanelThreads / threads * tokens // outputs for each row of a thread
			for outputs := p.points(w.rows) * p.points(w.reuse); rows > 1 && outputs/(block*rows) < int64(p.desc.Cost.Workers)*3/4; {
				rows /= 2
			}
		}
		most, run := int64(gpuBlockThreads), p.runOf(row, rows)
		if panel {
			most, run = gpuPanelThreads, 1
			p.stageRows(w, gpuPanelPoints)
		}
		n := shares(ceil(p.size(row), rows), most/(threads*beside))
		p.split(plan.VECTOR, row, run)
		p.split(plan.UPCAST, row, rows/run)
		p.split(plan.LOCAL, row, n)
		threads *= n
	}
	if token >= 0 {
		run := p.runOf(token, tokens)
		p.split(plan.VECTOR, token, run)
		p.split(plan.UPCAST, token, tokens/run)
		p.split(plan.LOCAL, token, beside)
		threads *= beside
	}
	if a.lastStage(weights) {
		p.stageCopies(a.rowsOf(weights), maxStageCopies)
	}
	p.aroundRows(a.rowsOf(weights), threads)
	how := fmt.Sprintf("tile %d rows x %d tokens a thread, %d threads a sum", rows, tokens, lanes)
	if panel {
		how += fmt.Sprintf(", %d threads share decoded rows", threads)
	}
	return p.reuses(weights, w, how)
}

// preferred reports a choice that has the threads a block that are wanted, 0: any, or else
// is cheaper.
func (c *Priced) preferred(than Priced, threads int64) bool {
	if fits := c.BlockThreads == threads; fits != (than.BlockThreads == threads) {
		return fits
	}
	return c.Price < than.Price
}

// cheapest are the lower prices of each number of threads a block.
func cheapest(x, y map[int64]float64) map[int64]float64 {
	if y == nil {
		return x
	}
	for threads, price := range x {
		if other, ok := y[threads]; !ok || price < other {
			y[threads] = price
		}
	}
	return y
}

// fewUses reports weights that a thread may stream past all of their uses, at most so many.
func (a *analysis) fewUses(weights []*operand, most int64) bool {
	return a.points(a.usesOf(weights).List()) <= most && !slices.ContainsFunc(weights, func(o *operand) bool { return len(o.rows) == 0 || !a.allConstant(o.reuse) })
}

// panelFits reports a packed weight whose innermost sums make a panel.
func (a *analysis) panelFits(w *operand) bool {
	if w.rank() < 2 {
		return false
	}
	points := int64(1)
	for _, i := range slices.Backward(w.chain) {
		if !a.constant(i) || points*a.size(i) > gpuPanelPoints {
			break
		}
		points *= a.size(i)
	}
	return points >= gpuPanelLeast
}

// longStage is a stage among the rows of weights whose points are more than copies of a
// thread, -1: none. Tiles of outputs would make it again for each of them.
func (a *analysis) longStage(weights []*operand) int {
	long := func(i int) bool { return a.axes[i].Kind == plan.StageAxis && a.size(i) > maxStageCopies }
	return lists.First(a.rowsOf(weights).List(), long, -1)
}

// lanesOfTile is lanesOfRow with shorter loads, since each is held decoded for
// several rows.
// Of a panel, the rest of its points are copies: reading it needs no arithmetic.
func (p *planner) lanesOfTile(w *operand, panel bool) int64 {
	inner := w.chain[len(w.chain)-1]
	if p.constant(inner) && p.laneSafe(inner) {
		p.split(plan.VECTOR, inner, powerOfTwoDivisor(p.left(inner), gpuTileBytes/int64(max(w.accesses[0].DType.Size(), 4))))
	}
	got, most := int64(1), int64(gpuTileLanes)
	if !slices.ContainsFunc(p.operands, func(o *operand) bool { return p.innerAxes(o).Has(inner) }) {
		most = gpuApartLanes
	}
	points, copies := int64(1), int64(1)
	for _, i := range slices.Backward(w.chain) {
		if p.constant(i) && got < most {
			n := shares(p.left(i), most/got)
			p.split(plan.WARP, i, n)
			got *= n
		}
		if points *= p.size(i); panel && points <= gpuPanelPoints && copies < gpuPanelCopies {
			n := powerOfTwoDivisor(p.left(i), gpuPanelCopies/copies)
			p.split(plan.UNROLL, i, n)
			copies *= n
		}
		p.done[i] = true
	}
	return got
}
