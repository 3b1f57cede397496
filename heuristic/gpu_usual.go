package heuristic

import (
	"tgc/kernel/plan"
)

// The usual mapping: what prices are doubted in favour of.
const (
	usualRows      = 4    // of a thread
	usualTurnRows  = 2    // of a thread, where a block takes several groups
	usualGroups    = 8    // of a block
	usualWarps     = 4    // that share a long row
	leastThreads   = 128  // of a block
	leastRounders  = 256  // of a block that rounds activations for sums of integers
	tileThreads    = 512  // of a block that makes a tile of rows by itself
	tileWeights    = 1024 // of a thread's rows of a tile, for each sum of a weight
	aheadWeights   = 64   // of a thread's row, with which the next rows are loaded ahead
	heldIntegers   = 256  // of sums of integers that a thread loads at once
	longShare      = 128  // points of a row that are much for a lane
	fewWarps       = 8    // of a multiprocessor, below which long rows are shared
	residentAhead  = 2    // blocks of a multiprocessor that load ahead
	residentBlocks = 4    // likewise, without
	groupLoads     = 2    // loads of a thread that hold one group of integers

	usedSums    = 16  // of a thread, where weights have several uses
	usedWeights = 52  // registers of a thread's weights there
	usedThreads = 128 // of a block there

	usedTileWeights = 112 // registers of a thread's weights of a tile
	usedTileThreads = 256 // of a block that makes one
	usedShare       = 4   // share of its threads that is enough, without lanes past the end
)

// usualMapping is a warp a row, and as many rows a thread as leave each multiprocessor
// blocks; where there are few rows, several warps share a long one. Lanes share groups
// where a row has too few for half a warp.
func (a *analysis) usualMapping(weights []*operand) mapping {
	m := mapping{copies: gpuSharedCopies, lanes: int64(a.desc.WarpSize), warps: 1, rest: 1, rows: 1, block: 1, turns: 1, whole: true}
	if uses := a.points(a.usesOf(weights).List()); uses > 1 {
		return a.usualUses(weights, uses, m)
	}
	if n := int64(a.knobs.ThreadsPerRow); n > 0 {
		m.lanes, m.warps = min(n, m.lanes), ceil(n, m.lanes)
	}
	c := a.share(weights, m)
	if m.halves = true; c.sharing < m.lanes {
		if more := a.share(weights, m); more.sharing > c.sharing && 2*more.sharing >= m.lanes {
			c = more
		}
	}
	m.halves = c.halves
	if m.warps == 1 {
		c.usualRest(&m)
		c = a.share(weights, m)
	}
	c.usualRows(&m)
	return m
}

// usualUses is the usual mapping of weights with several uses: as many rows a thread as
// leave registers for the sums of all uses, with so few copies and so many warps a row
// that the weights of a thread's rows fit beside them. A tile that a block makes is its
// threads' work at once: one that takes it in turns waits for memory in each of them.
// docs/bench/h200-plans.txt has the best of 60 mappings for 2, 4 and 8 uses.
func (a *analysis) usualUses(weights []*operand, uses int64, m mapping) mapping {
	total, units, tile := a.points(a.ownRows(weights).List()), int64(a.desc.Cost.Workers), a.tileRows(weights)
	for m.rows = usualRows; m.rows > 1 && m.rows*uses*distinct(weights) > usedSums; {
		m.rows /= 2
	}
	m.rows = orDefault(a.knobs.RowsPerThread, m.rows)
	m.block = usedThreads
	var c *mapped
	switch n := int64(a.knobs.ThreadsPerRow); {
	case n > 0:
		m.lanes, m.warps = min(n, m.lanes), ceil(n, m.lanes)
		c = a.share(weights, m)
	case tile > 1:
		m.block = usedTileThreads
		c = a.usedTile(weights, &m, tile)
	default:
		c = a.usedRow(weights, &m)
	}
	m.block = max(m.block, c.sharing)
	if n := int64(a.knobs.BlockSize); n > 0 {
		m.block = n * c.sharing
	}
	for m.rows > 1 && tile == 1 && a.knobs.RowsPerThread == 0 && total/(m.rows*m.block/c.sharing) < units {
		m.rows /= 2
	}
	return m
}

