package state

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
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
	if lanes <= 1 || value.Op == ir.OpMul && !inside.staged || p.foldsAlong(value, loop) {
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
	for _, load := range loads {
		if n, ok := p.strideOf(load, loop); !ok || n < -1 || n > 1 {
			return false
		}
	}
	return true
}

// strideOf is how many elements a load moves along a loop; ok is false where that changes
// on the way.
func (p *pricer) strideOf(load, loop *ir.UOp) (stride int64, ok bool) {
	step := int64(1)
	for i := len(load.Indices()) - 1; i >= 0; i-- {
		n, ok := p.coefOf(load.Indices()[i], loop)
		if !ok {
			return 0, false
		}
		stride += expr.Saturate(n, step)
		step = expr.Saturate(step, max(p.Bounds.Of(load.Src[0].Src[i]).Hi, 1))
	}
	return stride, true
}

// coefOf is how far an index moves along a loop; the high digits of a position stay.
func (p *pricer) coefOf(x, loop *ir.UOp) (coef int64, ok bool) {
	if !slices.Contains(p.Free.Of(x), loop) {
		return 0, true
	}
	form := p.Linear.Of(x)
	for _, t := range form.Terms {
		switch {
		case t.Atom == loop:
			coef += t.Coef
		case !slices.Contains(p.Free.Of(t.Atom), loop) || t.Atom.Op == ir.OpFloorDiv && !expr.HasLoad(t.Atom):
		case t.Atom.Op == ir.OpFloorMod && !p.turns(t.Atom):
			n, ok := p.coefOf(t.Atom.Src[0], loop)
			if !ok {
				return 0, false
			}
			coef += t.Coef * n
		default:
			return 0, false
		}
	}
	return coef, true
}
