package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// Matrix products of a GPU with matrix instructions (Opt MMA). A warp holds tiles
// of 16 rows by 8 tokens. Of a tile and 16 points of the sum, three instructions
// of exact mode do the work of 64 multiply-adds a lane; to decode its weights takes
// some 32 others, to split its activations 28 (counted in machine code for sm_90,
// Q6_K). So many tokens are worth panels: a block decodes and splits once for all
// of its warps. With few tokens a weight is used once in a block, where what is
// short is warps that hide the latency of memory: those of a block share the sum.
//
// LLaMA-1B, Q6_K, exact, on an H200: sharing the sum took a batch of 8 from 1,592
// to 4,974 tokens a second, one of 32 from 4,496 to 10,760.
const (
	matrixRows   = 16 // of a tile
	matrixTokens = 8
	matrixPoints = 16 // of the sum

	gpuMatrixWarps      = 8 // of a block
	gpuMatrixPanelTiles = 8 // of tokens, from which blocks share panels
	gpuManyPanelTiles   = 4 // the same where there are many matrices: blocks are not short
	gpuManyFloatTiles   = 2 // of tokens a warp there, in terms of floats: OLMoE's prompt of 512, exact, 18,290 -> 19,900
	gpuMatrixRowTiles   = 2 // of a warp
	gpuMatrixTokenTiles = 4 // of a warp
	gpuMatrixTiles      = 8 // of a warp that decodes for itself: more spill
	gpuMatrixCopies     = 4 // of the points of a tile: more than fit registers
	gpuPanelTiles       = 4 // of a warp with panels, up to which more copies leave fewer barriers
	gpuPanelSteps       = 8
	gpuPanelWarps       = 4 // of a block that shares panels, at least
	gpuPanelFewest      = 6 // share of the device that blocks with panels must fill; else warps share sums
)

// gpuMatrix plans a product with matrix instructions; ok is false where its
// axes make no tiles.
func gpuMatrix(a *analysis, weights []*operand, w *operand) (opts []plan.Opt, why string, record Record, ok bool) {
	row, token := a.lastStore(w.rows), a.lastStore(w.reuse)
	if a.knobs.NoMatrices || !a.desc.Matrix("bf16", "bf16", matrixRows, matrixTokens, matrixPoints) || row < 0 || token < 0 || !fillsTiles(a.size(row), matrixRows) || a.lastStage(weights) {
		return nil, "", Record{}, false
	}
	chains, ok := a.matrixChains(weights, row, token)
	if !ok {
		return nil, "", Record{}, false
	}
	p := a.plan()
	t := p.matrixTile(weights, row, token)
	most, matrices := int64(gpuMatrixCopies), int64(len(distinct(weights)))
	if t.panels && t.rows*t.tokens*matrices <= gpuPanelTiles {
		most = gpuPanelSteps
	}
	for _, o := range chains {
		if !p.done[o.chain[len(o.chain)-1]] {
			p.matrixChain(o, most)
		}
	}
	if !t.panels {
		t.groups = run(p.left(weights[0].chain[0]), gpuMatrixWarps)
		t.rowWarps = shares(ceil(ceil(p.size(row), matrixRows), t.rows), max(gpuMatrixWarps/t.groups/2, 1))
	}
	if token < row { // blocks that follow each other read the same weights, from the second level of the cache
		p.add(plan.SWAP, p.axes[token].Name, int64(row))
	}
	if t.groups > 1 {
		p.split(plan.GROUP, weights[0].chain[0], t.groups)
	}
	p.split(plan.UPCAST, token, 2)
	p.split(plan.LOCAL, token, 4)
	p.split(plan.UPCAST, token, t.tokens)
	p.split(plan.LOCAL, token, t.tokenWarps)
	p.split(plan.LOCAL, row, 8)
	p.split(plan.UPCAST, row, 2)
	p.split(plan.UPCAST, row, t.rows)
	p.split(plan.LOCAL, row, t.rowWarps)
	if t.panels {
		p.add(plan.STAGE, p.axes[token].Name, 0)
		p.add(plan.STAGE, p.axes[row].Name, 0)
	}
	p.aroundRows(a.rowsOf(weights), t.rowWarps*t.tokenWarps*t.groups*int64(a.desc.WarpSize))
	if kernel.Feasible(a.arena, a.sink, plan.Plan{Opts: p.opts}, a.desc) != nil {
		return nil, "", Record{}, false
	}
	how := t.describe()
	why = fmt.Sprintf("%s used for %d outputs each; %s", a.describe(weights), a.points(w.reuse), how)
	return p.opts, why, appliedTo(w, "reuses-weight", how), true
}

// fillsTiles reports points that fill tiles of so many, or of which a last one that
// starts earlier repeats some.
func fillsTiles(n, tile int64) bool { return n%tile == 0 || n > tile }

