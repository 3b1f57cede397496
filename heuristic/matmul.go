package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// Matmul plans of a CPU. A register tile of rows x tokens, each accumulator one
// vector of lanes along k: a step of k loads rows + tokens vectors for rows *
// tokens multiply-adds. Decoded weights of a few tiles of rows are staged as a
// panel, so that packed weights are read and decoded once; for each tile of
// tokens all rows of the panel follow, so that the tokens stay in L1.
const (
	// fewTokens is the number of uses up to which they all fit the register
	// tile: then no panel is needed, a decoded vector is used while it is in a
	// register.
	fewTokens = 8
	// fewRows are then summed together while there are registers for so many
	// accumulators: they share the activations. Q6_K, 8 tokens: 167 GFLOP/s
	// against 123 with one row, 155 with three.
	fewRows = 2
	// wordTokens is for how many tokens lanes are words: a scale then takes a product for
	// each word and token, where it would take one for each element. Zen 4, Q6_K,
	// 2 tokens: 55 GFLOP/s against 41; 3: 68 against 55; 8: 62 against 83. A Xeon, ms of 4,096 x 14,336 and others, words and elements: 4
	// tokens 26 and 37, 5 33 and 38, 6 38 and 41, 8 52 and 48 (docs/bench/cpu-batches.txt).
	wordTokens      = 5
	fewAccumulators = 16
	// panelUnits is the number of panels that must remain for the workers.
	panelUnits = 16
	// smallTile is the number of accumulators up to which two steps of k an
	// iteration pay: 4 x 4 tiles 168 GFLOP/s against 158, but 5 x 5 166 to 175.
	smallTile = 16
)

// registerTile is a shape that fits a register file: rows*tokens accumulators,
// rows+tokens operands of which one side is read from memory. rate is its speed
// in percent of the best, pair that of a kernel with two matrices, of which each
// has half the rows (0: rows do not halve).
type registerTile struct {
	rows, tokens int64
	rate, pair   int64
}

// Tiles by number of vector registers. For 32 measured on one Zen 5 core (Q6_K,
// 512 x 2048, 128 tokens, two runs, panels of 8 tiles): 5 x 5 188 to 192
// GFLOP/s, 4 x 5 183, 4 x 4 163 to 170, 4 x 6 150 to 176, 6 x 4 150 to 163, 5 x
// 4 158, 3 x 8 142, 2 x 8 102, of 263; two matrices 6 x 4 and 4 x 6 150, 4 x 4
// 145, 4 x 5 141. Small ones and those for 16 by loads per multiply-add.
var (
	tiles32 = []registerTile{
		{5, 5, 100, 0}, {4, 5, 97, 94}, {4, 4, 88, 96}, {4, 6, 87, 100}, {5, 4, 83, 0}, {6, 4, 83, 100},
		{3, 6, 80, 0}, {6, 3, 75, 85}, {3, 8, 74, 0}, {3, 5, 74, 0}, {3, 4, 70, 0}, {4, 3, 70, 80},
		{2, 8, 55, 60}, {2, 6, 55, 60}, {6, 2, 60, 60}, {8, 2, 55, 60}, {2, 5, 53, 55}, {2, 4, 50, 50}, {4, 2, 50, 50},
	}
	tiles16 = []registerTile{
		{3, 4, 100, 0}, {4, 3, 98, 98}, {2, 5, 90, 90}, {3, 3, 88, 0}, {2, 4, 80, 80}, {4, 2, 78, 78}, {2, 3, 70, 70},
	}
	smallTiles = []registerTile{
		{2, 2, 45, 45}, {2, 1, 28, 28}, {1, 4, 40, 0}, {4, 1, 35, 35}, {1, 2, 30, 0}, {1, 1, 20, 0},
	}
)

// panelRates is the speed, in percent, of panels of so many row tiles, from one
// on: the tokens of a tile stay in L1 for all rows of a panel. 5 x 5 tiles, 512 x
// 2048, GFLOP/s: 1 tile 162, 2 177, 4 178 to 185, 8 175 to 196, 12 173.
var panelRates = []int64{0, 85, 92, 94, 96, 97, 98, 99, 100}

// tilesOf are the tiles for a number of registers.
func tilesOf(registers int) []registerTile {
	tiles := tiles16
	if registers >= 32 {
		tiles = tiles32
	}
	return append(slices.Clone(tiles), smallTiles...)
}

