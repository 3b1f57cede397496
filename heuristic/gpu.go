package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Plans of a GPU: the same findings, mapped to threads. A row of a matvec is
// shared by a warp, whose lanes read neighbouring words; a thread holds several
// rows, so that activations are read once for all of them.
const (
	gpuBlocksPerUnit = 4    // of a multiprocessor, that are enough for a pass over a long axis
	gpuBlockThreads  = 128  // of elementwise kernels
	gpuSharedCopies  = 8    // weights that one word holds, in copies
	gpuReduceThreads = 256  // of a block that sums a row
	gpuLongThreads   = 1024 // of one that sums a row of many thousands
	gpuLongPoints    = 16   // loads of a thread from which a row has more threads
	gpuPaddedShares  = 4    // points of a share from which the last may be cut short
	gpuDotPoints     = 64   // of a sum of bytes that a thread makes by itself
	gpuLoads         = 4    // loads of a short reduce in flight
	gpuSector        = 8    // columns of 32 bytes, what caches read at once
	gpuSharedSum     = 64   // points of a column from which a block shares it, whatever is left of its threads
)

// preload issues the loads of weights before everything else.
func (p *planner) preload(weights []*operand) {
	for _, w := range buffersOf(weights) {
		p.add(plan.PRELOAD, w.name(), 0)
	}
}

// insideReduce reports a reduce that stands in another one's loop or in a stage: a
// barrier in each of its iterations would cost more than the threads gain.
func (a *analysis) insideReduce(axis int) bool { return !a.around(axis).Minus(a.storeSet()).Empty() }

// oneResult reports reduces that depend on no store axis: all points share them.
func (a *analysis) oneResult() bool {
	stores := a.storeSet()
	return !slices.ContainsFunc(a.order, func(u *ir.UOp) bool { return u.Op == ir.OpReduce && !a.free.Of(u).Meet(stores).Empty() })
}

// longestFirst orders weights by the points of their chains. A sum of scales runs
// along a part of the chain that the sum of integers has: the latter decides.
func (a *analysis) longestFirst(weights []*operand) []*operand {
	sorted := slices.Clone(weights)
	slices.SortStableFunc(sorted, func(x, y *operand) int { return cmp.Compare(a.points(y.chain), a.points(x.chain)) })
	return sorted
}

// gpuMatvecRows: neighbouring threads along rows, which are what lies
// contiguously; other threads share the sum.
func gpuMatvecRows(a *analysis, weights []*operand) proposal {
	p, w := a.plan(), weights[0]
	i := a.innerRow(w)
	if c := gpuShortSums(a, weights, i); c.record.Applied {
		return c
	}
	most, sharers := p.columnThreads(p.points(p.rowsOf(weights).Meet(p.storeSet()).List()))
	lanes := fit(p.size(i), most, most, powerOfTwoDivisor(p.size(i), most), most)
	p.split(plan.LOCAL, i, lanes)
	p.done[i] = true
	groups := int64(1)
	for _, o := range weights {
		k := o.chain[len(o.chain)-1]
		if p.done[k] || !a.constant(k) {
			continue
		}
		groups = shares(max(p.size(k)/gpuLoads, 1), sharers)
		p.split(plan.GROUP, k, groups)
		p.split(plan.UNROLL, k, p.copiesOf(k, 4))
		p.leave(o.chain)
	}
	p.stageInvariant(w)
	if groups == 1 && len(p.stages) == 0 && p.storeSet().Minus(p.rowsOf(weights)).Empty() {
		p.fillBlock(lanes)
	}
	p.aroundRows(a.rowsOf(weights), lanes*groups)
	how := fmt.Sprintf("%d rows side by side, %d threads a sum", lanes, groups)
	return p.decidedByWeight(w, "streams-weight", how).of("%s streamed once", a.describe(weights))
}

