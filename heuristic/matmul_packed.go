package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Matmul plans of a CPU for packed weights that many tokens use. Rows of the weight are
// lanes: a work unit decodes a few registers of rows into panels (kernel/shape: panel.go),
// the bytes of dot products as bytes, and each activation is a broadcast for all of them, so
// that no sum is folded and the scale of a group is one product for a register of rows.
const (
	// packedSteps is how many points of k are one iteration: longer bodies are ordered
	// worse, and the sums of groups are longer than the registers. One Zen 5 core, Q6_K in
	// int8, 512 x 512 x 128, tiles of 2 registers x 4 tokens: 64 574 Gop/s, 256 391.
	packedSteps = 64
	// floatSteps is the same of sums that have no groups.
	floatSteps = 4
	// shortSum is the number of terms up to which a sum of floats with packed weights is computed in two parts, for which tiles have registers. A
	// running sum is rounded at each of its steps, which in layers so narrow is most of the error: a batch of three of
	// OLMoE with K = 128 was 8e-12 (NMSE) from the reference, in two parts 2e-12; such tiles take 10 % more time.
	shortSum = 128
	// loadShare is the time of a load in operations: two of each are issued a cycle, but
	// loads of the panels come from the second level of caches.
	loadShare = 4
	// farLoads is how many times as long a load takes of a panel that the second cache does not
	// hold beside the activations of a tile, and one of an activation that the first cache does not hold either. One Intel core with 2 MiB, K = 8192: 4 registers of
	// rows x 4 tokens (2 MiB) take 3 times as long as 2 x 8; on a Zen 5 core with 1 MiB 2 x 8
	// (1 MiB) is still faster than 1 x 16.
	farLoads = 3
	// alikeCost is the cost, in that of the cheapest tile, up to which the order of instructions decides: with more
	// sums at once a product waits less for the one before. Zen 4 with AVX2, Q4_K_M, 128 tokens, tokens a second: 2
	// registers x 4 tokens 290, 5 298, 6 306.
	alikeCost = 1.015
)

// packedTile is a register tile of rows that are lanes: registers of lanes and tokens.
type packedTile struct {
	registers, tokens int64
	cost              float64 // of all tiles, in operations of one register and point of k
}

// packedRow is the axis of a weight's rows that become lanes, -1 where there is none. Results of
// floats must then lie side by side, and be no wider than the lanes that tiles are counted in.
func (a *analysis) packedRow(weights []*operand, w *operand) int {
	row := a.lastStore(w.rows)
	if row < 0 || !a.laneSafe(row) || a.size(row) < lanesOf(a.desc) || a.lastStore(w.reuse) < 0 {
		return -1
	}
	if w.rank() < packedRank && (!a.storesAlong(row) || w.sum.DType.Size() > ir.F32.Size()) {
		return -1
	}
	for _, o := range weights {
		if !a.allConstant(o.chain) || !slices.Contains(o.rows, row) && len(o.reuse) > 0 && o.rank() == w.rank() {
			return -1
		}
	}
	return row
}

// matmulPacked runs a tile of rows and tokens over panels. It reports failure where no tile
// has room.
func (p *planner) matmulPacked(weights []*operand, w *operand, row int) (how string, ok bool) {
	tile := p.packedTile(weights, w, row)
	if tile.registers == 0 {
		return "", false
	}
	p.rowPanels(weights, w, row, tile.registers, tile.tokens, p.unrollSteps)
	return fmt.Sprintf("tile %d x %d lanes of rows x %d tokens, rows decoded into panels", tile.registers, lanesOf(p.desc), tile.tokens), true
}

// rowPanels decodes rows into panels and runs a tile of registers of them and of tokens over those;
// steps takes the points of an iteration.
func (p *planner) rowPanels(weights []*operand, w *operand, row int, registers, tokens int64, steps func(chain []int)) {
	token := p.lastStore(w.reuse)
	p.stageRows(w, 0)
	p.split(plan.VECTOR, row, lanesOf(p.desc))
	p.split(plan.UPCAST, row, registers/p.perRow(weights, w))
	p.split(plan.UPCAST, token, tokens)
	p.done[row] = true
	p.rollRows(w, token, true)
	for _, o := range weights {
		steps(p.sumAxes(o))
	}
	p.besideSums(weights)
	p.fma()
}

// unrollSteps takes the points of an iteration: those of a dot instruction, then copies.
func (p *planner) unrollSteps(chain []int) {
	steps := int64(floatSteps)
	if last := chain[len(chain)-1]; p.dotAxis(last) {
		steps = packedSteps
	} else if len(chain) > 1 {
		steps = 1
	}
	for _, i := range slices.Backward(chain) {
		if !p.done[i] {
			steps /= p.dot(i)
			n := powerOfTwoDivisor(p.left(i), max(steps, 1))
			p.split(plan.UNROLL, i, n)
			steps /= n
		} else {
			steps /= max(p.taken[i], 1)
		}
		if p.left(i) > 1 {
			break
		}
	}
	if i := chain[0]; p.parted(chain) && p.left(i)%2 == 0 {
		p.split(plan.ROLL, i, p.left(i)/2)
		p.split(plan.UNROLL, i, 2)
	}
	p.leave(chain)
}

// parted reports a sum of two parts, each with a register of its own.
func (p *planner) parted(chain []int) bool {
	n := p.size(chain[0])
	packed := slices.ContainsFunc(p.operands, func(o *operand) bool { return o.rank() == packedRank && slices.Contains(o.chain, chain[0]) })
	return packed && len(chain) == 1 && !p.dotAxis(chain[0]) && n <= shortSum && n%(4*floatSteps) == 0
}

