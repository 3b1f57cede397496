package heuristic

import (
	"fmt"

	"tgc/kernel"
)

// Matrix products of a GPU, without matrix instructions: a thread holds a tile
// of outputs, decodes its rows once for all of the tile's tokens, and shares
// the sum with the other lanes of a few threads.
const (
	gpuTileRows   = 4
	gpuTileTokens = 8
	gpuTileLanes  = 8
)

func gpuMatmul(a *analysis, weights []*operand, w *operand) ([]kernel.Opt, string, Record) {
	p := a.plan()
	lanes := int64(1)
	for _, o := range weights {
		if !p.done[o.chain[len(o.chain)-1]] {
			lanes = max(lanes, p.lanesOfTile(o))
		}
	}
	row, token := a.lastStore(w.rows), a.lastStore(w.reuse)
	rows, tokens := int64(1), int64(1)
	threads := lanes
	if row >= 0 {
		rows = powerOfTwoDivisor(p.size(row), gpuTileRows)
		p.split(kernel.UPCAST, row, rows)
		n := powerOfTwoDivisor(p.left(row), gpuBlockThreads/threads)
		p.split(kernel.LOCAL, row, n)
		threads *= n
	}
	if token >= 0 {
		tokens = powerOfTwoDivisor(p.size(token), gpuTileTokens)
		p.split(kernel.UPCAST, token, tokens)
	}
	if a.lastStage(weights) {
		p.stageCopies(a.rowsOf(weights), maxStageCopies)
	}
	set := a.rowsOf(weights)
	p.aroundRows(set, threads)
	how := fmt.Sprintf("tile %d rows x %d tokens a thread, %d threads a sum", rows, tokens, lanes)
	why := fmt.Sprintf("%s used for %d outputs each; %s", a.describe(weights), a.points(w.reuse), how)
	return p.opts, why, appliedTo(w, "reuses-weight", how)
}

// lastStage reports stages among the rows of weights.
func (a *analysis) lastStage(weights []*operand) bool {
	for _, i := range a.rowsOf(weights).list() {
		if a.axes[i].Kind == kernel.StageAxis {
			return true
		}
	}
	return false
}

// lanesOfTile is lanesOfRow with shorter loads, since each is held decoded for
// several rows.
func (p *planner) lanesOfTile(w *operand) int64 {
	inner := w.chain[len(w.chain)-1]
	if p.constant(inner) && p.laneSafe(inner) {
		p.split(kernel.VECTOR, inner, powerOfTwoDivisor(p.left(inner), 4))
	}
	got := int64(1)
	for j := len(w.chain) - 1; j >= 0; j-- {
		i := w.chain[j]
		if p.constant(i) && got < gpuTileLanes {
			n := powerOfTwoDivisor(p.left(i), gpuTileLanes/got)
			p.split(kernel.WARP, i, n)
			got *= n
		}
		p.done[i] = true
	}
	return got
}
