package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Lanes across: a product whose sums run over ranges too short for lanes, as
// those of a convolution's window, has its lanes along the one result axis that
// belongs to the smaller operand alone (output channels). The other operand's
// elements are broadcast, its tests for padding are scalar and, where a whole
// row of results is copies of the code, known. One Zen 5 core, 64 x 16 x 14 x 14
// by 32 x 3 x 3: forward 1.2 ms (100 GFLOP/s) against 20 with lanes along k,
// input gradient 1.2 against 12, weight gradient 2.0 against 11.
//
// 64 to 64 channels of 56 x 56 by 3 x 3, ms: 28 accumulators 1.92, 14 1.37, 8 1.46; 7 x 7
// with stride 2 from 3 channels 1.87, 1.34, 1.35.
const (
	acrossSpare  = 4        // registers at least that are no accumulators
	acrossTile   = 16       // accumulators at most: see below
	acrossStage  = 64 << 10 // bytes of the smaller operand that are kept transposed
	acrossUnroll = 16       // ranges up to which a reduce is copies of the code
	acrossCopies = 256      // multiply-adds in one iteration
	acrossUnits  = 4        // work units that must remain
	manyLanes    = 4        // registers of a row of results from which its lanes do well at any size
)

// acrossPlan is what lanes across a result axis need.
type acrossPlan struct {
	operand *operand
	axis    int
	lanes   int64
	window  []int // short reduces around the sums: copies too
}

// across finds the axis for lanes of the sums around w; ok is false where lanes
// along k do well or there is no such axis.
func (p *planner) across(w *operand) (chosen acrossPlan, ok bool) {
	if p.lanesAlongSum(w) || p.lanesAlongRow(w) {
		return chosen, false
	}
	for _, i := range p.axesOf(plan.ReduceAxis) {
		if !p.plainReduce(i) || !p.constant(i) {
			return chosen, false
		}
	}
	for _, o := range p.operands {
		if o.sum != w.sum || o.rank() > 1 || len(o.reuse) == 0 || ok && o.total >= chosen.operand.total {
			continue
		}
		if i, lanes := p.acrossAxis(o); i >= 0 {
			chosen, ok = acrossPlan{operand: o, axis: i, lanes: lanes}, true
		}
	}
	return chosen, ok
}

// lanesAlongSum reports that lanes along k are many and read what is contiguous.
func (p *planner) lanesAlongSum(w *operand) bool {
	inner, lanes := w.chain[len(w.chain)-1], p.chainLanes(w.chain)
	contiguous := false
	for _, o := range p.operands {
		if o.sum != w.sum {
			continue
		}
		if p.scattered(o, w.chain, lanes) {
			return false
		}
		contiguous = contiguous || p.innerAxes(o).Has(inner)
	}
	return contiguous && lanes*2 >= lanesOf(p.desc)
}

// scattered reports an operand of which lanes along a chain would read short runs: the
// windows of a plane.
func (p *planner) scattered(o *operand, chain []int, lanes int64) bool {
	if o.rank() == packedRank {
		return false
	}
	for _, u := range o.accesses {
		run := int64(1)
		for k := len(chain) - 1; k >= 0 && run < lanes && p.stride(u, chain[k]) == run; k-- {
			run *= p.size(chain[k])
		}
		if run > 1 && run*2 < min(lanes, lanesOf(p.desc)) {
			return true
		}
	}
	return false
}

// alongWindows reports an operand of windows that lie side by side along a result axis of at
// least half a register, of which lanes along the sum would read short runs. So are images of
// which a convolution makes a few planes.
func (p *planner) alongWindows(w *operand) bool {
	i := p.innerRow(w)
	return i >= 0 && p.size(i)*2 >= lanesOf(p.desc) && p.scattered(w, w.chain, lanesOf(p.desc))
}

// matmulWindows has the positions of windows as lanes. A row of a window is copies of the code.
// One Zen 4 core, 64 planes of 56 x 56 to 3 by 3 x 3: one result after the other 573 us, lanes 344, and
// copies 162.
func (p *planner) matmulWindows(weights []*operand, w *operand) string {
	if k := w.chain[len(w.chain)-1]; p.constant(k) && p.plainReduce(k) && p.size(k)*int64(p.desc.VectorRegs) <= acrossCopies {
		p.split(plan.UNROLL, k, p.size(k))
	}
	return p.matmulColumns(weights, w)
}