// packedTile is the cheapest tile whose sums fit the registers and whose panels the second
// cache. It is read in order: one register of 8,192 floats is half of a megabyte, and half as
// wide tiles are slower than what then comes from the third one (Q6_K, 2048 x 8192 x 128 exact,
// 1 x 16 tokens 114 GFLOP/s, 2 x 13 180). Of tiles that cost about as much, that with the most sums,
// unless sums of groups are more of them already.
func (p *planner) packedTile(weights []*operand, w *operand, row int) (best packedTile) {
	tiles := p.packedTiles(weights, w, row)
	if len(tiles) == 0 {
		return packedTile{}
	}
	least := slices.MinFunc(tiles, func(x, y packedTile) int { return cmp.Compare(x.cost, y.cost) }).cost
	if p.sumsAtOnce(weights) == 1 {
		least *= alikeCost
	}
	alike := lists.Filter(tiles, func(t packedTile) bool { return t.cost <= least })
	return slices.MaxFunc(alike, func(x, y packedTile) int {
		return cmp.Or(cmp.Compare(x.registers*x.tokens, y.registers*y.tokens), cmp.Compare(y.cost, x.cost))
	})
}

// packedTiles are the tiles that have room.
func (p *planner) packedTiles(weights []*operand, w *operand, row int) (list []packedTile) {
	token, perRow := p.lastStore(w.reuse), p.perRow(weights, w)
	levels, bytes := p.sumsAtOnce(weights), p.panelBytes(weights)
	sums := levels
	if p.parted(p.sumAxes(weights[0])) {
		sums *= 2
	}
	near := p.rowsInFirstCache(bytes / int64(len(weights)))
	spare := int64(1) // an activation
	if levels > 1 {
		spare = 2 // and a scale
	}
	for _, r := range []int64{1, 2, 4} {
		if r%perRow != 0 || r/perRow*lanesOf(p.desc) > p.size(row) || r/perRow*lanesOf(p.desc)*bytes > p.desc.PanelBytes() {
			continue
		}
		for tokens := int64(1); sums*r*tokens+r+spare <= int64(p.desc.VectorRegs) && tokens <= p.size(token); tokens++ {
			tiles := ceil(p.size(row), r/perRow*lanesOf(p.desc)) * ceil(p.size(token), tokens)
			loads := r + tokens
			if (r/perRow*lanesOf(p.desc)+tokens)*bytes > int64(p.desc.CacheL2Bytes) {
				loads = farLoads*r + tokens
				if tokens > near {
					loads = farLoads * (r + tokens)
				}
			}
			list = append(list, packedTile{r, tokens, float64(tiles) * (float64(r*tokens) + float64(loads)/loadShare)})
		}
	}
	return list
}

// rowsInFirstCache is how many rows, which lie so many bytes apart, have a line each in the first cache while they are
// read side by side. Its places go by an address within a page: rows of whole pages have the same one, which holds as many
// lines as there are pages in the cache.
func (p *planner) rowsInFirstCache(apart int64) int64 {
	const pageBytes = 4096
	const lines = pageBytes / lineBytes
	places := lines / ir.GCD(ceil(apart, lineBytes), lines)
	return max(int64(p.desc.CacheL1Bytes)/pageBytes, 1) * places
}

// panelBytes is what one row takes of all panels: a byte for each point of a dot, else a float.
func (p *planner) panelBytes(weights []*operand) (bytes int64) {
	for _, o := range weights {
		size := int64(4)
		chain := p.sumAxes(o)
		if p.dotAxis(chain[len(chain)-1]) {
			size = 1
		}
		bytes += size * p.points(chain)
	}
	return bytes
}

// sumsAtOnce is how many sums of one result a body of the loop over k has: one for each
// level of nested sums that ends within it.
func (p *planner) sumsAtOnce(weights []*operand) int64 {
	longest := slices.MaxFunc(weights, func(x, y *operand) int { return len(p.sumAxes(x)) - len(p.sumAxes(y)) })
	points := make(map[int]int64) // inside of each axis
	n := int64(1)
	for _, i := range slices.Backward(p.sumAxes(longest)) {
		points[i] = n
		n *= p.size(i)
	}
	most := make(map[*ir.UOp]int64)
	for _, o := range weights {
		most[o.sum] = max(p.sumLevels(o.sum, points), most[o.sum])
	}
	total := int64(0)
	for _, levels := range most {
		total += levels
	}
	return max(total/int64(len(p.matricesOf(weights))), 1) // of each matrix
}

// sumAxes are the axes over which the sum of a weight runs, outer before inner, with those
// that tell apart what one byte holds.
func (a *analysis) sumAxes(o *operand) []int {
	axes := setOf(o.chain)
	for _, u := range ofSum(o.sum) {
		if analyse.IsSum(u) && readsOperand(u, o) {
			axes = axes.With(a.axisOf(u.ReduceRange()))
		}
	}
	return axes.List()
}

// sumLevels counts the sums in and at u between which something is computed, up to the one
// that is the loop.
func (p *planner) sumLevels(u *ir.UOp, points map[int]int64) int64 {
	if u.Op == ir.OpStage || u.Op == ir.OpLoad || u.Op == ir.OpField {
		return 0
	}
	inner := int64(0)
	for _, x := range u.Src {
		inner = max(inner, p.sumLevels(x, points))
	}
	if !analyse.IsSum(u) || analyse.IsSum(u.Src[0]) || points[p.axisOf(u.ReduceRange())] >= packedSteps {
		return inner
	}
	return inner + 1
}

// stageRows decodes the rows of a weight into a panel of so many points of the sum at a time; 0: all of them.
func (p *planner) stageRows(w *operand, points int64) {
	for _, i := range w.rows {
		if p.axes[i].Kind == plan.StoreAxis {
			p.add(plan.STAGE, p.axes[i].Name, points)
		}
	}
}
