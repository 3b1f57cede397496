package state

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/packed"
	"tgc/schedule/expr"
)

// Prices are in operations of lanes: those of a loop that no lanes can share take as many
// times longer as there are lanes. Lanes run along the loop of a reduce where all that it
// reads lies side by side along it, or along a loop of the store; where what the kernel reads
// lies otherwise, each lane loads for itself. Tiles of products copy what lies otherwise. What
// comes after a reduce with lanes of its own is done for one point after the other.

// fewestLanes is the least extent of a loop of the store along which lanes run.
const fewestLanes = 4

// windowStride is how many elements apart the reads of neighbouring points of the store may
// lie: a register or two hold them.
const windowStride = 2

// takeLanes says how much longer the loop of a reduce takes for want of lanes, or along which
// loop of the store it has them though what it reads lies elsewhere.
func (p *pricer) takeLanes(value, loop *ir.UOp, inside *level) {
	lanes := p.Opt.Profile.Lanes
	if lanes <= 1 || p.foldsAlong(value, loop) || p.lanesAlong(value, loop) {
		return
	}
	if value.Op == ir.OpMul && !inside.staged && inside.reuse > 1 {
		if p.rowPoints() < fewestLanes && slices.Contains(p.Free.Of(value), p.row) {
			inside.slow = lanes // lanes of a tile run along the last loop
		}
		return
	}
	if inside.staged {
		if !p.ReadsRecords(value) { // whose rows are the lanes
			inside.slow = lanes
		}
		return
	}
	c, _ := p.lanesOfResults(value)
	if c == nil {
		inside.slow = lanes
	}
	inside.lanes = c
}

// ReadsRecords reports an expression of packed weights of which rows are interleaved.
func (s *State) ReadsRecords(value *ir.UOp) bool {
	return s.Opt.Profile.RecordRows > 0 && analyse.Any(value, func(u *ir.UOp) bool {
		return u.Op == ir.OpField && packed.InRecords(u, int(s.Opt.Profile.RecordBits))
	})
}

// takeStageLanes is takeLanes for the last loop of a stage.
func (p *pricer) takeStageLanes(stage *ir.UOp, inside *level) {
	last := stage.Src[len(stage.Src)-1]
	if lanes := p.Opt.Profile.Lanes; p.Height(stage.Src[0]) == 0 && !p.sideBySide(loadsOf(stage.Src[0]), last, 1) {
		inside.slow = lanes
	}
}

// lanesAlong reports that lanes run along the loop of a reduce.
func (p *pricer) lanesAlong(value, loop *ir.UOp) bool {
	return p.Points([]*ir.UOp{loop}) >= p.Opt.Profile.Lanes && p.sideBySide(loadsOf(value), loop, 1)
}

// lanesOfResults is the innermost loop of the store on which a value depends, best one whose
// neighbours all that the kernel reads has side by side.
func (p *pricer) lanesOfResults(value *ir.UOp) (loop *ir.UOp, near bool) {
	free := p.Free.Of(value)
	for _, c := range p.loops {
		switch n := p.Points([]*ir.UOp{c}); {
		case n > 1 && !slices.Contains(free, c):
			loop, near = nil, false // its points share the value
			continue
		case n < fewestLanes:
			continue
		}
		if p.sideBySide(p.loads, c, windowStride) {
			loop, near = c, true
		} else if !near {
			loop = c
		}
	}
	return loop, near
}

// rowOf is the innermost loop of the store with more than one point.
func (p *pricer) rowOf() (row *ir.UOp) {
	for _, r := range p.loops {
		if p.Points([]*ir.UOp{r}) > 1 {
			row = r
		}
	}
	return row
}

// rowPoints is the number of its points, many where there is no such loop.
func (p *pricer) rowPoints() int64 {
	if p.row == nil {
		return expr.ManyOps
	}
	return p.Points([]*ir.UOp{p.row})
}

