package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/kernel"
)

// Attention of many queries on matrix instructions (TILE; MMA of the points and of
// the elements of a row): a warp has 16 queries, with all elements of their outputs
// in accumulators. The warps of a block take queries that read the same rows of the
// cache: those of the heads of a group, then neighbours.
//
// LLaMA 3.2 1B on an H200, prompts of 512 tokens, int8: 28,490 tokens a second with a
// few threads a point; with tiles of 32 points 39,190, of 64 37,970, of 128 35,050.
// Eight warps a block 37,700 (64 points).
const (
	gpuFlashWarps  = 4  // of a block, of different queries
	gpuFlashPoints = 32 // of a tile
)

// gpuFlash plans such a kernel; ok is false where its axes make no tiles.
func gpuFlash(a *analysis, tuple *ir.UOp, private []int) (opts []kernel.Opt, why string, record Record, ok bool) {
	_, softmax := a.arena.IsSoftmax(tuple)
	if !softmax || a.knobs.NoMatrices || !a.desc.Matrix("bf16", "bf16", matrixRows, matrixTokens, matrixPoints) {
		return nil, "", Record{}, false
	}
	p := a.plan()
	t := a.index[tuple.ReduceRange()]
	p.done[t] = true
	element := a.lastStore(private)
	shared := p.readTogether(tuple, private)
	query := -1
	for _, i := range shared {
		if a.size(i)%matrixRows == 0 && (query < 0 || a.size(i) > a.size(query)) {
			query = i
		}
	}
	scores := p.scoreSums(tuple)
	if element < 0 || query < 0 || len(scores) != 1 || a.size(element)%matrixTokens != 0 || a.size(scores[0])%matrixPoints != 0 {
		return nil, "", Record{}, false
	}
	p.add(kernel.MMA, p.axes[scores[0]].Name, 0)
	p.taken[scores[0]] = matrixPoints
	p.split(kernel.UNROLL, scores[0], p.left(scores[0]))
	tile := int64(matrixPoints)
	for tile*2 <= min(gpuFlashPoints, a.size(t)) {
		tile *= 2
	}
	p.add(kernel.MMA, p.axes[t].Name, 0)
	p.taken[t] = matrixPoints
	p.split(kernel.UNROLL, t, tile/matrixPoints)
	p.add(kernel.TILE, p.axes[t].Name, 0)
	p.split(kernel.UPCAST, element, 2)
	p.split(kernel.LOCAL, element, 4)
	p.split(kernel.UPCAST, element, p.left(element))
	p.split(kernel.LOCAL, query, 8)
	p.split(kernel.UPCAST, query, 2)
	warps := int64(1)
	for _, i := range shared {
		if i != query {
			n := powerOfTwoDivisor(p.size(i), gpuFlashWarps/warps)
			p.split(kernel.LOCAL, i, n)
			warps *= n
		}
	}
	n := powerOfTwoDivisor(p.left(query), gpuFlashWarps/warps)
	p.split(kernel.LOCAL, query, n)
	p.fma()
	if kernel.Feasible(a.arena, a.sink, kernel.Plan{Opts: p.opts}, a.desc) != nil {
		return nil, "", Record{}, false
	}
	how := fmt.Sprintf("matrix instructions, %d queries a warp, %d warps, tiles of %d points", matrixRows, warps*n, tile)
	why = fmt.Sprintf("tuple reduce of %d components over up to %d points; %s", tuple.Arg.(ir.ReduceArg).N, a.size(t), how)
	return p.opts, why, Record{Axis: a.axes[t].Name, Value: a.size(t), Applied: true, Reason: "private-range", Detail: how}, true
}

// readTogether are the store axes of queries that read the same points of the
// cache: the heads of a group, the tokens of a prompt.
func (p *planner) readTogether(tuple *ir.UOp, private []int) []int {
	t := p.index[tuple.ReduceRange()]
	var read axisSet // axes on which what is read of the cache depends
	for _, u := range p.order {
		if isAccess(u) && p.free[u].has(t) {
			read = read.union(p.free[u])
		}
	}
	var shared []int
	own := p.free[tuple.Src[0]]
	for _, i := range p.axesOf(kernel.StoreAxis) {
		if p.constant(i) && !slices.Contains(private, i) && own.has(i) && !read.has(i) {
			shared = append(shared, i)
		}
	}
	return shared
}