// gpuElementwise: 16 bytes a thread.
func gpuElementwise(a *analysis, i int) proposal {
	p, total := a.plan(), a.points(a.axesOf(plan.StoreAxis))
	if j := a.transposedAxis(i); j >= 0 {
		how := p.gpuTransposed(i, j)
		return p.decidedBy(i, "transposed", how).of("%d points", total)
	}
	most := a.gpuLanes(total)
	lanes := powerOfTwoDivisor(p.left(i), most)
	p.split(plan.VECTOR, i, lanes)
	p.done[i] = true
	p.pointsOfSameReads(i, total/lanes)
	n := a.threads(p.left(i), gpuBlockThreads)
	p.split(plan.LOCAL, i, n)
	if lanes < most { // other loads are in flight
		p.copiesOfThread(i, total/lanes)
	}
	p.fillBlock(n)
	return p.decidedBy(i, "contiguous", "16 bytes a thread").of("%d points", total)
}

// pointsOfSameReads gives a thread the points of an axis that no load depends on, where others fill the device: what they are
// made of is loaded once, and computed once as far as they share it. An H100, both terms of 512 x 8192 floats: 20.2 us, 12.9.
func (p *planner) pointsOfSameReads(lanes int, total int64) {
	j := lists.Last(p.axesOf(plan.StoreAxis), func(j int) bool {
		reads := func(u *ir.UOp) bool { return u.Op == ir.OpLoad && p.dependsByIndex(u, j) }
		return j != lanes && p.size(j) > 1 && p.constant(j) && p.everyStore(j) && !slices.ContainsFunc(p.order, reads)
	}, -1)
	if j < 0 {
		return
	}
	if n := p.copiesOf(j, gpuLoads); total/n >= gpuBlockThreads*int64(p.desc.Cost.Workers) {
		p.split(plan.UPCAST, j, n)
		p.done[j] = p.left(j) == 1
	}
}

// copiesOfThread gives a thread a few points of an axis, or of the next one outwards that has points left, where so many points fill
// the device all the same: each block has as many loads in flight with a fourth of the blocks.
func (p *planner) copiesOfThread(i int, total int64) {
	if total < gpuLoads*gpuBlockThreads*int64(p.desc.Cost.Workers) {
		return
	}
	for _, j := range slices.Backward(p.axesOf(plan.StoreAxis)) {
		if n := p.copiesOf(j, gpuLoads); j <= i && p.constant(j) && n > 1 {
			p.split(plan.UPCAST, j, n)
			return
		}
	}
}

// gpuLanes is how many of some points a thread takes side by side. Points of a tile are loads in flight already:
// more of them are 16 bytes, where the device has threads enough.
func (a *analysis) gpuLanes(total int64) int64 {
	points, size := a.storedTogether()
	if points == 1 {
		return lanesOf(a.desc)
	}
	lanes := max(int64(a.desc.VectorBytes)/size, 1)
	for lanes > 1 && total/lanes < gpuBlockThreads*int64(a.desc.Cost.Workers) {
		lanes /= 2
	}
	return lanes
}

// fillBlock lets a block of so many threads take points of more store axes,
// innermost first, up to its usual size: groups of 32 of 128 rows of 2048 are
// blocks of one warp, and their sums of 16 of one thread, otherwise.
func (p *planner) fillBlock(threads int64) {
	p.shareOut(threads, gpuBlockThreads, func(i int, threads int64) int64 {
		warps := max(int64(p.desc.WarpSize)/threads, 1) // points of the axis that fill one
		return fit(p.left(i), gpuBlockThreads/threads, warps, divisor(p.left(i), gpuBlockThreads/threads), gpuBlockThreads)
	})
}

// shareOut lets a block of so many threads take points of more store axes, innermost first,
// until it has most: each says how many of an axis, beside the threads that the block has then.
func (p *planner) shareOut(threads, most int64, each func(axis int, threads int64) int64) int64 {
	for _, i := range slices.Backward(p.axesOf(plan.StoreAxis)) {
		if threads < most && !p.done[i] && p.constant(i) {
			n := each(i, threads)
			p.done[i] = true
			p.split(plan.LOCAL, i, n)
			threads *= n
		}
	}
	return threads
}

