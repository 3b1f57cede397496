package heuristic

import (
	"fmt"

	"tgc/ir"
	"tgc/kernel"
	"tgc/target"
)

// Matmul plans of a CPU. A register tile of rows x tokens, each accumulator one
// vector of lanes along k: a step of k loads rows + tokens vectors for rows *
// tokens multiply-adds. Decoded weights of the tile's rows are staged as a
// panel, so that packed weights are read and decoded once.
const (
	// fewTokens is the number of uses up to which they all fit the register
	// tile: then no panel is needed, a decoded vector is used while it is in a
	// register.
	fewTokens = 8
	// matmulSteps of k are unrolled in the loop over a panel.
	matmulSteps = 2
)

// registerTile is a shape that fits 32 registers (rows*tokens accumulators and
// rows+tokens operands of which one side is read from memory) or 16.
type registerTile struct {
	registers    int
	rows, tokens int64
}

// registerTiles, best first: the loads per multiply-add fall with the tile.
var registerTiles = []registerTile{
	{32, 4, 6}, {32, 6, 4}, {32, 3, 8}, {32, 5, 5}, {32, 4, 5}, {32, 5, 4}, {32, 4, 4}, {32, 2, 8}, {32, 8, 2}, {32, 3, 4}, {32, 4, 3},
	{16, 3, 4}, {16, 4, 3}, {16, 3, 3}, {16, 2, 4}, {16, 4, 2}, {16, 2, 2},
	{0, 2, 2}, {0, 1, 4}, {0, 4, 1}, {0, 1, 2}, {0, 2, 1}, {0, 1, 1},
}

// tryMatmul recognises sums over a large operand whose elements are used for
// several outputs: tokens, in a prompt.
func tryMatmul(a *analysis) ([]kernel.Opt, string, Record) {
	weights, record := a.chosenWeights()
	if weights == nil {
		return nil, "", record
	}
	var w *operand
	for _, o := range weights {
		if len(o.reuse) > 0 && w == nil {
			w = o
		}
	}
	if w == nil {
		return declined("used-once", "every element of %s is used for one output", weights[0].name())
	}
	if a.desc.Kind == target.GPU {
		return gpuMatmul(a, weights, w)
	}
	p := a.plan()
	uses := a.points(w.reuse)
	var how string
	switch {
	case a.lanesAlongRows(w):
		how = p.matmulRows(weights, w)
	case uses <= fewTokens:
		how = p.matmulFew(weights, w)
	default:
		how = p.matmulPanel(weights, w)
	}
	why := fmt.Sprintf("%s used for %d outputs each; %s", a.describe(weights), uses, how)
	return p.opts, why, appliedTo(w, "reuses-weight", how)
}

// matmulFew holds all uses of a weight in registers at once.
func (p *planner) matmulFew(weights []*operand, w *operand) string {
	for _, i := range w.reuse {
		p.done[i] = true
		if p.axes[i].Kind == kernel.StoreAxis && p.constant(i) {
			p.split(kernel.UPCAST, i, p.size(i))
		} else if p.axes[i].Kind == kernel.StoreAxis {
			p.roll(i)
		}
	}
	rows := p.rowsOf(weights)
	var how string
	for _, o := range weights {
		if p.done[o.chain[len(o.chain)-1]] {
			continue
		}
		p.stageInvariant(o)
		l, c := p.chain(o.chain, lanesOf(p.desc), max(p.iteration(o)/lanesOf(p.desc), 1))
		if how == "" {
			how = fmt.Sprintf("lanes %d of k, %d groups unrolled, %d tokens at once", l, c, p.points(w.reuse))
		}
	}
	p.stageCopies(rows, maxStageCopies)
	p.tileAxes(rows)
	p.lightReduces()
	p.finish(weights)
	return how
}

