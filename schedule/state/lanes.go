package state

import (
	"slices"

	"tgc/ir"
)

// Prices are in operations of lanes: those of a loop that no lanes can share take as many
// times longer as there are lanes. Lanes run along the loop of a reduce where all that it
// reads lies side by side along it, or along a loop of the store where all that the
// kernel reads does. Tiles of products copy what lies otherwise.

// fewestLanes is the least extent of a loop of the store along which lanes run.
const fewestLanes = 4

// slowness is how many times longer the loop of a reduce takes for want of lanes.
func (p *pricer) slowness(value, loop *ir.UOp, inside *level) int64 {
	lanes := p.Opt.Profile.Lanes
	if lanes <= 1 || value.Op == ir.OpMul && !inside.staged && p.hasTiles(value, inside) || p.foldsAlong(value, loop) {
		return 1
	}
	if p.Points([]*ir.UOp{loop}) >= lanes && p.sideBySide(loadsOf(value), loop) {
		return 1
	}
	if !inside.staged {
		free := p.Free.Of(value)
		for _, c := range p.loops {
			if slices.Contains(free, c) && p.Points([]*ir.UOp{c}) >= fewestLanes && p.sideBySide(p.loads, c) {
				return 1
			}
		}
	}
	return lanes
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
	var out []*ir.UOp
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpLoad && (x.Src[0].Op == ir.OpParam || x.Src[0].Op == ir.OpValue) {
			out = append(out, x)
		}
	}
	return out
}

// sideBySide reports that every load which depends on a loop moves by an element along
// it, or stays.
func (p *pricer) sideBySide(loads []*ir.UOp, loop *ir.UOp) bool {
	return !slices.ContainsFunc(loads, func(load *ir.UOp) bool {
		n, ok := p.strideOf(load, loop)
		return !ok || n < -1 || n > 1
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
