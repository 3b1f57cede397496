package heuristic

import (
	"fmt"

	"tgc/ir"
	"tgc/kernel"
)

// Matrix products of a GPU with matrix instructions (Opt MMA). A warp holds tiles
// of 16 rows by 8 tokens; the warps of a block share tokens. Splitting
// activations into terms costs as much as the instructions that use them, so a
// warp has several tiles of rows; decoded weights are used for several tiles of
// tokens.
//
// Of a tile of 32 x 32 and 16 points of the sum, 24 instructions do the work of
// 512 multiply-adds a lane; beside them stand some 50 instructions that decode
// weights and 100 that split activations (counted in machine code for sm_90 of
// Q6_K, exact mode).
const (
	matrixRows   = 16 // of a tile
	matrixTokens = 8
	matrixPoints = 16 // of the sum

	gpuMatrixWarps      = 4
	gpuMatrixRowTiles   = 2  // of a warp
	gpuMatrixTokenTiles = 4  // of a warp
	gpuMatrixRegisters  = 64 // of accumulators
	gpuMatrixCopies     = 4  // of the points of a tile: more than fit registers
)

// gpuMatrix plans a product with matrix instructions; ok is false where its
// axes make no tiles.
func gpuMatrix(a *analysis, weights []*operand, w *operand) (opts []kernel.Opt, why string, record Record, ok bool) {
	row, token := a.lastStore(w.rows), a.lastStore(w.reuse)
	if a.knobs.NoMatrices || !a.desc.Matrix("bf16", "bf16", matrixRows, matrixTokens, matrixPoints) || row < 0 || token < 0 || a.size(row)%matrixRows != 0 || a.size(token)%matrixTokens != 0 || a.lastStage(weights) {
		return nil, "", Record{}, false
	}
	var chains []*operand
	var over axisSet // which those chains split
	for _, o := range weights {
		if a.lastStore(o.rows) != row || a.lastStore(o.reuse) != token {
			return nil, "", Record{}, false
		}
		if inner := o.chain[len(o.chain)-1]; a.constant(inner) && a.size(inner)%matrixPoints == 0 {
			chains = append(chains, o)
			for _, i := range o.chain {
				over = over.with(i)
			}
		}
	}
	for _, o := range weights { // a minimum of a group is read once for all of its points
		for _, i := range o.chain {
			if !over.has(i) {
				return nil, "", Record{}, false
			}
		}
	}
	p := a.plan()
	accumulators := int64(0) // registers of a tile
	for _, o := range chains {
		if !p.done[o.chain[len(o.chain)-1]] {
			p.matrixChain(o)
		}
	}
	sums := make(map[*ir.UOp]bool)
	for _, o := range weights {
		if sums[o.sum] {
			continue
		}
		sums[o.sum] = true
		for _, i := range o.chain {
			if p.left(i) > 1 { // a loop has accumulators of its own
				accumulators += matrixRows * matrixTokens / int64(a.desc.WarpSize)
			}
		}
	}
	rows, warps, tokens := p.matrixTiles(row, token, accumulators)
	if token < row { // blocks that follow each other read the same weights, from the second level of the cache
		p.add(kernel.SWAP, p.axes[token].Name, int64(row))
	}
	p.split(kernel.UPCAST, token, 2)
	p.split(kernel.LOCAL, token, 4)
	p.split(kernel.UPCAST, token, tokens)
	p.split(kernel.LOCAL, row, 8)
	p.split(kernel.UPCAST, row, 2)
	p.split(kernel.LOCAL, row, warps)
	p.split(kernel.UPCAST, row, rows)
	p.aroundRows(a.rowsOf(weights), warps*int64(a.desc.WarpSize))
	if kernel.Feasible(a.arena, a.sink, kernel.Plan{Opts: p.opts}, a.desc) != nil {
		return nil, "", Record{}, false
	}
	how := fmt.Sprintf("matrix instructions, tiles of %d rows x %d tokens a warp, %d warps share tokens", rows*matrixRows, tokens*matrixTokens, warps)
	why = fmt.Sprintf("%s used for %d outputs each; %s", a.describe(weights), a.points(w.reuse), how)
	return p.opts, why, appliedTo(w, "reuses-weight", how), true
}

// matrixTiles are the tiles of rows of a warp, the warps of a block and the
// tiles of tokens: the most whose accumulators fit, and that leave a block for
// nearly every multiprocessor.
func (p *planner) matrixTiles(row, token int, accumulators int64) (rows, warps, tokens int64) {
	most := max(gpuMatrixRegisters/max(accumulators, 1), 1)
	rows = powerOfTwoDivisor(p.size(row)/matrixRows, min(gpuMatrixRowTiles, most))
	warps = powerOfTwoDivisor(p.size(row)/matrixRows/rows, gpuMatrixWarps)
	tokens = powerOfTwoDivisor(p.size(token)/matrixTokens, min(gpuMatrixTokenTiles, max(most/rows, 1)))
	outputs := int64(1)
	for _, i := range p.axesOf(kernel.StoreAxis) {
		outputs *= p.size(i)
	}
	few := func() bool {
		return outputs/(rows*warps*tokens*matrixRows*matrixTokens) < int64(p.desc.Cost.Workers)*3/4
	}
	for _, n := range []*int64{&warps, &rows, &tokens} {
		for *n > 1 && few() {
			*n /= 2
		}
	}
	return rows, warps, tokens
}

// matrixChain splits the chain of sums of a weight: the points of a tile, then
// copies, of what shares bytes first: then shifts are by constants.
func (p *planner) matrixChain(w *operand) {
	inner := w.chain[len(w.chain)-1]
	p.add(kernel.MMA, p.axes[inner].Name, 0)
	p.taken[inner] = matrixPoints * max(p.taken[inner], 1)
	copies := int64(1)
	for _, shared := range []bool{true, false} {
		for k := len(w.chain) - 1; k >= 0; k-- {
			i := w.chain[k]
			if !p.constant(i) || shared && (i == inner || !p.sharesBytes(w, i)) {
				continue
			}
			n := powerOfTwoDivisor(p.left(i), gpuMatrixCopies/copies)
			p.split(kernel.UNROLL, i, n)
			copies *= n
		}
	}
	for _, i := range w.chain {
		p.done[i] = true
	}
}
