package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Matrix products of a GPU with matrix instructions (Opt MMA). A warp holds tiles of 16
// rows by 8 tokens, and decodes their weights and splits their activations itself, or a
// block does so once for all of its warps, in panels. With few tokens a weight is used
// once in a block, where what is short is warps that hide the latency of memory: those of
// a block may share the sum. All ways to take tiles are priced (gpu_matrix_price.go), and
// the cheapest that the kernel accepts wins.
const (
	matrixRows   = 16 // of a tile
	matrixTokens = plan.MatrixColumns
	matrixPoints = plan.MatrixPoints // of the sum
	widePoints   = plan.WidePoints   // of which a lane has eight side by side
	matrixLanes  = 32                // threads of a warp

	matrixWeights = matrixRows * matrixPoints / matrixLanes // of a tile that a thread has
)

// gpuMatrix plans a product with matrix instructions, if its axes make tiles.
func gpuMatrix(a *analysis, weights []*operand, w *operand) proposal {
	m, ok := a.matrixProduct(weights, w)
	if !ok {
		return proposal{}
	}
	least := &matrixTile{rows: 1, rowWarps: 1, tokens: 1, tokenWarps: 1, groups: 1, copies: 1}
	optsOf := func(t *matrixTile) []plan.Opt { return m.plan(t).opts }
	if firstAccepted(a, []*matrixTile{least}, optsOf) == nil {
		return proposal{} // of types without instructions, say: no tile is accepted
	}
	list := m.tiles()
	chosen := firstAccepted(a, list, optsOf)
	if chosen == nil {
		return proposal{}
	}
	c := m.plan(chosen).reuses(weights, w, chosen.String())
	c.priced = pricedBy(list, chosen, m.work.bytes, a.knobs)
	return c
}

// matrixProduct is a product whose axes make tiles for matrix instructions.
type matrixProduct struct {
	*analysis
	weights, chains []*operand
	row, token      int // axes
	work            *matrixWork
}

// matrixProduct finds the axes of tiles; ok is false where there are none.
func (a *analysis) matrixProduct(weights []*operand, w *operand) (m *matrixProduct, ok bool) {
	m = &matrixProduct{analysis: a, weights: weights, row: a.tileAxisOf(w.sum, w.rows, matrixRows), token: a.tileAxisOf(w.sum, w.reuse, matrixTokens)}
	if a.knobs.NoMatrices || !a.desc.Matrix("bf16", "bf16", matrixRows, matrixTokens, matrixPoints) || m.row < 0 || m.token < 0 || !fillsTiles(a.size(m.row), matrixRows) || a.lastStage(weights) {
		return nil, false
	}
	m.chains, ok = a.matrixChains(weights, m.row, m.token)
	m.work = m.measure()
	return m, ok
}

// tileAxisOf is the axis of a list that tiles of so many points run along: the innermost one
// that they fill well, of those which not all operands of a sum have.
func (a *analysis) tileAxisOf(sum *ir.UOp, list []int, tile int64) int {
	last := a.lastStore(list)
	best := -1
	for _, i := range list {
		if a.axes[i].Kind != plan.StoreAxis || !a.constant(i) || a.size(i) <= 1 || a.inAll(sum, i) {
			continue
		}
		if best < 0 || filled(a.size(i), tile) >= min(filled(a.size(best), tile), wellFilled) {
			best = i
		}
	}
	return cmp.Or(best+1, last+1) - 1
}

// wellFilled is the useful part of tiles, in thousandths, from which an inner axis, whose elements lie side by side, is taken
// whatever others fill. 9 elements of a window fill two tiles by 562: channels are taken (docs/bench/library-wide.txt).
const wellFilled = 750

