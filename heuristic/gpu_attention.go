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
	// Elements of a row in a thread, at least, and at most where there can be more threads: beyond, turns take longer
	// than threads that have nothing. Eight, 12, 20 and 28 at most, H200, eight layers with a cache of 4 x 80,
	// us a step at depth 250, 1,000 and 4,000: 100 118 194, 85 112 169, 95 128 165, 100 145 161, of eight sequences
	// at 4,000 541 453 619 632; 4 x 160, eight sequences 891 691 932 937 (docs/bench/h200-heads.txt).
	gpuRowLeast = 8
	gpuRowMost  = 12
	gpuRowHeld  = 32 // elements of a result in a thread, at most
	// Bytes of neighbours that a thread loads at once, of a key, and elements of a value and of a result: of 32 bytes each
	// load takes half of each line. Lanes of eight floats, of four, us at depth 1,000: 12 heads of 64, three in the
	// cache, 106 and 94, 24 139 and 120, 32 of 128 150 and 142. Values of f16, Qwen2.5 1.5B, depth 8,000, eight and
	// four, tokens a second: 1,010 and 1,179.
	gpuRowBytes      = 16
	gpuRowLanes      = 4
	gpuWideLanes     = 8 // of narrow elements, at most, and of parts that are joined
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
	gpuAttentionQueries = 4 // that share points
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
	var keys []rowShare
	for _, i := range scores {
		s := p.shareOf(i, p.rowLanes(tuple, i), 1, warp)
		keys = append(keys, s)
		p.split(plan.VECTOR, i, s.lanes)
		p.split(plan.WARP, i, s.threads)
		row = max(row, s.threads)
	}
	if len(scores) == 0 {
		row = warp / 4
	}
	p.privatePoints(private, row, len(scores) > 0)
	queries, blocks := p.sharedQueries(tuple, private)
	p.wholeKeys(scores, keys, queries)
	points := p.points([]int{t})
	lanes := powerOfTwoDivisor(warp/min(row, warp), warp)
	warps := p.attentionWarps(blocks, ceil(points, lanes*gpuAttentionMany))
	most := pointsOfQueries(queries)
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

// wholeKeys has a thread's elements of a key without a loop where registers have room for them: the first rows of the cache are then read before
// the kernel before has ended. us a step, with a loop and without, H200: Qwen3 0.6B 395 and 380, at depth 1,000 517 and 500. Blocks of several queries have
// no room: LLaMA 8B's heads, depth 4,000, 266 and 273 (docs/bench/h200-keys.txt).
func (p *planner) wholeKeys(scores []int, keys []rowShare, queries int64) {
	for at, i := range scores {
		if queries == 1 && gpuAttentionMany*keys[at].elements() <= gpuRowHeld {
			p.split(plan.UNROLL, i, keys[at].vectors)
		}
	}
}

// rowShare is how threads share a row: each has so many vectors of lanes, and lanes of neighbours lie side by side.
type rowShare struct{ lanes, threads, vectors int64 }

func (s rowShare) elements() int64 { return s.lanes * s.vectors }

// shareOf is how a power of two of threads share an axis with the fewest places for nothing, and of
// those the most threads. Each has a point at least.
func (p *planner) shareOf(axis int, lanes, least, most int64) (best rowShare) {
	size := p.size(axis)
	least, most = powerOfTwo(size, 1, least), powerOfTwo(size, 1, most)
	lanes = powerOfTwoDivisor(size, min(lanes, size/least))
	for n := least; n <= most; n *= 2 {
		s := rowShare{lanes, n, ceil(size/lanes, n)}
		if n > least && s.elements() < gpuRowLeast {
			break
		}
		if n == least || best.elements() > gpuRowMost || n*s.elements() <= best.threads*best.elements() {
			best = s
		}
	}
	return best
}

// rowLanes is how many elements of a row of the cache are one load.
func (p *planner) rowLanes(tuple *ir.UOp, axis int) int64 {
	t, bytes := p.axisOf(tuple.ReduceRange()), int64(registerBytes)
	for _, u := range p.order {
		if free := p.free.Of(u); isAccess(u) && free.Has(t) && free.Has(axis) {
			bytes = min(bytes, int64(max(u.DType.Size(), 1)))
		}
	}
	return min(gpuRowBytes/bytes, gpuWideLanes)
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
// cache, the heads of a group, the tokens of a prompt, and is how many, and how many blocks there are then.
func (p *planner) sharedQueries(tuple *ir.UOp, private []int) (queries, blocks int64) {
	queries, blocks = 1, p.blocksBeside(private)
	if blocks == 0 {
		return queries, blocks
	}
	for _, i := range p.readTogether(tuple, private) {
		n := p.queriesOf(p.size(i), blocks, queries, float64(blocks)*p.rowBytes(tuple, private))
		p.split(plan.UPCAST, i, n)
		blocks = blocks / p.size(i) * ceil(p.size(i), n)
		queries *= n
	}
	return queries, blocks
}

// queriesOf is how many of some queries a block has, each of which is so many already: as many as take the least time
// for the rows that blocks read and the results that they combine. Rows take as long as a multiprocessor with one block more
// than others reads, and longer where registers have room for more of them. Eight layers of 24 heads in
// groups of three, eight sequences at 4,000, an H200: 757 us with one query a block, 536 with three (docs/bench/h200-heads.txt).
func (p *planner) queriesOf(size, blocks, each int64, read float64) int64 {
	t, units := &p.desc.Threads, int64(p.desc.Cost.Workers)
	time := func(n int64) float64 {
		queries, turns := each*n, ceil(blocks/size*ceil(size, n), units)
		held := min(gpuAttentionMany*queries, gpuAttentionHeld)
		rows := t.Rows * read / float64(blocks) * float64(units*turns*held) / float64(queries*pointsOfQueries(queries))
		return rows + t.Query*float64(queries-each)
	}
	best := int64(1)
	for n := int64(2); n <= min(size, gpuAttentionQueries/each); n++ {
		if time(n) < time(best) {
			best = n
		}
	}
	return best
}

// pointsOfQueries is how many points of so many queries a thread has at once.
func pointsOfQueries(queries int64) int64 {
	return min(gpuAttentionMany, max(gpuAttentionHeld/queries, 1))
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
		lanes := int64(gpuWideLanes)
		switch {
		case !p.laneSafe(i):
			lanes = 1
		case scores:
			lanes = gpuRowLanes
		}
		s := p.shareOf(i, lanes, row, row)
		p.split(plan.VECTOR, i, s.lanes)
		p.split(plan.LOCAL, i, s.threads)
		shared = true
		if !scores && blocks > 0 && blocks*p.left(i) <= int64(p.desc.Cost.Workers) {
			continue
		}
		p.split(plan.UPCAST, i, min(p.left(i), gpuRowHeld/s.lanes))
		p.roll(i)
	}
}