// usedTile shares rows of a tile: up to as many threads each as the tile leaves of a
// block, some fewer where points past the end of a row would have to be left out, and
// fewer rows a thread while it would have more weights than fit.
func (a *analysis) usedTile(weights []*operand, m *mapping, tile int64) (best *mapped) {
	warp := m.lanes
	for ; ; m.rows /= 2 {
		m.lanes = min(powerOfTwoDivisor(m.block, max(m.block*m.rows/tile, 1)), warp)
		for _, whole := range []bool{true, false} {
			for _, copies := range mapCopies {
				next := *m
				next.copies, next.whole = copies, whole
				if c := a.share(weights, next); c.held() <= usedTileWeights && (best == nil || c.sharing > best.sharing) {
					best = c
				}
			}
			if best != nil && best.sharing*usedShare >= m.lanes {
				break
			}
		}
		if best != nil {
			m.copies, m.whole = best.mapping.copies, best.mapping.whole
			return best
		}
		if m.rows == 1 || a.knobs.RowsPerThread > 0 {
			return a.share(weights, *m)
		}
	}
}

// tileRows is how many rows are one tile, which a block makes by itself; 1: none.
func (a *analysis) tileRows(weights []*operand) int64 {
	all, n := a.ownRows(weights), int64(1)
	for _, z := range a.axesOf(plan.StageAxis) {
		if all.Has(z) && a.constant(z) && a.size(z) > maxStageCopies {
			n *= a.size(z)
		}
	}
	return n
}

// usedRow shares a row: whole warps, if its copies leave them work, and more of them
// while a thread would have more weights than fit.
func (a *analysis) usedRow(weights []*operand, m *mapping) *mapped {
	c := a.share(weights, *m)
	for _, m.copies = range mapCopies {
		for _, m.whole = range []bool{true, false} {
			if c = a.share(weights, *m); c.sharing == m.lanes {
				break
			}
		}
		if c.sharing == m.lanes {
			break
		}
	}
	for m.warps < usualWarps && c.sharing == m.lanes*m.warps && c.held() > usedWeights {
		m.warps *= 2
		c = a.share(weights, *m)
	}
	return c
}

// held is how many registers the weights of a thread take, in a loop those of the next
// iteration too.
func (c *mapped) held() int64 {
	bytes, seen := int64(0), make(map[int]bool)
	for _, o := range c.weights {
		if !seen[o.slot()] {
			bytes += o.bytes
		}
		seen[o.slot()] = true
	}
	points := satMul(c.points(c.weights[0].chain), c.points(c.ownRows(c.weights).List()))
	return c.mapping.rows * c.atOnce * min(c.iterations, 2) * bytes / 4 / points
}

// usualRest is what the threads of a warp do with what is left of a row.
func (c *mapped) usualRest(m *mapping) {
	w := c.weights[0]
	left := int64(1)
	for _, i := range w.chain {
		if left = c.left(i); left > 1 {
			break
		}
	}
	points, whole := c.points(w.chain), c.sharing == int64(c.desc.WarpSize)
	if c.points(w.rows)/usualRows >= fewWarps*int64(c.desc.Cost.Workers) {
		if rows := c.storeRows(c.ownRows(c.weights)); whole && c.aheadOf(rows) && points <= aheadWeights*c.sharing {
			m.rest = 1
			for _, i := range w.chain {
				m.rest *= c.left(i)
			}
		}
		return
	}
	n := divisor(left, usualWarps)
	switch {
	case whole && (n == usualWarps || n > 2 && points > longShare*c.sharing):
		m.warps = n
	case c.dotAxis(w.chain[len(w.chain)-1]) && points*c.sumsEach(c.weights) <= heldIntegers*c.sharing:
		m.rest = n
	case c.sharing >= int64(c.desc.WarpSize):
		m.rest = powerOfTwoDivisor(left, usualWarps)
	}
}