// tryMatmul recognises sums over a large operand whose elements are used for
// several outputs: tokens, in a prompt.
func tryMatmul(a *analysis) proposal {
	weights, record := a.chosenWeights()
	if weights == nil {
		return proposal{record: record}
	}
	first := slices.IndexFunc(weights, func(o *operand) bool { return len(o.reuse) > 0 })
	if first < 0 {
		return declined("used-once", "every element of %s is used for one output", weights[0].name())
	}
	w := weights[first]
	if a.desc.Kind == target.GPU {
		return gpuMatmul(a, weights, w)
	}
	turned := a.turnedColumns(w)
	if o := cmp.Or(turned, a.columnsOf(w)); o != nil {
		w, weights = o, []*operand{o}
	}
	p := a.plan()
	var how string
	c, across := p.across(w)
	switch {
	case across:
		how = p.matmulAcross(c)
	case turned != nil:
		how = p.matmulTurned(weights, w)
	case a.lanesAlongRows(w):
		how = p.matmulColumns(weights, w)
	case p.alongWindows(w):
		how = p.matmulWindows(weights, w)
	case a.points(w.reuse) <= fewTokens:
		how = p.matmulFew(weights, w)
	default:
		how = p.matmulMany(weights, w)
	}
	return p.reuses(weights, w, how)
}

// reuses is the plan of a product that uses a weight for several outputs.
func (p *planner) reuses(weights []*operand, w *operand, how string) proposal {
	return p.decidedByWeight(w, "reuses-weight", how).of("%s used for %d outputs each", p.describe(weights), p.points(w.reuse))
}

// matmulMany decodes weights into panels.
func (p *planner) matmulMany(weights []*operand, w *operand) string {
	if row := p.packedRow(weights, w); row >= 0 && panelWorthIt(w) {
		if how, ok := p.matmulTiles(weights, w, row); ok {
			return how
		}
		if how, ok := p.matmulPacked(weights, w, row); ok {
			return how
		}
	}
	return p.matmulPanel(weights, w)
}

// matmulTurned turns columns that lie along k: as rows of weights are, or all lanes of a tile at once where
// only short runs are side by side.
func (p *planner) matmulTurned(weights []*operand, w *operand) string {
	if row := p.packedRow(weights, w); row >= 0 && !p.shortRuns(w) {
		if how, ok := p.matmulPacked(weights, w, row); ok {
			return how
		}
	}
	return p.matmulColumns(weights, w)
}

// matmulFew holds all uses of a weight in registers at once.
func (p *planner) matmulFew(weights []*operand, w *operand) string {
	for _, i := range w.reuse {
		p.done[i] = true
		if p.axes[i].Kind == plan.StoreAxis && p.constant(i) {
			p.split(plan.UPCAST, i, p.size(i))
		} else if p.axes[i].Kind == plan.StoreAxis {
			p.roll(i)
		}
	}
	if row := p.recordRow(weights); row >= 0 {
		return fmt.Sprintf("%s x %d tokens at once", p.matvecRecords(weights, row), p.points(w.reuse))
	}
	how := p.streamSums(weights, p.points(w.reuse) <= wordTokens, func(o *operand) (int64, int64) {
		return lanesOf(p.desc), max(p.iteration(o)/p.fewLanes(o), 1)
	})
	together := p.fewTogether(weights, w)
	how += fmt.Sprintf(", %d rows x %d tokens at once", together, p.points(w.reuse))
	p.besideSums(weights)
	p.finish(weights)
	return how
}

// fewLanes are the elements of an iteration's copy: of a dot instruction's registers
// there are as many copies as of a matvec's, a block of 256 with 64 bytes each.
func (p *planner) fewLanes(o *operand) int64 {
	if p.dotAxis(o.chain[len(o.chain)-1]) {
		return matvecRegisters * lanesOf(p.desc)
	}
	return lanesOf(p.desc)
}

// fewTogether takes rows together that share the activations they read. Matrices that
// are read with the same activations share them already; words and bytes of
// activations are read so fast that one row at a time is best, unless they crowd the
// L1 cache.
func (p *planner) fewTogether(weights []*operand, w *operand) int64 {
	row := p.lastStore(w.rows)
	if row < 0 {
		return 1
	}
	perRow := p.perRow(weights, w)
	most := max(fewRows/perRow, 1)
	switch {
	case p.packed() && p.crowds(w):
		most = crowdedWords
	case p.packed() || p.dotted():
		most = 1
	}
	n := copies(p.size(row), min(fewAccumulators/(p.points(w.reuse)*perRow), most))
	p.split(plan.UPCAST, row, n)
	return n
}