// gpuReduce: a block for each reduce; its threads then make the points that
// share the result.
func gpuReduce(a *analysis) proposal {
	p, axes := a.plan(), a.axesOf(plan.ReduceAxis)
	largest := slices.MaxFunc(axes, func(i, j int) int { return cmp.Compare(a.nestPoints(i), a.nestPoints(j)) })
	points := a.nestPoints(largest)
	threads := int64(a.desc.WarpSize)
	for threads < gpuReduceThreads && threads*lanesOf(a.desc) < points {
		threads *= 2
	}
	for threads < gpuLongThreads && threads*lanesOf(a.desc)*gpuLongPoints < points {
		threads *= 2
	}
	results := p.longResults(points)
	chain := a.stageChainThreads()
	threads = max(p.rowThreads(results, points, threads), chain)
	reason := "rows"
	if i := p.sideBySide(axes); i >= 0 {
		threads = p.gpuColumns(i, axes)
		reason = "columns"
	} else if i := p.sharedStageAxis(axes); i >= 0 {
		threads = p.gpuStageSharers(i, axes)
		reason = "stages"
	} else {
		p.gpuRows(axes, threads)
	}
	last := p.lastStore(a.axesOf(plan.StoreAxis))
	spread := last >= 0 && !p.done[last] && p.spread(last, threads)
	few := p.points(p.axesOf(plan.StoreAxis)) < gpuBlocksPerUnit*int64(a.desc.Cost.Workers)
	if used := p.threadsTaken(); !spread && len(p.stages) == 0 && used <= int64(a.desc.WarpSize) && a.storeSet().Minus(results).Empty() {
		if few && used == int64(a.desc.WarpSize) && last >= 0 {
			p.done[last] = true // each is a block's
		} else {
			p.fillBlock(used)
		}
		if used == 1 && points <= gpuLoads {
			p.copiesOfThread(last, p.points(p.axesOf(plan.StoreAxis)))
		}
	}
	if i := last; i >= 0 && !p.done[i] && a.oneResult() {
		// Every block makes the sums for itself: the more points it has, the fewer
		// do. OLMoE's norm of 2048 queries and keys had 4096 blocks, now 48.
		p.split(plan.LOCAL, i, a.threadsBeside(p.size(i), max(threads, gpuBlockThreads)))
		p.done[i] = true
	}
	p.shareStages()
	p.aroundRows(results, threads)
	if chain > 1 {
		p.startNextLate()
	}
	how := fmt.Sprintf("up to %d threads a reduce", threads)
	if reason == "columns" {
		how = fmt.Sprintf("%d threads a block, side by side along %s", threads, a.axes[a.lastStore(a.axesOf(plan.StoreAxis))].Name)
	}
	return p.decidedBy(largest, reason, how).of("%d ranges of up to %d points", len(axes), a.size(largest))
}

// rowThreads halves the threads of a row while rows still fill the device with them, each with
// a few loads: more rows are on their way at a time. Where points are stored beside the sums, a
// block has its usual threads.
func (p *planner) rowThreads(results analyse.RangeSet, points, threads int64) int64 {
	least := int64(p.desc.WarpSize)
	if !p.storeSet().Minus(results).Empty() {
		least = gpuBlockThreads
	}
	if p.oneResult() {
		return threads
	}
	rows := p.points(results.Meet(p.storeSet()).List())
	for threads > least && rows*threads > unitThreads*int64(p.desc.Cost.Workers) && points < threads/2*gpuLongPoints {
		threads /= 2
	}
	return threads
}

// gpuRows shares each reduce among the threads of a block: lanes of warps along what lies
// side by side, also inside of another reduce, whose points then are the warps'.
func (p *planner) gpuRows(axes []int, threads int64) {
	apart := func(i int) bool { return !p.unitStride(i) }
	rows := append(slices.DeleteFunc(slices.Clone(axes), apart), slices.DeleteFunc(slices.Clone(axes), p.unitStride)...)
	for _, i := range rows {
		warp := int64(p.desc.WarpSize)
		// A reduce for each point of a stage has the threads that the points leave it.
		if beside := min(p.stagesAround(i), threads); !p.done[i] && (p.constant(i) || p.plainReduce(i) && !p.insideReduce(i)) && p.size(i) >= warp && beside*warp <= gpuLongThreads && !p.columnsOfStage(i) {
			p.wholeBlock(i, threads)
		}
	}
	p.outerGroups(axes, threads)
}

