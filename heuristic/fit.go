package heuristic

// Splits of any extent. Points are taken so many at a time, and the last take may be
// short of some: its lanes then repeat points, its threads stand idle. What that costs
// is weighed against smaller takes, of which there are more.

// exactWorth is how much cheaper, in percent of its own cost, a split with a remainder
// must be than one that divides: it has comparisons, and loads that are not aligned.
const exactWorth = 80

// takes is the cost of n points, so many at a time: each take is as long as its grains
// (a vector register, a warp, one copy of the code), and one more for what it does once.
func takes(n, each, grain int64) int64 {
	return satMul(ceil(n, each), ceil(each, grain)+1)
}

// fit is the cheapest number of points to take at a time, up to a limit: exact, which
// divides n, unless a power of two or, up to whole, all points are cheaper by far.
func fit(n, limit, grain, exact, whole int64) int64 {
	best := exact
	for each := int64(2); each <= min(limit, n); each *= 2 {
		if takes(n, each, grain) < takes(n, best, grain) {
			best = each
		}
	}
	if n <= min(limit, whole) && takes(n, n, grain) < takes(n, best, grain) {
		best = n
	}
	if takes(n, best, grain) > takes(n, exact, grain)*exactWorth/100 {
		return exact
	}
	return best
}

// lanes is how many lanes of vector registers n points take.
func (a *analysis) lanes(n, limit int64) int64 {
	register := lanesOf(a.desc)
	return fit(n, limit, register, powerOfTwoDivisor(n, limit), register)
}

// anyLanes is lanes of which a register may have a part: those of results that are
// summed for themselves.
func (a *analysis) anyLanes(n, limit int64) int64 {
	register := lanesOf(a.desc)
	return fit(n, limit, register, divisor(n, limit), register)
}

// fullLanes is lanes of which registers are full but for the last: as many as divide n points, or else one register. Four layers of 16 queries of
// 4 heads over 2,000 points on one Xeon core of 16 lanes, us: heads of 72 with 32 lanes at once 3,582, with 16 2,249; of 100 with 64 4,448, with 16
// 2,780 (of 80 2,208; docs/bench/h200-entries.txt, section 8).
func (a *analysis) fullLanes(n, limit int64) int64 {
	if lanes := a.lanes(n, limit); n%lanes == 0 {
		return lanes
	}
	return lanesOf(a.desc)
}

// copies is how many of n points are copies of the code.
func copies(n, limit int64) int64 { return fit(n, limit, 1, powerOfTwoDivisor(n, limit), limit) }

// parts is copies, or threads for each of which there is work elsewhere: a power of two.
func parts(n, limit int64) int64 { return fit(n, limit, 1, powerOfTwoDivisor(n, limit), 0) }

// run is how many of n points are a loop within a work unit.
func run(n, limit int64) int64 { return fit(n, limit, 1, divisor(n, limit), limit) }

// threads is how many of n points a block takes, a thread each.
func (a *analysis) threads(n, limit int64) int64 {
	return fit(n, limit, int64(a.desc.WarpSize), divisor(n, limit), limit)
}

// threadsBeside is threads of a block that has limit, a power of two, besides: what does not divide them makes a block of
// many times as many, or one that the device does not take.
func (a *analysis) threadsBeside(n, limit int64) int64 {
	if best := a.threads(n, limit); limit%best == 0 {
		return best
	}
	return fit(n, limit, int64(a.desc.WarpSize), powerOfTwoDivisor(n, limit), 1)
}

// Work units of a CPU have up to so many points, so that the coordinates of a unit cost little; a small kernel is
// still cut into so many.
const (
	elementwiseUnit  = 1024
	elementwiseUnits = 64
)

// unitOf is how many of some points a work unit has, lanes at least.
func unitOf(total, lanes int64) int64 {
	return min(max(total/elementwiseUnits, lanes), elementwiseUnit)
}
