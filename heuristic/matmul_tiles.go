package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// Products of a CPU with tile instructions (Opt MMA): rows are lanes and lie in panels, as in
// matmul_packed.go, and the sums of a group of 16 rows for up to 16 tokens are one
// instruction, which leaves them in memory. What is left for registers is a scale for each
// group.

// matmulTiles plans a product with tile instructions; ok is false where the kernel does not
// accept such a plan.
func (p *planner) matmulTiles(weights []*operand, w *operand, row int) (how string, ok bool) {
	if !p.desc.HasTiles() || p.knobs.NoMatrices || lanesOf(p.desc) != plan.TileRows {
		return "", false
	}
	t := p.clone()
	registers, tokens := t.tileOf(weights, w, row)
	if registers*plan.TileRows*t.panelBytes(weights) > int64(p.desc.CacheL2Bytes) {
		return "", false
	}
	t.rowPanels(weights, w, row, registers, tokens, t.tileSteps)
	if !t.allTiled(weights) {
		return "", false
	}
	if _, err := kernel.Lower(p.arena, p.sink, plan.Plan{Opts: t.opts}, p.desc); err != nil {
		return "", false
	}
	*p = *t
	return fmt.Sprintf("tile instructions, %d x %d rows x %d tokens, rows decoded into panels", registers, plan.TileRows, tokens), true
}

// tileOf is how many registers of rows and how many tokens are summed at once. Activations of floats are
// several terms, which come from the second cache and which two registers of rows share, where
// every worker has as many. One Intel core, Q4_K exact, K = 2048, 128 tokens: gate and up with 16 tokens
// each 135 to 142 ms, with 13 for both 113; others with two registers of rows x 12 tokens 8 to 12 % less.
func (p *planner) tileOf(weights []*operand, w *operand, row int) (registers, tokens int64) {
	registers = p.perRow(weights, w)
	token := p.lastStore(w.reuse)
	integers := slices.ContainsFunc(weights, func(o *operand) bool {
		return slices.ContainsFunc(p.sumAxes(o), p.integerSum)
	})
	if integers {
		return registers, evenTiles(p.size(token), plan.TileRows)
	}
	tiles := p.size(row) / plan.TileRows
	if shared := max(registers, 2); tiles*registers%shared == 0 && tiles*registers/shared >= int64(p.desc.Cost.Workers) {
		registers = shared
	}
	return registers, evenTiles(p.size(token), min(plan.TileRows, max(int64(plan.TileSums(p.desc))/registers, 1)))
}

// tileSteps takes the points of a tile, of what is left copies up to as many as the least tile
// that is worth an instruction has.
func (p *planner) tileSteps(chain []int) {
	steps := int64(leastTile)
	for _, i := range slices.Backward(chain) {
		switch {
		case p.done[i]:
		case p.tileAxis(i):
			p.taken[i] = p.tilePoints(i)
			p.add(plan.MMA, p.axes[i].Name, p.taken[i])
		default:
			p.split(plan.UNROLL, i, powerOfTwoDivisor(p.left(i), max(steps, 1)))
		}
		if steps /= max(p.taken[i], 1); p.left(i) > 1 {
			break
		}
	}
	p.leave(chain)
}

// leastTile is how many bytes of a row an instruction must take: it is as long for fewer. One
// Intel core, Q6_K in int8, groups of 16 (2048 x 8192 x 128): 21.7 ms, dots of vectors 14.8.
const leastTile = 32

// tileAxis reports an axis over which products are summed that tile instructions take.
func (a *analysis) tileAxis(i int) bool {
	return len(a.reduces[i]) > 0 && a.constant(i) && !slices.ContainsFunc(a.reduces[i], func(u *ir.UOp) bool {
		inner := analyse.Any(u.Src[0], func(x *ir.UOp) bool { return x.Op == ir.OpReduce })
		few := a.tilePoints(i)*a.tileBytes(i) < leastTile
		return !analyse.IsSum(u) || inner || few || len(analyse.Factors(u.Src[0])) != 2 || u.DType != ir.I32 && u.DType != ir.F32
	})
}

// tileBytes is the size of a point of an axis that tiles sum.
func (a *analysis) tileBytes(i int) int64 {
	if a.integerSum(i) {
		return 1
	}
	return 2
}

// tilePoints is how many points of an axis one instruction sums.
func (a *analysis) tilePoints(i int) int64 {
	return powerOfTwoDivisor(a.size(i), plan.TilePoints/a.tileBytes(i))
}

// allTiled reports that tiles sum a level of a product with every matrix.
func (p *planner) allTiled(weights []*operand) bool {
	return !slices.ContainsFunc(weights, func(o *operand) bool {
		return o.rank() == packedRank && len(o.reuse) > 0 && !slices.ContainsFunc(weights, func(other *operand) bool {
			return other.param == o.param && slices.ContainsFunc(p.sumAxes(other), p.tileAxis)
		})
	})
}
