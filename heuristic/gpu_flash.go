package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Attention of many queries on matrix instructions (TILE; MMA of the points and of
// the elements of a row): a warp has 16 queries, with all elements of their outputs
// in accumulators. A block has the eight warps whose registers a multiprocessor has: warps take
// queries that read the same rows of the cache, those of the heads of a group, then neighbours, and
// share panels of them; as many groups of these as there is room for share the points.
//
// Beside blocks of four warps, of which two share a multiprocessor, the points of the longest block, which takes as long as
// the kernel where loops end at the mask, are shared. 512 tokens on an H100, us a layer, one group, two and four: LLaMA 3.2 1B (32 heads,
// two terms of f16) 45, 32; of halves Qwen3 0.6B (16) 51, 36, 35, Qwen2 0.5B (14) 28, 19, 27; 4,096 tokens, a second,
// one group, two and four: LLaMA 1B 84,960, 84,140, Qwen3 0.6B 66,170, 83,790, 77,450 (docs/bench/h100-attention.txt).
//
// Before: prompts of 512 tokens on an H200, int8, tokens a second: LLaMA 3.2 1B 28,490 with a
// few threads a point; with tiles of 32 points 39,190, of 64 37,970, of 128 35,050. The
// kernel takes 60 us with panels, some 75 without, and 375 took the other plan. Qwen3
// 0.6B (rows of 128 elements): 31,310, with tiles of 32 points 39,490, with panels
// 51,160, two groups 52,450, tiles of 16 points and two groups 53,980. 128 tokens of
// LLaMA: one group 32,990, two 33,380, four 33,900. Where loops end at the mask, us a
// layer: LLaMA 57 with four warps a block, 61 with two, eight or two groups; Qwen3 66,
// with one group 84, tiles of 32 points 79, four groups 81; GPT-2 34.
const (
	gpuFlashWarps    = 4  // of a block, of different queries
	gpuFlashAllWarps = 8  // of a block
	gpuFlashGroups   = 4  // of warps that share the points
	gpuFlashTile     = 32 // points of a tile
	gpuFlashElements = 64 // of a row, up to which a tile has so many points
)

// gpuFlash plans such a kernel, if its axes make tiles.
func gpuFlash(a *analysis, tuple *ir.UOp, private []int) proposal {
	if !a.arena.MonoidOf(tuple).Rescales || a.knobs.NoMatrices || !a.desc.Matrix("bf16", "bf16", matrixRows, matrixTokens, matrixPoints) {
		return proposal{}
	}
	p := a.plan()
	t := a.axisOf(tuple.ReduceRange())
	p.done[t] = true
	f := flash{planner: p, points: t, element: a.lastStore(private), query: -1, score: -1, shared: p.readTogether(tuple, private)}
	for _, i := range f.shared {
		if fillsTiles(a.size(i), matrixRows) && (f.query < 0 || a.size(i) > a.size(f.query)) {
			f.query = i
		}
	}
	if f.scores(tuple); f.element < 0 || f.query < 0 || f.score < 0 || !fillsTiles(a.size(f.element), matrixTokens) || !fillsTiles(a.size(f.score), matrixPoints) {
		return proposal{}
	}
	parts := analyse.OutputParts(a.size(f.element), a.size(f.score), f.queryTerms(tuple), matrixTokens)
	if parts == 0 {
		return proposal{}
	}
	how := f.plan(private, parts)
	if kernel.Feasible(a.arena, a.sink, plan.Plan{Opts: p.opts}, a.desc) != nil {
		return proposal{}
	}
	return p.decidedByTuple(tuple, "%s", how)
}

// flash is the plan of such a kernel in the making: axes of the points, of the
// elements of an output and of a score, of queries, and all that read the same rows.
type flash struct {
	*planner
	points, element, score, query int
	shared                        []int
	norms                         []int // of sums over a query alone
}

// scores finds the sum that is a score, of a query and a row, and those of a query.
func (f *flash) scores(tuple *ir.UOp) {
	for _, i := range f.scoreSums(tuple) {
		rows := slices.ContainsFunc(f.order, func(u *ir.UOp) bool {
			return analyse.IsSum(u) && f.axisOf(u.ReduceRange()) == i && f.free.Of(u).Has(f.points)
		})
		switch {
		case !rows:
			f.norms = append(f.norms, i)
		case f.score < 0:
			f.score = i
		default:
			f.element = -1
		}
	}
}

// queryTerms is how many terms of two bytes hold an element of a query.
func (f *flash) queryTerms(tuple *ir.UOp) int64 {
	for _, u := range ir.Toposort(tuple.Src[0]) {
		if !analyse.IsSum(u) || f.axisOf(u.ReduceRange()) != f.score {
			continue
		}
		if factors := analyse.Factors(u.Src[0]); len(factors) == 2 {
			query, key := factors[0], factors[1]
			if f.free.Of(query).Has(f.points) {
				query, key = key, query
			}
			if query.Op == ir.OpLoad && query.Src[0].Op == ir.OpStage {
				query = query.Src[0].Src[0] // computed in registers
			}
			_, terms, _ := shape.TermsOfProduct(f.bounds, query, key)
			return int64(terms)
		}
	}
	return analyse.TermsOfFloat
}

// plan is that of a kernel with so many parts of the outputs, each of blocks of its own.
func (f *flash) plan(private []int, parts int64) string {
	warps := parts * f.planner.points(f.storeSet().Minus(setOf(private)).List()) / matrixRows
	most := int64(gpuFlashWarps)
	for most > 1 && warps/most < int64(f.desc.Cost.Workers)*3/4 {
		most /= 2
	}
	groups := min(gpuFlashGroups, gpuFlashAllWarps/most)
	f.add(plan.MMA, f.axes[f.score].Name, 0)
	f.taken[f.score] = matrixPoints
	f.split(plan.UNROLL, f.score, f.left(f.score))
	for _, i := range f.norms {
		f.split(plan.VECTOR, i, powerOfTwoDivisor(f.size(i), gpuWideLanes))
		f.split(plan.WARP, i, powerOfTwoDivisor(f.left(i), int64(f.desc.WarpSize)/matrixTokens))
		f.split(plan.UNROLL, i, powerOfTwoDivisor(f.left(i), gpuLoads))
	}
	tile := int64(gpuFlashTile)
	if f.size(f.element) > gpuFlashElements || f.size(f.points) < tile {
		tile = matrixPoints
	}
	f.add(plan.MMA, f.axes[f.points].Name, 0)
	f.taken[f.points] = matrixPoints
	f.split(plan.UNROLL, f.points, tile/matrixPoints)
	f.add(plan.TILE, f.axes[f.points].Name, 0)
	f.splitPoints(plan.GROUP, f.points, groups, f.left(f.points))
	f.split(plan.UPCAST, f.element, 2)
	f.split(plan.LOCAL, f.element, 4)
	f.split(plan.UPCAST, f.element, f.left(f.element)/parts)
	f.split(plan.LOCAL, f.query, 8)
	f.split(plan.UPCAST, f.query, 2)
	rows := f.queryWarps(most)
	if rows > 1 {
		f.add(plan.STAGE, f.axes[f.points].Name, 0)
		f.add(plan.STAGE, f.axes[f.element].Name, 0)
	}
	f.fma()
	how := fmt.Sprintf("matrix instructions, %d x %d queries a block, tiles of %d points", rows, matrixRows, tile)
	if parts > 1 {
		how += fmt.Sprintf(", outputs in %d parts", parts)
	}
	if groups > 1 {
		how += fmt.Sprintf(", shared by %d groups", groups)
	}
	return how
}

// queryWarps gives a block up to so many warps of different queries.
func (f *flash) queryWarps(most int64) int64 {
	warps := int64(1)
	take := func(i int) {
		n := powerOfTwoDivisor(f.left(i), most/warps)
		f.split(plan.LOCAL, i, n)
		warps *= n
	}
	for _, i := range f.shared {
		if i != f.query {
			take(i)
		}
	}
	take(f.query)
	return warps
}

// readTogether are the store axes of queries that read the same rows of the
// cache: the heads of a group, the tokens of a prompt. What is one number for a query and a point, as a stored mask is, is no row.
func (p *planner) readTogether(tuple *ir.UOp, private []int) []int {
	t := p.axisOf(tuple.ReduceRange())
	elements := setOf(private).Union(setOf(p.scoreSums(tuple)))
	var read analyse.RangeSet // axes on which what is read of the cache depends
	for _, u := range p.order {
		if free := p.free.Of(u); isAccess(u) && free.Has(t) && !free.Meet(elements).Empty() {
			read = read.Union(free)
		}
	}
	own := p.free.Of(tuple.Src[0]).Minus(read).Minus(setOf(private))
	return lists.Filter(p.axesOf(plan.StoreAxis), func(i int) bool { return p.constant(i) && own.Has(i) })
}