// matmulPanel stages decoded rows and runs a register tile over the tokens.
func (p *planner) matmulPanel(weights []*operand, w *operand) string {
	row, token := p.lastStore(w.rows), p.lastStore(w.reuse)
	if row < 0 || token < 0 {
		return p.matmulFew(weights, w)
	}
	sums := int64(0) // accumulators per point of the tile: gate and up are two
	seen := make(map[*ir.UOp]bool)
	for _, o := range weights {
		if len(o.reuse) > 0 && !seen[o.param] {
			seen[o.param] = true
			sums++
		}
	}
	perRow := max(sums, 1) * p.stagePoints(w)
	tile := p.pickTile(row, token, perRow)
	if panelWorthIt(w) {
		for _, i := range w.rows {
			if p.axes[i].Kind == kernel.StoreAxis {
				p.add(kernel.STAGE, p.axes[i].Name, 0)
			}
		}
	}
	p.split(kernel.UPCAST, token, tile.tokens)
	p.split(kernel.UPCAST, row, tile.rows)
	for _, i := range w.reuse {
		p.done[i] = true
		if p.axes[i].Kind == kernel.StoreAxis {
			p.roll(i)
		}
	}
	p.done[row] = true
	var lanes int64
	for _, o := range weights {
		if !p.done[o.chain[len(o.chain)-1]] {
			lanes, _ = p.chain(o.chain, lanesOf(p.desc), matmulSteps)
		}
	}
	rows := p.rowsOf(weights)
	p.stageCopies(rows, maxStageCopies)
	p.tileAxes(rows)
	p.lightReduces()
	p.fma()
	return fmt.Sprintf("tile %d rows x %d tokens, lanes %d of k, decoded rows staged", tile.rows*perRow, tile.tokens, lanes)
}

// panelWorthIt: a plain f32 weight needs no decoding.
func panelWorthIt(w *operand) bool { return w.rank() > 0 }

// stagePoints is the number of rows that one point of the stores sums, in a
// STAGE around the sum.
func (a *analysis) stagePoints(w *operand) int64 {
	n := int64(1)
	for _, i := range w.rows {
		if a.axes[i].Kind == kernel.StageAxis && a.size(i) <= maxStageCopies {
			n *= a.size(i)
		}
	}
	return n
}

// lastStore is the innermost store axis of constant extent above 1 in a list.
func (a *analysis) lastStore(list []int) int {
	for k := len(list) - 1; k >= 0; k-- {
		if i := list[k]; a.axes[i].Kind == kernel.StoreAxis && a.constant(i) && a.size(i) > 1 {
			return i
		}
	}
	return -1
}

// pickTile is the best tile that divides both axes; perRow is the number of
// accumulators that a row of the tile stands for.
func (p *planner) pickTile(row, token int, perRow int64) registerTile {
	for _, t := range registerTiles {
		if t.registers > p.desc.VectorRegs || t.rows%perRow != 0 && t.rows > 1 {
			continue
		}
		t.rows = max(t.rows/perRow, 1)
		if p.size(row)%t.rows == 0 && p.size(token)%t.tokens == 0 {
			return t
		}
	}
	return registerTile{rows: 1, tokens: 1}
}

// matmulRows runs lanes along the rows of a transposed weight: each activation
// is one broadcast for all of them.
func (p *planner) matmulRows(weights []*operand, w *operand) string {
	row, token := p.innerRow(w), p.lastStore(w.reuse)
	lanes := powerOfTwoDivisor(p.size(row), matvecRegisters*lanesOf(p.desc))
	p.split(kernel.VECTOR, row, lanes)
	p.done[row] = true
	tokens := int64(1)
	if token >= 0 {
		tokens = divisor(p.size(token), int64(p.desc.VectorRegs)*3/8)
		p.split(kernel.UPCAST, token, tokens)
	}
	for _, i := range w.reuse {
		p.done[i] = true
		if p.axes[i].Kind == kernel.StoreAxis {
			p.roll(i)
		}
	}
	for _, o := range weights {
		for _, c := range o.chain {
			p.done[c] = true
		}
	}
	p.tileAxes(p.rowsOf(weights))
	p.lightReduces()
	p.fma()
	return fmt.Sprintf("tile %d lanes of rows x %d tokens", lanes, tokens)
}