// slowAfter is how many times longer what is done at the points of a row after the reduces takes
// for want of lanes: each point has a reduce of its own whose lanes run along its own loop,
// there are too few, or terms are scattered over them.
func (p *pricer) slowAfter(body *ir.UOp) int64 {
	if p.row == nil || p.Opt.Profile.Lanes <= 1 || p.Height(body) == 0 {
		return 1
	}
	if p.scatter != nil || p.rowPoints() < fewestLanes {
		return p.Opt.Profile.Lanes
	}
	if _, near := p.lanesOfResults(body); near {
		return 1
	}
	var seen ir.Visited
	var folds func(u *ir.UOp) bool
	folds = func(u *ir.UOp) bool {
		if len(u.Src) == 0 || u.Op == ir.OpStage || !seen.Add(u) {
			return false
		}
		if u.Op == ir.OpReduce && slices.Contains(p.Free.Of(u), p.row) && slices.ContainsFunc(u.ReduceValues(), func(v *ir.UOp) bool { return p.lanesAlong(v, u.ReduceRange()) }) {
			return true
		}
		return slices.ContainsFunc(u.Src, folds)
	}
	if folds(body) {
		return p.Opt.Profile.Lanes
	}
	return 1
}

// gathered is how many loads a load is: where the neighbour in lanes reads elsewhere, each of
// them has one of its own.
func (p *pricer) gathered(load *ir.UOp, at *level) int64 {
	loop := at.lanes
	if at.loop == nil {
		loop = p.row
	}
	if loop == nil || at.slow > 1 || p.Opt.Profile.Lanes <= 1 || !isRead(load) {
		return 1
	}
	n, ok := p.strideOf(load, loop)
	masked := p.leavesAlong(load, loop)
	if ok && p.pointwise && at.loop == nil && (n < -1 || n > 1) {
		if loads := p.tileLoads(load, masked); loads > 0 {
			return min(loads, p.Opt.Profile.Lanes)
		}
	}
	switch {
	case !ok && p.pointwise && at.loop == nil && p.turnsAlong(load, loop):
		return 2 // what lies before the turn, and behind it
	case !ok || n < -windowStride || n > windowStride || masked && (n < -1 || n > 1):
		return p.Opt.Profile.Lanes
	case n < 0 || n > 1 || masked:
		return 2 // the lanes change places, or have a mask
	}
	return 1
}

// turnsAlong reports a load that runs along a loop in its last index, as a position that turns:
// cut-loops writes it as a choice of loads side by side.
func (p *pricer) turnsAlong(load, loop *ir.UOp) bool {
	indices := load.Indices()
	last := len(indices) - 1
	if last < 0 || p.Opt.Off.Has(CutLoops) || !p.turns(indices[last]) || !slices.Contains(p.Free.Of(indices[last]), loop) {
		return false
	}
	if slices.ContainsFunc(indices[:last], func(x *ir.UOp) bool { return slices.Contains(p.Free.Of(x), loop) }) {
		return false
	}
	n, ok := p.coefOf(indices[last].Src[0], loop)
	return ok && n >= -1 && n <= 1
}

// tileLoads is how many loads of a lane each costs a tile of a transpose, and maskedTileLoads one
// of which some elements may be out of bounds: 256 x 256 f32 of a Zen 4 core, in L2, 8 us and 25
// where gathered lanes take 58 and a copy 5.
const (
	tileLoads       = 2
	maskedTileLoads = 8
)

// tileBytes is the least that a tile reads side by side.
const tileBytes = 16

// tileLoads is how many loads of a lane an element costs that strides along the lanes of a kernel
// without reduces, masked or not, and has its neighbours along another loop: the lanes of both are
// turned in registers. 0: there is no such loop.
func (p *pricer) tileLoads(load *ir.UOp, masked bool) int64 {
	for _, r := range p.loops {
		n, ok := p.strideOf(load, r)
		switch {
		case !ok || n != 1 || p.Points([]*ir.UOp{r})*int64(load.DType.Size()) < tileBytes:
		case masked || p.leavesAlong(load, r):
			return maskedTileLoads
		default:
			return tileLoads
		}
	}
	return 0
}