// aheadOf reports rows of one axis that divide into groups: those of gathered matrices
// are not known before the wait.
func (c *mapped) aheadOf(rows []int) bool {
	return len(rows) == 1 && powerOfTwoDivisor(c.points(rows), usualGroups) == usualGroups
}

// usualRows is how rows are taken.
func (c *mapped) usualRows(m *mapping) {
	all := c.ownRows(c.weights)
	if c.usualTile(m) {
		return
	}
	stores := c.storeRows(all)
	i := c.lastStore(all.List())
	if i < 0 {
		return
	}
	paired := int64(1) // rows of a thread that are points of a small stage
	for _, z := range c.axesOf(plan.StageAxis) {
		if all.Has(z) && c.constant(z) {
			paired *= c.size(z)
		}
	}
	total, units, sharing := c.points(stores), int64(c.desc.Cost.Workers), c.sharing
	enough := units
	n := orDefault(c.knobs.RowsPerThread, max(usualRows/distinct(c.weights), 1))
	block := orDefault(c.knobs.BlockSize, max(usualGroups*int64(c.desc.WarpSize)/sharing, 1))
	ahead := c.loadsAhead(stores) && c.everyStore(i) && total/(n*block) > residentAhead*units
	if c.knobs.RowsPerThread == 0 && ahead {
		n = max(usualTurnRows/distinct(c.weights), 1)
	}
	n = powerOfTwoDivisor(c.size(i), max(n/paired, 1))
	least := int64(leastThreads)
	if inner := c.weights[0].chain; c.dotAxis(inner[len(inner)-1]) {
		if least = leastRounders; c.sumsEach(c.weights) == 1 {
			// One integer sum a row is little work beside rounding the activations again in
			// a second block.
			enough = units * 3 / 4
		}
	}
	for block > 4 && block*sharing > least && c.knobs.BlockSize == 0 && total/(n*block) < enough {
		block /= 2
	}
	for n > 1 && c.knobs.RowsPerThread == 0 && total/(n*block) < enough {
		n /= 2
	}
	groups := divisor(ceil(c.size(i), n), block)
	m.rows, m.block = n*paired, groups*sharing
	switch blocks := total / (n * groups); {
	case ahead:
		m.turns = ceil(blocks, residentAhead*units)
	case c.everyStore(i):
		m.turns = divisor(c.size(i)/(n*groups), blocks/(residentBlocks*units))
	}
}

// loadsAhead reports rows of which a block can load the next ones while it sums up those
// that it has: all of a row at once, and so little of it a thread that the activations
// leave registers.
func (c *mapped) loadsAhead(stores []int) bool {
	for _, w := range c.weights {
		if c.points(w.chain) > aheadWeights*c.sharing {
			return false
		}
		for _, i := range w.chain {
			if c.left(i) > 1 {
				return false
			}
		}
	}
	return len(stores) == 1
}

// usualTile takes the rows of a tile that a block makes by itself, if there is one.
// More rows a thread are fewer threads a block: with two blocks of a multiprocessor one
// computes while the other loads. A second sum of a weight takes the registers of as
// many weights.
func (c *mapped) usualTile(m *mapping) bool {
	all := c.ownRows(c.weights)
	for _, z := range c.axesOf(plan.StageAxis) {
		if all.Has(z) && c.constant(z) && c.size(z) > maxStageCopies {
			rows := tileWeights * c.sharing / (distinct(c.weights) * c.sumsEach(c.weights) * c.points(c.weights[0].chain))
			m.rows, m.block = orDefault(c.knobs.RowsPerThread, max(min(rows, usualRows), 1)), tileThreads
			return true
		}
	}
	return false
}
