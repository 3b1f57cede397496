package state

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
)

// Matrix instructions of a GPU take the sums of a product of matrices. What else a kernel folds would run
// along the loop of such a sum, or in threads that its tiles have not.

// plainProduct is how many times longer a product of f32 takes without matrix instructions: three products
// of bf16 take a fifth of the time of one multiply-add of f32 by the datasheet of an H100 (990 and 67 T a
// second). 256 x 256 x 256 takes 3.2 us, three of them in a kernel without such instructions some 50
// (docs/bench/library-h100.txt).
const plainProduct = 4

// beside reports a product of matrices that a kernel makes beside other folds, or in a stage, whose
// rows a block makes one by one, or in another fold. A CPU has no tiles for the last, either.
func (p *pricer) beside(body *ir.UOp) bool {
	matrices := p.Opt.Profile.MatrixTokens > 0
	products, others, staged, within := false, false, false, false
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op != ir.OpReduce && u.Op != ir.OpStage || p.Height(u) == 0 {
			return u.Src
		}
		if !p.ofMatrices(u) {
			others = others || u.Op == ir.OpReduce || p.Height(u.Src[0]) > 0
			staged = staged || u.Op == ir.OpStage && analyse.Any(u.Src[0], p.ofMatrices)
			within = within || analyse.IsSum(u) && !p.ReadsField(u) && p.foldsProduct(u)
			return nil
		}
		products = true
		for u.Op == ir.OpReduce { // sums of sums are one product
			u = u.Src[0]
		}
		return u.Src
	}, body)
	return within || matrices && (staged || products && others)
}

// foldsProduct reports a sum of products of which a factor is a product of matrices, or is made of one.
func (p *pricer) foldsProduct(u *ir.UOp) bool {
	return u.Src[0].Op == ir.OpMul && analyse.Any(u.Src[0], func(x *ir.UOp) bool { return x.Op == ir.OpReduce && p.ofMatrices(x) })
}

// fewRows is how many rows or columns a product of matrices has at least that is worth tiles.
const fewRows = 8

// ofMatrices reports a sum of products whose factors are each used for the rows or the columns of a tile.
func (p *pricer) ofMatrices(u *ir.UOp) bool {
	least := max(p.Opt.Profile.MatrixTokens, fewRows)
	x, y, ok := p.FactorRanges(u)
	return ok && p.rowsOf(x, y) >= least && p.rowsOf(y, x) >= least
}

// rowsOf is the number of points of loops of the store, and of stages, that are in x and not in y.
func (p *pricer) rowsOf(x, y []*ir.UOp) int64 {
	return p.Points(lists.Filter(ir.WithoutRanges(x, y), func(r *ir.UOp) bool { return slices.Contains(p.rows, r) }))
}

// tileLoops are the loops that tiles of a product could lie along: those of the store and of stages.
func (p *pricer) tileLoops(body *ir.UOp) []*ir.UOp {
	list := slices.Clone(p.loops)
	for _, u := range ir.Toposort(body) {
		if u.Op == ir.OpStage {
			list = append(list, u.Src[1:]...)
		}
	}
	return list
}
