package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/kernel/plan"
)

// Attention of a GPU: a few threads share one point of the cache, each with
// neighbouring elements of the key and of the value row; the threads of a warp
// and the warps of a block take different points and combine at the end.
const (
	gpuRowElements   = 8 // elements of a row in one thread
	gpuAttentionWarp = 8 // warps a block, at most
	// Warps of a multiprocessor that have their registers at once. LLaMA 3.2 1B int8 on an
	// H200, tokens a second with 8 and 4 warps a block: 512 blocks, depth 4,096, 1,535 and
	// 1,700; 32 blocks, depth 512, 2,054 and 1,831, depth 0, 2,497 and 2,562
	// (docs/bench/h200-attention.txt).
	gpuAttentionResident = 16
	// Points at once in a thread: steps of Qwen3 0.6B and LLaMA 3.2 1B on an H200 at
	// depth 0, us: one 792 and 782, two 773 and 763, four 714 and 760, eight 749 and
	// 770; at depth 800 two 961, four 903 (LLaMA).
	gpuAttentionMany    = 4
	gpuAttentionQueries = 4 // that share points of a prompt's attention
	// Points at once, of all queries of a thread. Two queries, depth 16,000, two and four points:
	// LLaMA 3.2 1B 1,223 and 1,270 tokens a second, Qwen3 1.7B 622 and 642 (docs/bench/h200-depth.txt).
	gpuAttentionHeld = 8
	registerBytes    = 4 // of an element in a thread
)

func gpuAttention(a *analysis, tuple *ir.UOp, private []int) proposal {
	if c := gpuFlash(a, tuple, private); c.record.Applied {
		return c
	}
	p := a.plan()
	t := a.axisOf(tuple.ReduceRange())
	p.done[t] = true
	warp := int64(a.desc.WarpSize)
	row := int64(1) // threads that share a point
	scores := p.scoreSums(tuple)
	for _, i := range scores {
		p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), gpuRowElements))
		n := parts(p.left(i), warp)
		p.split(plan.WARP, i, n)
		row = max(row, n)
	}
	if len(scores) == 0 {
		row = warp / 4
	}
	p.privatePoints(private, row, len(scores) > 0)
	queries := p.sharedQueries(tuple, private)
	points := p.points([]int{t})
	lanes := powerOfTwoDivisor(warp/min(row, warp), warp)
	blocks := p.blocksBeside(private) / queries
	warps := p.attentionWarps(blocks, ceil(points, lanes*gpuAttentionMany))
	most := min(gpuAttentionMany, max(gpuAttentionHeld/queries, 1))
	cluster := p.attentionCluster(blocks, ceil(points, lanes*warps*most))
	many := inTurns(ceil(points, lanes*warps*cluster), most)
	if many > 1 { // rescaled once for all of them
		p.split(plan.UNROLL, t, many)
		p.add(plan.TILE, p.axes[t].Name, 0)
	}
	p.splitPoints(plan.WARP, t, lanes, points)
	p.splitPoints(plan.GROUP, t, warps, points/lanes)
	p.split(plan.CLUSTER, t, cluster)
	p.sharedStages(row * lanes)
	p.fma()
	how := fmt.Sprintf("%d threads a point, %d points a warp, %d at once", row, lanes, many)
	if cluster > 1 {
		how += fmt.Sprintf(", shared by clusters of %d blocks", cluster)
	}
	if queries > 1 {
		how += fmt.Sprintf(", for %d queries", queries)
	}
	return p.decidedByTuple(tuple, "%s", how)
}

// attentionCluster is how many blocks share the points of a query, which one block takes in so
// many turns, by the price of what comes after the wait for the kernel before: clusters of many
// blocks that find their places, an exchange, and the turns where there are several.
func (p *planner) attentionCluster(blocks, turns int64) int64 {
	t := &p.desc.Threads
	price := func(n int64) float64 {
		out := t.Placed * float64(n*blocks)
		if n > 1 {
			out += t.Exchange
		}
		if left := ceil(turns, n); left > 1 {
			out += t.Late + t.Turn*float64(left-1)
		}
		return out
	}
	best := int64(1)
	for n := int64(2); blocks > 0 && n <= p.desc.Clusters() && n*blocks <= int64(p.desc.Cost.Workers); n *= 2 {
		if price(n) < price(best) {
			best = n
		}
	}
	return best
}