// lanesAlongRow reports that an operand is contiguous along a result axis of
// many lanes.
func (p *planner) lanesAlongRow(w *operand) bool {
	i := p.innerRow(w)
	if i < 0 || !p.lanesAlongRows(w) {
		return false
	}
	return powerOfTwoDivisor(p.size(i), lanesOf(p.desc))*2 >= lanesOf(p.desc) || p.size(i) >= manyLanes*lanesOf(p.desc)
}

// chainLanes is how many lanes chain would take.
func (p *planner) chainLanes(axes []int) int64 {
	lanes := int64(1)
	for k := len(axes) - 1; k >= 0; k-- {
		v := powerOfTwoDivisor(p.size(axes[k]), lanesOf(p.desc)/lanes)
		if len(axes) == 1 {
			v = p.lanes(p.size(axes[k]), lanesOf(p.desc))
		}
		lanes *= v
		if v < p.size(axes[k]) {
			break
		}
	}
	return lanes
}

// acrossAxis is the only result axis of an operand alone, if lanes can run along it.
func (p *planner) acrossAxis(o *operand) (axis int, lanes int64) {
	rows := slices.DeleteFunc(slices.Clone(o.rows), func(i int) bool { return p.size(i) <= 1 || p.inAll(o.sum, i) })
	if len(rows) != 1 {
		return -1, 0
	}
	i := rows[0]
	if p.axes[i].Kind != plan.StoreAxis || !p.constant(i) || !p.laneSafe(i) || !p.everyStore(i) || p.tested(o.sum, i) {
		return -1, 0
	}
	register := lanesOf(p.desc)
	if p.padded(o.sum) { // each element that is tested then serves twice as many results
		register *= 2
	}
	if lanes = p.anyLanes(p.size(i), register); lanes*2 <= lanesOf(p.desc) {
		return -1, 0
	}
	return i, lanes
}

// inAll reports a result axis that all operands of a sum have: groups, or a batch.
func (a *analysis) inAll(sum *ir.UOp, axis int) bool {
	return !slices.ContainsFunc(a.operands, func(o *operand) bool { return o.sum == sum && !slices.Contains(o.rows, axis) })
}

// padded reports a sum with a condition: elements outside of the input are 0.
func (a *analysis) padded(sum *ir.UOp) bool {
	return slices.ContainsFunc(ofSum(sum), func(u *ir.UOp) bool { return u.DType == ir.Bool })
}

// tested reports that a condition inside a sum depends on an axis.
func (a *analysis) tested(sum *ir.UOp, axis int) bool {
	return slices.ContainsFunc(ofSum(sum), func(u *ir.UOp) bool { return u.DType == ir.Bool && a.free.Of(u).Has(axis) })
}

// matmulAcross runs lanes along the plan's axis and holds a tile of the other
// results in registers.
func (p *planner) matmulAcross(c acrossPlan) string {
	p.split(plan.VECTOR, c.axis, c.lanes)
	p.done[c.axis] = true
	bytes := c.lanes * 4 * p.points(c.operand.chain)
	staged := bytes <= acrossStage && !p.alongAxis(c.operand, c.axis)
	if staged {
		p.add(plan.STAGE, p.axes[c.axis].Name, 0)
	}
	for _, i := range c.window {
		p.split(plan.UNROLL, i, p.size(i))
		p.done[i] = true
	}
	tile := p.acrossResults(c)
	copies := tile
	reduces := p.axesOf(plan.ReduceAxis)
	for _, i := range slices.Backward(reduces) {
		if p.done[i] {
			continue
		}
		if p.size(i) > acrossUnroll || copies*p.size(i) > acrossCopies {
			break
		}
		p.split(plan.UNROLL, i, p.size(i))
		copies *= p.size(i)
	}
	p.acrossRolls(staged)
	p.leave(reduces)
	p.fma()
	return fmt.Sprintf("lanes %d across %s, %d results each at once, %d multiply-adds an iteration", c.lanes, p.axes[c.axis].Name, tile, copies)
}

