package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Attention plans of a CPU: lanes along the privatised range (the output's head
// dimension) and along the range of the score's sum; query heads that share a
// cache row are lanes too, so that one exponential serves them all. Several points
// of the cache are a tile, of which the maximum is taken and the sums are rescaled
// once; that and prefetches hide the latency of max and exponential. 8 x 4 heads of
// 64 on one Zen 5 core, 4,080 positions, GB/s of 41 that can be read: two points 18,
// four 26, tiles of two, four and eight points 19, 29 and 36.
const (
	attentionLanes     = 64 // f32 lanes of one accumulator
	attentionAllLanes  = 256
	attentionCopies    = 4    // of the lanes of a score's sum
	attentionRegisters = 64   // vector registers of accumulators
	attentionPoints    = 8    // points of the cache at once
	attentionAhead     = 8192 // bytes. 8 x 2 heads of 128, 4,000 positions: 2 KiB 26 GB/s, 8 KiB 32, 16 KiB 31
)

// Attention of prompts, lanes along queries: the most elements of a result, and points of the score's sum at once. Points of
// the cache are half of the registers (their scores are sums in registers), and products of elements and points twice the
// registers' square. One Zen 4 core, ms: 16 heads of 64, 512 queries and points, 8 points 13.4, 16 12.6, 32 no less; of 80,
// causal, 4 points 12.9, 8 9.4, 16 9.1; 1,024 of 128, 4 points 107.9, 8 98.0, 16 95.0; 4 heads of 256, 4 points 51.3, 8 46.0,
// and 94.3 with lanes along elements; of the sum 2, 4 or 8 points make no difference. As x86-64-v3, of 16 registers: of 64 8
// points 23.0, 16 35.3, of 128 4 points 228, 8 257, of 256 2 points 100, 8 188, along elements 125. Elements that fill no
// tile follow: 500 points of 64 with masks in every tile take 26.1, so 13.1. Queries are turned once: gathered for every 8
// points 21.8, not 13.5 (docs/bench/attention-zen4.txt).
const (
	attentionElements = 256
	attentionSteps    = 4
)

// tryAttention recognises a tuple reduce of which some components have ranges
// of their own.
func tryAttention(a *analysis) proposal {
	tuple, private := a.privatised()
	if tuple == nil {
		return declined("no-private-range", "no tuple reduce has components over ranges of their own")
	}
	if a.desc.Kind == target.GPU {
		return gpuAttention(a, tuple, private)
	}
	p := a.plan()
	t := a.axisOf(tuple.ReduceRange())
	p.done[t] = true
	if i := p.queryLanes(tuple, private); i >= 0 {
		return p.attentionOfQueries(tuple, private, t, i)
	}
	lanes, registers := int64(1), int64(1)
	for _, i := range slices.Backward(private) {
		p.done[i] = true
		if p.axes[i].Kind != plan.StoreAxis || !p.constant(i) {
			continue
		}
		if lanes == 1 && p.laneSafe(i) {
			lanes = p.fullLanes(p.size(i), attentionLanes)
			p.split(plan.VECTOR, i, lanes)
		}
		if n := p.left(i); n > 1 && registers*n*max(lanes/lanesOf(p.desc), 1) <= attentionRegisters {
			p.split(plan.UPCAST, i, n)
			registers *= n
		}
		p.roll(i)
	}
	queries, shared := p.sharedRows(tuple, registers*max(lanes/lanesOf(p.desc), 1))
	scores := p.scoreSums(tuple)
	for _, i := range scores {
		p.sumOfRow(i, max(attentionLanes/shared, lanesOf(p.desc)), attentionCopies*shared)
	}
	p.shareRows(queries, shared, registers*lanes)
	p.pointsAtOnce(tuple, attentionPoints, 0)
	p.prefetchRows(tuple, t)
	p.fma()
	return p.decidedByTuple(tuple, "lanes %d of %s, %d sums inside the loop over %s, %d queries share a row", lanes, a.axes[private[len(private)-1]].Name, len(scores), a.axes[t].Name, shared)
}

// sumOfRow takes the elements of a sum in lanes and copies: one full register after another without a loop where the copies suffice.
func (p *planner) sumOfRow(i int, lanes, copies int64) {
	if p.size(i) > lanes*copies || p.dot(i) > 1 {
		p.chain([]int{i}, lanes, copies)
		return
	}
	p.split(plan.VECTOR, i, p.fullLanes(p.size(i), lanes))
	p.split(plan.UNROLL, i, p.left(i))
}

// pointsAtOnce takes n points of the cache together, all where they are no more, and what reduces are beside those over
// it. apart is TILE's amount where they are not all in tiles.
func (p *planner) pointsAtOnce(tuple *ir.UOp, n, apart int64) {
	t := p.axisOf(tuple.ReduceRange())
	if p.constant(t) {
		n = min(n, p.size(t))
	}
	p.split(plan.UNROLL, t, n)
	if p.constant(t) && p.size(t)%max(p.taken[t], 1) == 0 {
		apart = 0
	}
	if p.taken[t] > 1 && p.arena.MonoidOf(tuple).Rescales {
		p.add(plan.TILE, p.axes[t].Name, apart) // rescaled once for all of them
	}
	p.lightReduces()
}

// decidedByTuple is the plan of a tuple reduce, with how it takes it.
func (p *planner) decidedByTuple(tuple *ir.UOp, how string, args ...any) proposal {
	t := p.axisOf(tuple.ReduceRange())
	return p.decidedBy(t, "private-range", fmt.Sprintf(how, args...)).of("tuple reduce of %d components over up to %d points", tuple.Arg.(ir.ReduceArg).N, p.size(t))
}

// queryLanes is the axis of queries that are lanes, -1 for none: a register of them shares each row
// of the cache, and has its elements of the result in memory.
func (p *planner) queryLanes(tuple *ir.UOp, private []int) int {
	elements, own := int64(1), p.rowAxes(tuple)
	for _, i := range private {
		if p.axes[i].Kind == plan.StoreAxis && !p.constant(i) {
			return -1
		}
		elements = satMul(elements, p.size(i))
	}
	for _, i := range slices.Backward(p.axesOf(plan.StoreAxis)) {
		if p.done[i] || own.Has(i) || slices.Contains(private, i) || !p.free.Of(tuple.ReduceValues()[0]).Has(i) || !p.constant(i) {
			continue
		}
		if analyse.LanesHoldQueries(p.size(i), lanesOf(p.desc)) && elements <= attentionElements {
			return i
		}
	}
	return -1
}

// attentionOfQueries plans lanes along queries: scores, maxima and exponentials of all lanes are
// those of one register, nothing is folded, and a row of the cache is read once for all of them.
func (p *planner) attentionOfQueries(tuple *ir.UOp, private []int, t, queries int) proposal {
	lanes := lanesOf(p.desc)
	p.split(plan.VECTOR, queries, lanes)
	p.done[queries] = true
	if scores := analyse.OutsideStages(tuple.ReduceValues()[0]); len(p.readsAcross(scores, queries)) > 0 {
		p.add(plan.STAGE, p.axes[queries].Name, 0) // turned once, not gathered for every few points of the cache
	}
	elements := int64(1)
	for _, i := range private {
		if p.done[i] = true; p.axes[i].Kind == plan.StoreAxis {
			p.split(plan.UPCAST, i, p.size(i))
			elements *= p.size(i)
		}
	}
	for _, i := range p.scoreSums(tuple) {
		p.split(plan.UNROLL, i, powerOfTwoDivisor(p.size(i), attentionSteps))
	}
	registers := int64(max(p.desc.VectorRegs, 2))
	p.pointsAtOnce(tuple, powerOfTwo(2*registers*registers/elements, 1, registers/2), 1)
	p.fma()
	return p.decidedByTuple(tuple, "%d queries in lanes, %d points of %s at once", lanes, max(p.taken[t], 1), p.axes[t].Name)
}

// rowAxes are the axes on which the rows of the cache depend: those of the values that are summed.
func (p *planner) rowAxes(tuple *ir.UOp) (own analyse.RangeSet) {
	for _, v := range tuple.ReduceValues()[1:] {
		own = own.Union(p.free.Of(v))
	}
	return own
}

// privatised finds the first tuple reduce with axes that only some components
// have.
func (a *analysis) privatised() (tuple *ir.UOp, private []int) {
	for _, u := range a.order {
		if !analyse.IsTuple(u) {
			continue
		}
		values := u.ReduceValues()
		var own analyse.RangeSet
		for _, v := range values {
			own = own.Union(a.free.Of(v))
		}
		own = own.Minus(a.free.Of(values[0])).Without(a.axisOf(u.ReduceRange()))
		if !own.Empty() {
			return u, own.List()
		}
	}
	return nil, nil
}

// scoreSums are the axes of sums inside a tuple, innermost first, over which
// all reads are contiguous.
func (p *planner) scoreSums(tuple *ir.UOp) []int {
	var out []int
	for _, v := range tuple.ReduceValues() {
		for _, u := range ir.Toposort(v) {
			if !analyse.IsSum(u) {
				continue
			}
			i := p.axisOf(u.ReduceRange())
			if !slices.Contains(out, i) && p.constant(i) && p.laneSafe(i) && p.unitStrideIn(u, i) {
				out = append(out, i)
			}
			p.done[i] = true
		}
	}
	return out
}

// unitStrideIn is unitStride of the loads below a node; scales of groups stay at an element for a while.
func (a *analysis) unitStrideIn(root *ir.UOp, axis int) bool {
	return !analyse.Any(root, func(u *ir.UOp) bool {
		return u.Op == ir.OpLoad && u.Src[0].Op != ir.OpTable && a.dependsByIndex(u, axis) && a.stride(u, axis) != 1 && !a.stays(u, axis)
	})
}

// sharedRows chooses points of a store axis on which the values of the privatised components do not depend: grouped query
// heads read one row. registers is what one of them takes.
func (p *planner) sharedRows(tuple *ir.UOp, registers int64) (queries int, n int64) {
	values, own := tuple.ReduceValues(), p.rowAxes(tuple)
	stores := p.axesOf(plan.StoreAxis)
	units := p.points(lists.Filter(stores, func(i int) bool { return p.constant(i) && !p.done[i] }))
	for _, i := range stores {
		if p.done[i] || own.Has(i) || !p.free.Of(values[0]).Has(i) || !p.constant(i) {
			continue
		}
		if n := p.queriesAtOnce(units/p.size(i), p.size(i), max(attentionRegisters/registers, 1)); n > 1 {
			return i, n
		}
	}
	return -1, 1
}

// shareRows takes queries together, as lanes where they are few. lanes is what one of them takes already.
func (p *planner) shareRows(queries int, n, lanes int64) {
	switch {
	case queries < 0:
	case lanes*n <= attentionAllLanes && n&(n-1) == 0:
		p.split(plan.VECTOR, queries, n)
	default:
		p.split(plan.UPCAST, queries, n)
	}
}

// queriesAtOnce is how many queries of each of some heads share a row of the cache: those whose work units take the least time, a row
// of which costs about as much as a query. Twelve queries of two heads of 128 on one Zen 5 core: alone 178 us, two at once 124.
func (p *planner) queriesAtOnce(heads, queries, limit int64) int64 {
	best, least := int64(1), int64(0)
	for n := int64(1); n <= min(queries, limit); n++ {
		if time := ceil(heads*ceil(queries, n), int64(max(p.desc.Cost.Workers, 1))) * (1 + n); n == 1 || time < least {
			best, least = n, time
		}
	}
	return best
}

// prefetchRows prefetches the large buffers that the loop over a tuple's range
// streams.
func (p *planner) prefetchRows(tuple *ir.UOp, t int) {
	if p.desc.PrefetchBytes == 0 {
		return
	}
	seen := make(map[string]bool)
	for _, u := range ir.Toposort(tuple) {
		if !isAccess(u) || !p.free.Of(u).Has(t) {
			continue
		}
		o := operand{param: u.Src[0]}
		if bytes := bytesOf(o.param, p.points(p.free.Of(u).List())); bytes >= largeBytes && !seen[o.name()] {
			seen[o.name()] = true
			p.add(plan.PREFETCH, o.name(), attentionAhead)
		}
	}
}