// matrixChains are the weights whose sums have points for tiles; ok is false where a
// weight has other rows or tokens, or is summed over what no tile covers.
func (a *analysis) matrixChains(weights []*operand, row, token int) (chains []*operand, ok bool) {
	var over analyse.RangeSet // which those chains split
	for _, o := range weights {
		if a.lastStore(o.rows) != row || a.lastStore(o.reuse) != token {
			return nil, false
		}
		inner := o.chain[len(o.chain)-1]
		if n := a.size(inner); a.constant(inner) && (n%matrixPoints == 0 || n > matrixPoints && len(o.chain) == 1 && o.rank() < 2) {
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
	panels                                     bool
}

func (t matrixTile) describe() string {
	how := fmt.Sprintf("matrix instructions, tiles of %d rows x %d tokens a warp, %d x %d warps", t.rows*matrixRows, t.tokens*matrixTokens, t.rowWarps, t.tokenWarps)
	switch {
	case t.panels:
		how += " share panels"
	case t.groups > 1:
		how += fmt.Sprintf(", %d share a sum", t.groups)
	}
	return how
}

// matrixPanels are blocks that share panels, large ones first.
var matrixPanels = []matrixTile{
	{rows: 2, rowWarps: 2, tokens: 4, tokenWarps: 4},
	{rows: 2, rowWarps: 2, tokens: 2, tokenWarps: 4},
	{rows: 2, rowWarps: 2, tokens: 1, tokenWarps: 4},
}

// matrixTile picks the shape: panels for many tokens; for few, where each weight
// has no second use in a block, warps that share the sum.
func (p *planner) matrixTile(weights []*operand, row, token int) matrixTile {
	rowTiles, tokenTiles := ceil(p.size(row), matrixRows), ceil(p.size(token), matrixTokens)
	blocks := rowTiles * tokenTiles
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i != row && i != token {
			blocks *= p.size(i)
		}
	}
	enough := int64(p.desc.Cost.Workers) * 3 / 4
	least, most := int64(gpuMatrixPanelTiles), tokenTiles
	if p.matrices(weights[0], row) > 1 {
		least = gpuManyPanelTiles
		if inner := weights[0].chain; !p.integerSum(inner[len(inner)-1]) {
			most = gpuManyFloatTiles
		}
	}
	if tokenTiles >= least {
		var t matrixTile
		for _, t = range matrixPanels {
			t.groups, t.panels = 1, true
			t.tokens = parts(tokenTiles, min(t.tokens, most))
			t.tokenWarps = shares(ceil(tokenTiles, t.tokens), t.tokenWarps)
			t.rows = parts(rowTiles, t.rows)
			t.rowWarps = shares(ceil(rowTiles, t.rows), max(t.rowWarps, gpuPanelWarps/t.tokenWarps))
			if blocks/(t.rows*t.rowWarps*t.tokens*t.tokenWarps) >= enough {
				break
			}
		}
		if blocks/(t.rows*t.rowWarps*t.tokens*t.tokenWarps) > enough/gpuPanelFewest {
			return t
		}
	}
	t := matrixTile{rowWarps: 1, tokenWarps: 1, tokens: parts(tokenTiles, gpuMatrixTokenTiles)}
	for t.rows = parts(rowTiles, gpuMatrixRowTiles); t.rows > 1; t.rows /= 2 {
		if blocks/(t.rows*t.tokens) >= enough && t.rows*t.tokens*int64(len(distinct(weights))) <= gpuMatrixTiles {
			break
		}
	}
	return t
}

// matrices is how many a weight holds, apart from the axis of its rows: one for each
// group of tokens, say. With tiles of 32 tokens OLMoE's prompt of 128 is read at 15,200
// tokens a second in panels and at 8,200 by warps that decode for themselves.
func (p *planner) matrices(w *operand, row int) int64 {
	n := int64(1)
	for _, i := range w.rows {
		if i != row {
			n = satMul(n, p.size(i))
		}
	}
	return n
}

// matrixChain splits the chain of sums of a weight: the points of a tile, then
// copies, of what shares bytes first: then shifts are by constants. Integers are
// summed without a loop.
func (p *planner) matrixChain(w *operand, most int64) {
	inner := w.chain[len(w.chain)-1]
	p.add(plan.MMA, p.axes[inner].Name, 0)
	p.taken[inner] = matrixPoints * max(p.taken[inner], 1)
	copies := int64(1)
	for _, i := range slices.Backward(w.chain) {
		if i != inner && p.constant(i) && p.integerSum(i) {
			p.split(plan.UNROLL, i, p.size(i))
		}
	}
	for _, shared := range []bool{true, false} {
		for _, i := range slices.Backward(w.chain) {
			if !p.constant(i) || shared && (i == inner || !p.sharesBytes(w, i)) {
				continue
			}
			n := powerOfTwoDivisor(p.left(i), max(most/copies, 1))
			if len(w.chain) == 1 {
				n = parts(p.left(i), most)
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