// alongAxis reports that an operand lies contiguously along an axis.
func (p *planner) alongAxis(o *operand, axis int) bool {
	return !slices.ContainsFunc(o.accesses, func(u *ir.UOp) bool { return !p.contiguous(u).Has(axis) })
}

// acrossResults takes store axes, inner ones first and whole while they fit, as
// accumulators. Enough work units must remain.
func (p *planner) acrossResults(c acrossPlan) int64 {
	budget, tile := min(int64(p.desc.VectorRegs)-acrossSpare, acrossTile)/max(ceil(c.lanes, lanesOf(p.desc)), 1), p.points(c.window)
	stores := p.axesOf(plan.StoreAxis)
	units := p.leftAlong(stores)
	for _, i := range slices.Backward(stores) {
		if i == c.axis || !p.constant(i) || p.size(i) <= 1 || !p.everyStore(i) {
			continue
		}
		n := p.evenCopies(i, budget/tile)
		for n > 1 && units/n < acrossUnits {
			n = divisor(p.size(i), n-1)
		}
		p.split(plan.UPCAST, i, n)
		tile, units = tile*n, units/n
		if n < p.size(i) {
			break
		}
	}
	return tile
}

// evenCopies is how many points of an axis are taken at a time: a divisor, unless tiles of
// which the last one repeats some points are fewer by far.
func (p *planner) evenCopies(i int, limit int64) int64 {
	exact := divisor(p.size(i), limit)
	if limit < 1 {
		return exact
	}
	if even := evenTiles(p.size(i), limit); ceil(p.size(i), even) <= p.size(i)/exact*exactWorth/100 {
		return even
	}
	return exact
}

// acrossRolls keeps inner rests of store axes in a work unit, so that what it
// stages serves many results.
func (p *planner) acrossRolls(staged bool) {
	stores := p.axesOf(plan.StoreAxis)
	units := p.leftAlong(stores)
	for _, i := range slices.Backward(stores) {
		if p.done[i] {
			continue
		}
		p.done[i] = true
		if n := p.left(i); staged && n > 1 && units/n >= panelUnits {
			p.roll(i)
			units /= n
		}
	}
}

// tryPooled takes products inside of short reduces, such as a convolution that is
// pooled at once.
func tryPooled(a *analysis) proposal {
	sums, window := a.pooledSums()
	if len(sums) == 0 {
		return declined("no-product", "no sum stands in a short reduce")
	}
	b := *a
	b.operands = b.operandsOf(sums)
	weights := b.weights()
	if len(weights) == 0 {
		return declined("small-operand", "sums inside a short reduce read no large operand")
	}
	p := b.plan()
	c, ok := p.across(weights[0])
	if !ok {
		return declined("no-lane-axis", "no result axis belongs to one operand of %s alone", weights[0].name())
	}
	c.window = window
	how := p.matmulAcross(c)
	return p.decidedByWeight(weights[0], "pooled", how).of("%s in %d copies", b.describe(weights), b.points(window))
}

// pooledSums are the sums that stand in reduces which are no sums and short
// together, with the axes of those.
func (a *analysis) pooledSums() (sums []*ir.UOp, window []int) {
	around := make(map[*ir.UOp]analyse.RangeSet)
	inSum := make(map[*ir.UOp]bool)
	var all analyse.RangeSet
	for _, u := range slices.Backward(a.order) {
		own := around[u]
		switch {
		case analyse.IsSum(u) && !inSum[u] && !own.Empty():
			sums = append(sums, u)
			all = all.Union(own)
		case u.Op == ir.OpReduce && !analyse.IsSum(u):
			own = own.With(a.axisOf(u.ReduceRange()))
		}
		if u.Op == ir.OpStage {
			continue
		}
		for _, s := range u.Src {
			inSum[s] = inSum[s] || inSum[u] || analyse.IsSum(u)
			around[s] = around[s].Union(own)
		}
	}
	window = all.List()
	if a.points(window) > windowPoints {
		return nil, nil
	}
	return sums, window
}