// plan maps tiles to warps.
func (m *matrixProduct) plan(t *matrixTile) *planner {
	p, row, token := m.along(t.copies, t.panels), m.row, m.token
	if token < row { // blocks that follow each other read the same weights, from the second level of the cache
		p.add(plan.SWAP, p.axes[token].Name, int64(row))
	}
	p.split(plan.GROUP, p.longestLeft(m.weights[0].chain), t.groups)
	p.split(plan.UPCAST, token, 2)
	p.split(plan.LOCAL, token, 4)
	p.split(plan.UPCAST, token, t.tokens)
	p.split(plan.LOCAL, token, t.tokenWarps)
	p.split(plan.LOCAL, row, 8)
	p.split(plan.UPCAST, row, 2)
	warps := t.rowWarps
	if t.group {
		p.split(plan.LOCAL, row, plan.GroupWarps)
		warps /= plan.GroupWarps
	}
	p.split(plan.UPCAST, row, t.rows)
	p.split(plan.LOCAL, row, warps)
	if t.panels {
		p.add(plan.STAGE, p.axes[token].Name, 0)
		p.add(plan.STAGE, p.axes[row].Name, 0)
	}
	if t.group {
		p.add(plan.WGMMA, "", 0)
	}
	p.leaveFactors(m.chains)
	p.aroundRows(m.rowsOf(m.weights), t.threads())
	if !t.panels { // whose sums take the registers that weights would wait in
		p.preload(m.weights)
	}
	return p
}

// leaveFactors leaves stages alone of which tiles read points along their sums: unless they
// hold sums or other stages of these points, each lane computes those that it has of a
// fragment in registers. Filled by threads they would need threads for each column beside those of a tile.
func (p *planner) leaveFactors(chains []*operand) {
	var over analyse.RangeSet
	for _, o := range chains {
		over = over.Union(setOf(o.chain))
	}
	for _, u := range p.order {
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpStage {
			continue
		}
		stage := u.Src[0]
		own := setOf(p.stageAxes(stage))
		along := slices.ContainsFunc(u.Indices(), func(x *ir.UOp) bool { return !p.free.Of(x).Meet(over).Empty() })
		sums := func(x *ir.UOp) bool {
			return (x.Op == ir.OpReduce || x.Op == ir.OpStage) && !p.free.Of(x).Meet(own).Empty()
		}
		if along && !analyse.Any(stage.Src[0], sums) {
			p.leave(p.stageAxes(stage))
		}
	}
}

// along splits the sums into tiles, some of which a warp has at once.
func (m *matrixProduct) along(copies int64, panels bool) *planner {
	p, points := m.analysis.plan(), m.pointsAtOnce(copies, panels)
	for _, o := range m.chains {
		if !p.done[o.chain[len(o.chain)-1]] {
			p.matrixChain(o, points, copies)
		}
	}
	return p
}

// pointsAtOnce is how many points of the sum a warp multiplies at once: lanes load more side by
// side the more they are. What lies in panels is laid out for the fewest.
func (m *matrixProduct) pointsAtOnce(copies int64, panels bool) int64 {
	narrow := func(o *operand) bool { return m.size(o.chain[len(o.chain)-1])%widePoints != 0 }
	if panels || copies*matrixPoints < widePoints || slices.ContainsFunc(m.chains, narrow) {
		return matrixPoints
	}
	return widePoints
}

// longestLeft is the axis of a chain of which most is left to share, the outermost of several:
// columns that heads are gathered from are sums over groups of heads, heads and points.
func (p *planner) longestLeft(chain []int) int {
	return slices.MaxFunc(chain, func(i, j int) int { return cmp.Compare(p.left(i), p.left(j)) })
}

// fillsTiles reports points that fill tiles of so many, or of which a last one that
// starts earlier repeats some.
func fillsTiles(n, tile int64) bool { return n%tile == 0 || n > tile }

