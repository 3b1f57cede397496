package emit

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// product: a sum of products over several loops, each factor of which many points of the
// store share,
//
//	for n, m, a, b: z[n,m,a,b] = sum_c sum_i sum_j x[n,c,a+i,b+j] * w[m,c,i,j]
//
// is a product of matrices whose rows are positions and whose sum runs over all of c, i, j.
// Tiles of matrix instructions want 16 points of one loop along the sum, and rows along
// another: windows of 3 x 3 in images of 56 x 56 have neither. So the sums become one, and
// the loops of positions do:
//
//	for n, m, p: z[n,m,p] = sum_k x[n,k/9,p/56+k/3%3,p%56+k%3] * w[m,k]

// Points of the tiles that matrix instructions make.
const (
	tilePoints  = 16 // along the sum, and rows
	tileColumns = 4  // half of them empty, at most
	blockRows   = 64 // of a block: loops that it divides lose nothing
)

// tileSums are the types of sums that all targets with matrix instructions have tiles of.
var tileSums = []ir.DType{ir.F32, ir.I32, ir.U32}

// CollapseProducts joins the loops of products of matrices.
func CollapseProducts(s *state.State) {
	if s.Opt.Profile.MatrixTokens > 0 {
		eachWritten(s, joinProduct, "one loop for tiles")
	}
}

// windowProduct is a kernel that is such a product.
type windowProduct struct {
	*state.State
	sink, outer *ir.UOp
	sums        []*ir.UOp // ranges of the nest of sums, outer before inner
	body        *ir.UOp
	factors     []*ir.UOp
}

// joinProduct writes the kernel with one loop of sums and one of positions.
func joinProduct(s *state.State, sink *ir.UOp) *ir.UOp {
	p := windowProductOf(s, sink)
	if p == nil || !p.fillsTiles() {
		return sink
	}
	joined := p.joinSums()
	loops := joined.Src[0].Ranges()
	for i := len(loops) - 1; i > 0; i-- {
		a, b := loops[i-1], loops[i]
		if n, constant := b.Src[0].Int(); constant && n%blockRows != 0 && i == len(loops)-1 && p.sameFactors(a, b) && storedSideBySide(joined, a, b) {
			joined = interleave(s.Exprs, joined, a, b)
			loops = joined.Src[0].Ranges()
		}
	}
	return joinAxes(s, joined)
}

// windowProductOf takes a kernel apart; nil where it holds anything besides one nest of sums
// of products of plain numbers.
func windowProductOf(s *state.State, sink *ir.UOp) *windowProduct {
	if len(sink.Src) != 1 {
		return nil
	}
	p := &windowProduct{State: s, sink: sink}
	reduces := 0
	for _, u := range slices.Backward(ir.Toposort(sink)) {
		switch {
		case u.Op == ir.OpStage || u.Op == ir.OpField || u.Op == ir.OpParam && isPacked(u):
			return nil
		case u.Op == ir.OpReduce:
			if reduces++; p.outer == nil {
				p.outer = u
			}
		}
	}
	if p.outer == nil {
		return nil
	}
	for p.body = p.outer; analyse.IsSum(p.body) && slices.Contains(tileSums, p.body.DType); p.body = p.body.Src[0] {
		if _, constant := p.body.ReduceRange().Src[0].Int(); !constant {
			return nil
		}
		p.sums = append(p.sums, p.body.ReduceRange())
	}
	if reduces != len(p.sums) || len(p.sums) < 2 && len(sink.Src[0].Ranges()) < 3 {
		return nil
	}
	p.factors = slices.DeleteFunc(analyse.Factors(p.body), func(f *ir.UOp) bool {
		return !slices.ContainsFunc(p.sums, func(r *ir.UOp) bool { return analyse.Uses(f, r) })
	})
	return p
}

// fillsTiles reports rows and columns, points of the store that share a factor, that are
// enough for a tile.
func (p *windowProduct) fillsTiles() bool {
	points := make(map[string]int64)
	for _, loop := range p.sink.Src[0].Ranges() {
		if key := p.without(loop); key != "" {
			points[key] = max(points[key], 1) * p.Points([]*ir.UOp{loop})
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, n := range points {
		least, most = min(least, n), max(most, n)
	}
	return len(points) == 2 && most >= tilePoints && least >= tileColumns
}

// without names the factors that a loop of the store leaves alone: those that its points share.
func (p *windowProduct) without(loop *ir.UOp) string {
	key := []byte{}
	for i, f := range p.factors {
		if !analyse.Uses(f, loop) {
			key = append(key, byte(i), ' ')
		}
	}
	return string(key)
}

// sameFactors reports loops whose points share the same factors, and share any.
func (p *windowProduct) sameFactors(a, b *ir.UOp) bool {
	key := p.without(a)
	return key != "" && key == p.without(b)
}

// joinSums writes the kernel with one sum, unless the points of the innermost one are those
// of tiles.
func (p *windowProduct) joinSums() *ir.UOp {
	if n, _ := p.sums[len(p.sums)-1].Src[0].Int(); len(p.sums) < 2 || n%tilePoints == 0 {
		return p.sink
	}
	points := p.Points(p.sums)
	both := p.A.Range(expr.RangeID(p.sums[0]), p.A.Index(points))
	with := make(map[*ir.UOp]*ir.UOp)
	for k, r := range p.sums {
		n, _ := r.Src[0].Int()
		points /= n
		with[r] = p.A.Div(both, p.A.Index(points))
		if k > 0 {
			with[r] = p.A.Mod(with[r], r.Src[0])
		}
	}
	sum := p.A.Reduce(ir.OpAdd, p.Substitute(p.body, with), both)
	return p.A.Substitute(p.sink, map[*ir.UOp]*ir.UOp{p.outer: sum})
}