// attentionWarps is how many warps share the points of a query, of which so many have
// points in the first turn: half as many where that lets all blocks run at once, or where
// the others would have no points at all.
func (p *planner) attentionWarps(blocks, busy int64) int64 {
	warps := int64(gpuAttentionWarp)
	if blocks*warps > gpuAttentionResident*int64(p.desc.Cost.Workers) || busy <= warps/2 {
		warps /= 2
	}
	return warps
}

// blocksBeside is the number of points of the store axes that are not private; 0 where an
// extent is not known.
func (p *planner) blocksBeside(private []int) int64 {
	if !p.allConstant(p.axesOf(plan.StoreAxis)) {
		return 0
	}
	return p.points(p.storeSet().Minus(setOf(private)).List())
}

// inTurns is how many of n points, at most so many, leave the fewest for nothing in the
// last of the turns that they take.
func inTurns(n, most int64) int64 {
	turns := max(ceil(n, most), 1)
	return max(ceil(n, turns), 1)
}

// sharedQueries gives a block several queries that read the same points of the
// cache: the heads of a group, the tokens of a prompt.
func (p *planner) sharedQueries(tuple *ir.UOp, private []int) int64 {
	blocks := p.blocksBeside(private)
	if blocks == 0 {
		return 1
	}
	read := float64(blocks) * p.rowBytes(tuple, private)
	queries := int64(1)
	for _, i := range p.readTogether(tuple, private) {
		n := powerOfTwoDivisor(p.size(i), gpuAttentionQueries/queries)
		for n > 1 && !p.sharingPays(blocks, queries*n, read) {
			n /= 2
		}
		p.split(plan.UPCAST, i, n)
		queries *= n
	}
	return queries
}

// sharingPays reports that blocks of so many queries are enough, or that two queries a block
// take less time for their rows than one: of all bytes that blocks read half are left, and each block
// has two results to combine.
func (p *planner) sharingPays(blocks, queries int64, read float64) bool {
	units, t := int64(p.desc.Cost.Workers), &p.desc.Threads
	return blocks/queries >= gpuBlocksPerUnit*units || queries == 2 && blocks/queries >= units && t.Rows*read/2 > t.Query
}

// rowBytes is what is read of a cache for all points of a query, in bytes of registers: narrow elements are converted
// by each thread that reads them. Qwen2.5 1.5B, depth 8,000, H200: rows of f16 for one query 15.3 us, for two 10.5.
func (p *planner) rowBytes(tuple *ir.UOp, private []int) float64 {
	t, bytes := p.axisOf(tuple.ReduceRange()), 0.0
	others := p.storeSet().Minus(setOf(private))
	for _, u := range p.order {
		if isAccess(u) && p.free.Of(u).Has(t) {
			bytes += registerBytes * float64(p.points(p.free.Of(u).Minus(others).List()))
		}
	}
	return bytes
}

// splitPoints shares points of a range among threads while there are several
// for each.
func (p *planner) splitPoints(kind plan.OptKind, axis int, n, points int64) {
	for n > 1 && n > points {
		n /= 2
	}
	p.split(kind, axis, n)
}

// privatePoints shares the private ranges among the threads of a point. Blocks take what is left of
// them where there are few and scores cost nothing, as those of parts that are joined: 64 parts of 4
// heads of 256 in 4 blocks made a step of 12 layers take a fifth longer than 16.
func (p *planner) privatePoints(private []int, row int64, scores bool) {
	blocks := p.blocksBeside(private)
	shared := false
	for _, i := range slices.Backward(private) {
		p.done[i] = true
		if p.axes[i].Kind != plan.StoreAxis || !p.constant(i) {
			continue
		}
		if shared {
			p.roll(i)
			continue
		}
		n := parts(p.size(i), row)
		if p.laneSafe(i) && p.size(i)%n == 0 {
			p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i)/n, gpuRowElements))
		}
		p.split(plan.LOCAL, i, n)
		shared = true
		if !scores && blocks > 0 && blocks*p.left(i) <= int64(p.desc.Cost.Workers) {
			continue
		}
		most := int64(4)
		if p.size(i)%n != 0 {
			most = gpuRowElements
		}
		p.split(plan.UPCAST, i, copies(p.left(i), most))
		p.roll(i)
	}
}