// matmulPanel stages decoded rows and runs a register tile over the tokens.
func (p *planner) matmulPanel(weights []*operand, w *operand) string {
	row, token := p.lastStore(w.rows), p.lastStore(w.reuse)
	if row < 0 || token < 0 {
		return p.matmulFew(weights, w)
	}
	perRow := p.perRow(weights, w)
	tile, panel := p.pickTile(row, token, w, perRow)
	if panelWorthIt(w) {
		p.stageRows(w, 0)
	}
	p.split(plan.UPCAST, token, tile.tokens)
	p.split(plan.UPCAST, row, tile.rows)
	p.split(plan.ROLL, row, panel)
	for _, i := range w.reuse {
		p.done[i] = true
		if p.axes[i].Kind == plan.StoreAxis {
			p.roll(i)
		}
	}
	p.done[row] = true
	steps := int64(1)
	if tile.rows*perRow*tile.tokens <= smallTile {
		steps = 2
	}
	var lanes int64
	for _, o := range weights {
		if !p.done[o.chain[len(o.chain)-1]] {
			lanes, _ = p.chain(o.chain, lanesOf(p.desc), steps)
		}
	}
	p.besideSums(weights)
	p.fma()
	return fmt.Sprintf("tile %d rows x %d tokens, lanes %d of k, %d decoded rows staged", tile.rows*perRow, tile.tokens, lanes, panel*tile.rows*perRow)
}

// panelTiles is how many tiles of rows one work unit takes, and what that is
// worth: the last panel may be partly empty.
func (p *planner) panelTiles(row int, w *operand, rows, perRow int64) (best, score int64) {
	others := p.points(setOf(w.rows).Without(row).Meet(p.storeSet()).List())
	tiles := ceil(p.size(row), rows)
	bytes := rows * perRow * 4 * p.points(w.chain)
	for n := int64(1); n < int64(len(panelRates)) && n <= tiles; n++ {
		if n > 1 && (others*tiles/n < panelUnits || n*bytes > int64(p.desc.CacheL2Bytes)*3/8) {
			break
		}
		if s := panelRates[n] * filled(tiles, n); s > score {
			best, score = n, s
		}
	}
	return best, score
}

// perRow is how many accumulators one row and token of the tile need: one a matrix
// that is read with the same tokens, times one a row of a STAGE around the sum. A
// tile of 6 rows of accumulators has 3 of the store's rows where perRow is 2.
func (a *analysis) perRow(weights []*operand, w *operand) int64 {
	reused := reusedOf(weights)
	n := len(a.matricesOf(reused))
	if w.rank() == 0 { // plain rows of one matrix, each with a sum of its own
		sums := lists.Set(lists.Map(reused, func(o *operand) *ir.UOp { return o.sum }))
		n = max(n, len(sums))
	}
	return int64(max(n, 1)) * a.stagePoints(w)
}

// panelWorthIt: a plain f32 weight needs no decoding.
func panelWorthIt(w *operand) bool { return w.rank() > 0 }

// stagePoints is the number of rows that one point of the stores sums, in a
// STAGE around the sum.
func (a *analysis) stagePoints(w *operand) int64 {
	return a.points(lists.Filter(w.rows, func(i int) bool { return a.axes[i].Kind == plan.StageAxis && a.size(i) <= maxStageCopies }))
}

// pickTile is the fastest tile for both axes and its panel, with what a last,
// partly empty tile wastes.
func (p *planner) pickTile(row, token int, w *operand, perRow int64) (best registerTile, panel int64) {
	bestScore := int64(-1)
	for _, t := range tilesOf(p.desc.VectorRegs) {
		rate := t.rate
		if perRow > 1 {
			rate = t.pair
		}
		if t.rows%perRow != 0 || rate == 0 {
			continue
		}
		t.rows /= perRow
		if held := copiesOfLast(row, token, t); t.rows*t.tokens+held+1 > int64(p.desc.VectorRegs) {
			rate = rate * spilledRate / 100
		}
		n, score := p.panelTiles(row, w, t.rows, perRow)
		score *= rate * filled(p.size(row), t.rows) * filled(p.size(token), t.tokens) / 1000
		if score > bestScore {
			best, panel, bestScore = t, n, score
		}
	}
	if bestScore < 0 { // more sums than any tile has rows
		return registerTile{rows: 1, tokens: 1}, 1
	}
	return best, panel
}

// spilledRate is the rate, in percent, of a tile whose copies do not fit the registers. One Zen 4 core with AVX2,
// f32, 128 x 1024 x 512, copies of the outer axis x those of the inner one: 4 x 3 78 GFLOP/s, 3 x 4 38.
const spilledRate = 50

// copiesOfLast are the copies of the inner of a tile's axes: for one of the outer axis after the other all
// of them are used, and held.
func copiesOfLast(row, token int, t registerTile) int64 {
	if row > token {
		return t.rows
	}
	return t.tokens
}

// filled is the useful part of n points in tiles of so many, in thousandths.
func filled(n, tile int64) int64 { return 1000 * n / (ceil(n, tile) * tile) }