// outerGroups shares the points of a fold of folds, whose own points warps share, among the warps of a block.
func (p *planner) outerGroups(axes []int, threads int64) {
	rows := p.points(p.reduceResults().Meet(p.storeSet()).List())
	if p.threadsTaken() != int64(p.desc.WarpSize) || len(p.stages) > 0 || rows*threads > unitThreads*int64(p.desc.Cost.Workers) {
		return
	}
	for _, i := range axes {
		if outer := !p.done[i] && p.constant(i) && p.plainReduce(i) && !p.insideReduce(i); outer && slices.ContainsFunc(axes, func(inner int) bool { return p.done[inner] && p.around(inner).Has(i) }) {
			p.split(plan.GROUP, i, shares(p.size(i), threads/int64(p.desc.WarpSize)))
			p.done[i] = true
		}
	}
}

// columnsOfStage reports a reduce in a stage whose elements lie apart, while those of the stage's points lie side by side: each thread then
// makes a point by itself. A warp for each column of a product of 96 x 96 x 96 read 32 lines of memory at once: 16 us, 4 as kernels of
// their own (docs/bench/library-h100.txt).
func (p *planner) columnsOfStage(axis int) bool {
	stage := slices.DeleteFunc(p.around(axis).List(), func(i int) bool { return p.axes[i].Kind != plan.StageAxis })
	if p.unitStride(axis) || !slices.ContainsFunc(stage, func(z int) bool { return p.constant(z) && p.size(z) >= int64(p.desc.WarpSize) }) {
		return false
	}
	return slices.ContainsFunc(stage, p.unitStride)
}

// stagesAround is the number of points of stages that a reduce is computed for.
func (a *analysis) stagesAround(axis int) int64 {
	return a.points(a.around(axis).Meet(setOf(a.axesOf(plan.StageAxis))).List())
}

// longResults are the axes of the results of reduces, but for those of a few points beside
// ones of many: a thread makes them for its point, and threads along their axes share what the
// others made. Columns that are centred after a running sum in chunks, whose sums of four chunks
// depend on the row, were folded again for each row.
func (a *analysis) longResults(most int64) analyse.RangeSet {
	var s analyse.RangeSet
	for axis := range a.reduces {
		if n := a.nestPoints(axis); n > gpuShortSum || n*gpuShortSum > most {
			s = s.Union(a.around(axis))
		}
	}
	if s.Meet(a.storeSet()).Empty() {
		return a.reduceResults()
	}
	return s
}

// nestPoints is how many points an axis has with the reduces that it stands in.
func (a *analysis) nestPoints(axis int) int64 {
	n := a.size(axis)
	for _, i := range a.around(axis).List() {
		if a.axes[i].Kind == plan.ReduceAxis {
			n = satMul(n, a.size(i))
		}
	}
	return n
}

// columnThreads is how many columns side by side a block has where so many must fill the
// device, and how many of its threads share each.
func (p *planner) columnThreads(results int64) (most, groups int64) {
	warp, workers := int64(p.desc.WarpSize), int64(p.desc.Cost.Workers)
	most, groups = warp, gpuReduceThreads/warp
	for groups*warp < gpuLongThreads && results*groups < gpuReduceThreads*workers {
		groups *= 2
	}
	for most > gpuSector && results/most < workers {
		most, groups = most/2, groups*2
	}
	return most, groups
}

// gpuColumns reads columns side by side: neighbouring threads have neighbouring ones.
// Where columns are too few to fill the device, parts of a block share each of them.
func (p *planner) gpuColumns(i int, axes []int) (threads int64) {
	most, groups := int64(gpuBlockThreads), int64(1)
	results := p.points(p.reduceResults().Meet(p.storeSet()).List()) // points beside them share them
	if results < gpuReduceThreads*int64(p.desc.Cost.Workers) {
		most, groups = p.columnThreads(results)
	}
	threads = p.threads(p.size(i), most)
	p.split(plan.LOCAL, i, threads)
	p.done[i] = true
	if groups == 1 && p.storeSet().Minus(p.reduceResults()).Empty() {
		p.fillBlock(threads)
	}
	shared := int64(1)
	for _, r := range axes {
		if p.done[r] || !p.around(r).Has(i) {
			continue
		}
		p.done[r] = true
		if n := shares(max(p.size(r)/gpuLoads, 1), groups); p.constant(r) && p.size(r) >= min(groups*gpuLoads, gpuSharedSum) && !p.insideReduce(r) {
			p.split(plan.GROUP, r, n)
			shared = max(shared, n)
			p.ownReduce(r, n == 1)
		}
	}
	return threads * shared
}