// leavesAlong reports a load that may be out of bounds at some points of a loop.
func (p *pricer) leavesAlong(load, loop *ir.UOp) bool {
	for i, x := range load.Indices() {
		if slices.Contains(p.Free.Of(x), loop) && p.leaves(x, load.Src[0].Src[i]) {
			return true
		}
	}
	return false
}

// isRead reports a load of a buffer or value.
func isRead(u *ir.UOp) bool {
	return u.Op == ir.OpLoad && (u.Src[0].Op == ir.OpParam || u.Src[0].Op == ir.OpValue)
}

// foldsAlong reports a reduce for every point of a loop: what else happens there is little
// beside it.
func (p *pricer) foldsAlong(value, loop *ir.UOp) bool {
	return p.Height(value) > 0 && slices.ContainsFunc(ir.Toposort(value), func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce && slices.Contains(p.Free.Of(u), loop)
	})
}

// loadsOf lists the reads of buffers and values in an expression.
func loadsOf(u *ir.UOp) []*ir.UOp {
	return lists.Filter(ir.Toposort(u), isRead)
}

// sideBySide reports that every load which depends on a loop moves by few elements along
// it, or stays.
func (p *pricer) sideBySide(loads []*ir.UOp, loop *ir.UOp, most int64) bool {
	return !slices.ContainsFunc(loads, func(load *ir.UOp) bool {
		n, ok := p.strideOf(load, loop)
		return !ok || n < -most || n > most
	})
}

// strideOf is how many elements a load moves along a loop; ok is false where that changes
// on the way.
func (p *pricer) strideOf(load, loop *ir.UOp) (stride int64, ok bool) {
	if !slices.Contains(p.Free.Of(load), loop) {
		return 0, true
	}
	return p.coefOf(p.flat(load), loop)
}

// flat is the place of a load in memory: two indices that are the digits of one position
// are that position again.
func (s *State) flat(load *ir.UOp) *ir.UOp {
	if known := s.flatMemo[load]; known != nil {
		return known
	}
	sum := s.A.Index(0)
	for i, x := range load.Indices() {
		extent := max(s.Bounds.Of(load.Src[0].Src[i]).Hi, 1)
		sum = s.A.Add(s.A.Mul(sum, s.A.Index(extent)), x)
	}
	s.flatMemo[load] = s.Simplify(sum)
	return s.flatMemo[load]
}

// coefOf is how far a position moves along a loop. Its high digits move now and then, which
// lanes do not, and its low ones move on, if they do so for some vectors at a time.
func (p *pricer) coefOf(x, loop *ir.UOp) (coef int64, ok bool) {
	if !slices.Contains(p.Free.Of(x), loop) {
		return 0, true
	}
	form := p.Linear.Of(x)
	for _, t := range form.Terms {
		switch {
		case t.Atom == loop:
			coef += t.Coef
		case !slices.Contains(p.Free.Of(t.Atom), loop):
		case t.Atom.Op == ir.OpFloorMod && !p.turns(t.Atom):
			n, ok := p.coefOf(t.Atom.Src[0], loop)
			if !ok || !p.isLongRun(t.Atom.Src[1], n) {
				return 0, false
			}
			coef += t.Coef * n
		case t.Atom.Op == ir.OpFloorDiv:
			if n, ok := p.coefOf(t.Atom.Src[0], loop); !ok || !p.isLongRun(t.Atom.Src[1], n) {
				return 0, false
			}
		default:
			return 0, false
		}
	}
	return coef, true
}

// isLongRun reports that digits up to n, at so many a step, go on for some vectors.
func (p *pricer) isLongRun(n *ir.UOp, step int64) bool {
	most, constant := n.Int()
	return constant && most >= 2*p.Opt.Profile.Lanes*max(step, -step, 1)
}