// matrixChains are the weights whose sums have points for tiles; ok is false where a
// weight has other rows or tokens, or is summed over what no tile covers.
func (a *analysis) matrixChains(weights []*operand, row, token int) (chains []*operand, ok bool) {
	var over analyse.RangeSet // which those chains split
	for _, o := range weights {
		if a.tileAxisOf(o.sum, o.rows, matrixRows) != row || a.tileAxisOf(o.sum, o.reuse, matrixTokens) != token {
			return nil, false
		}
		inner := o.chain[len(o.chain)-1]
		if n := a.size(inner); a.constant(inner) && (n%matrixPoints == 0 || n > matrixPoints && len(o.chain) == 1) {
			chains = append(chains, o)
			over = over.Union(setOf(o.chain))
		}
	}
	// A minimum of a group is read once for all of its points.
	return chains, !slices.ContainsFunc(weights, func(o *operand) bool { return !setOf(o.chain).Minus(over).Empty() })
}

// matrixTile is the shape of a block: tiles of rows and of tokens of a warp, warps
// along both, and groups of warps that share the sum.
type matrixTile struct {
	rows, rowWarps, tokens, tokenWarps, groups int64
	copies                                     int64 // tiles along the sum that a warp has at once
	held                                       int64 // sums of integers of a tile that a loop over their points holds
	steps                                      int64 // iterations of a warp along the sum
	uneven                                     bool  // groups do not share the steps evenly
	panels                                     bool
	group                                      bool    // instructions are those of four warps, along the rows
	price                                      float64 // ns
	units                                      float64 // blocks for each multiprocessor
}

// warps is the number of warps of a block.
func (t *matrixTile) warps() int64 { return t.rowWarps * t.tokenWarps * t.groups }

func (t *matrixTile) threads() int64 { return t.warps() * matrixLanes }

// String says how warps take tiles.
func (t *matrixTile) String() string {
	how := fmt.Sprintf("matrix instructions, tiles of %d rows x %d tokens a warp, %d x %d warps", t.rows*matrixRows, t.tokens*matrixTokens, t.rowWarps, t.tokenWarps)
	switch {
	case t.group:
		how += " multiply panels by warpgroups"
	case t.panels:
		how += " share panels"
	case t.groups > 1:
		how += fmt.Sprintf(", %d share a sum", t.groups)
	}
	return how + fmt.Sprintf(": %.1f us", t.price/1000)
}

// matrixChain splits the chain of sums of a weight: the points of a tile, then
// copies, of what shares bytes first: then shifts are by constants. Bytes are
// summed without a loop.
func (p *planner) matrixChain(w *operand, points, most int64) {
	inner := w.chain[len(w.chain)-1]
	copies, amount := points/matrixPoints, int64(0)
	if points > matrixPoints {
		amount = points
	}
	p.add(plan.MMA, p.axes[inner].Name, amount)
	p.taken[inner] = points * max(p.taken[inner], 1)
	for _, i := range slices.Backward(w.chain) {
		if i != inner && p.constant(i) && p.integerSum(i) && !p.severalBytes(w.sum) {
			p.split(plan.UNROLL, i, p.size(i))
		}
	}
	if n := p.left(inner); p.integerSum(inner) && n <= most/copies && len(w.chain) > 1 { // else copies of other sums are held through a loop
		p.split(plan.UNROLL, inner, n)
		copies *= n
	}
	for _, shared := range []bool{true, false} {
		for _, i := range slices.Backward(w.chain) {
			if !p.constant(i) || shared && (i == inner || !p.sharesBytes(w, i)) {
				continue
			}
			n := powerOfTwoDivisor(p.left(i), max(most/copies, 1))
			if len(w.chain) == 1 {
				n = parts(p.left(i), max(most/copies, 1))
			}
			p.split(plan.UNROLL, i, n)
			copies *= n
		}
	}
	p.leave(w.chain)
}

// integerSum reports an axis over which integers are summed: a loop of its own
// inside of one over floats.
func (a *analysis) integerSum(axis int) bool {
	return slices.ContainsFunc(a.reduces[axis], func(u *ir.UOp) bool { return u.DType.IsInt() })
}