// shareStages puts points into a block that read the same stages, where other axes
// make enough blocks: each would fill the stages for itself. The 8 experts of each
// of 512 tokens, picked by one block each, took 71 us on an H200.
func (p *planner) shareStages() {
	i := p.lastStore(p.axesOf(plan.StoreAxis))
	if i < 0 || p.done[i] || len(p.stages) == 0 || p.size(i) > gpuShortSum || !p.everyStore(i) {
		return
	}
	if p.laneSafe(i) && p.points(p.axesOf(plan.StoreAxis))/p.size(i) >= int64(p.desc.Cost.Workers) {
		p.split(plan.LOCAL, i, p.size(i))
		p.done[i] = true
	}
}

// wholeBlock shares a reduce among all threads of a block.
func (p *planner) wholeBlock(i int, threads int64) {
	p.done[i] = true
	warp := int64(p.desc.WarpSize)
	if p.constant(i) && p.laneSafe(i) && p.unitStride(i) && p.plainReduce(i) {
		p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), powerOfTwoDivisor(p.size(i)/warp, lanesOf(p.desc))))
	}
	p.split(plan.WARP, i, shares(p.left(i), warp))
	if !p.insideReduce(i) {
		p.split(plan.GROUP, i, shares(p.left(i), threads/warp))
	}
	p.split(plan.UNROLL, i, p.inFlight(i))
}

// inFlight is how many of what is left of an axis a thread loads at once: a few in turn, or
// all, where turns would be of fewer.
func (p *planner) inFlight(i int) int64 {
	left := p.left(i)
	if left < 2*gpuLoads {
		return left
	}
	return shares(left, gpuLoads)
}

// shares is the power of two up to limit among which n points are shared out. It
// divides n, unless points past the end, which count as the identity, cost less than
// threads that stand idle: the largest of 50,257 logits was the work of one thread,
// 700 of a step's 1,000 us.
func shares(n, limit int64) int64 {
	if n >= gpuPaddedShares*limit {
		return limit
	}
	exact := powerOfTwoDivisor(n, limit)
	if best := fit(n, limit, limit, exact, 0); best >= gpuPaddedShares*exact {
		return best
	}
	return exact
}

// lateUnits is how many work units each multiprocessor has of a kernel along an axis whose extent is known only where it runs.
const lateUnits = 4

// withUnits is a plan with units (Opt GRID) along store axes whose extent is known only where a kernel runs, the rows of a cache up to the position, say,
// where those of other axes leave multiprocessors idle. Without the Opt such an axis is a loop of each unit. An H200, 64 elements of 8 heads and
// 128 rows, twice: 13.3 us in one block each.
func (a *analysis) withUnits(opts []plan.Opt) plan.Plan {
	chosen := plan.Plan{Opts: opts}
	late := lists.Filter(a.axesOf(plan.StoreAxis), func(i int) bool { return !a.constant(i) && a.everyStore(i) })
	if a.desc.Kind != target.GPU || len(late) == 0 {
		return chosen
	}
	axes, _, err := plan.Read(a.sink, chosen, a.desc)
	if err != nil {
		return chosen
	}
	units, workers := int64(1), int64(a.desc.Cost.Workers)
	left := make([]int64, len(axes))
	for i, x := range axes {
		left[i] = a.size(i)
		for _, s := range x.Segments {
			left[i] = ceil(left[i], max(s.Size, 1))
		}
		if x.Rest == plan.Grid {
			units = satMul(units, left[i])
		}
	}
	for _, i := range late {
		if n := min(left[i], ceil(lateUnits*workers, units)); n > 1 && units < 2*workers {
			with := plan.Plan{Opts: append(slices.Clone(chosen.Opts), plan.Opt{Kind: plan.GRID, Axis: a.axes[i].Name, Amount: n})}
			if plan.Legality(a.sink, with, a.desc) == nil {
				chosen, units = with, satMul(units, n)
			}
		}
	}
	return chosen
}
