package state

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
)

// level is a place in a loop nest.
type level struct {
	around *level
	loop   *ir.UOp // nil for places outside of all reduces and stages
	times  int64   // that it is reached
	front  bool    // before the units
	reuse  int64   // of what is loaded here
	slow   int64   // how many times longer operations take here; 0: as long as anywhere
	lanes  *ir.UOp // loop of the store along which they run; nil: another, or none
	binder *ir.UOp // that has the loop
	staged bool    // inside a stage
	far    bool    // what is loaded here each block loads for itself
	done   ir.Visited
}

// pricer walks the expression of one kernel.
type pricer struct {
	*State
	untiled bool      // tuples have no tiles
	units   []*ir.UOp // loops of the store that work units take
	staged  []*ir.UOp // loops that stages depend on: each point is a unit of its own
	tuples  []*ir.UOp // loops that stages inside of tuples depend on
	loops   []*ir.UOp // all of them
	roots   map[rootKey]*level
	inner   map[levelKey]*level
	loads   []*ir.UOp
	row     *ir.UOp // the innermost loop of the store
	slow    int64   // how many times longer its points take after the reduces
	shared  int64   // by all units, in operations

	plain     bool      // products of matrices that matrix instructions cannot take
	rows      []*ir.UOp // loops that their tiles could lie along
	pointwise bool      // the kernel has neither reduces nor stages

	scatter *analyse.Scatter // nil: every fold looks at all its terms
	point   *ir.UOp          // the loop over its points
	front   int64            // of each worker
}

type rootKey struct {
	times, slow int64
	front       bool
}

// levelKey is a loop of a reduce or stage: reduces side by side share no loop yet.
type levelKey struct {
	around       *level
	binder, loop *ir.UOp
}

// add counts operations at a place.
func (p *pricer) add(at *level, ops int64) { p.count(at, expr.Saturate(at.times, ops)) }

func (p *pricer) count(at *level, n int64) {
	n = expr.Saturate(n, max(at.slow, 1))
	if at.front {
		p.front = sum(p.front, n)
	} else {
		p.shared = sum(p.shared, n)
	}
}

// inside is the place in the loops of a reduce or stage.
func (p *pricer) inside(binder *ir.UOp, at *level, loops []*ir.UOp, reuse int64, staged bool) *level {
	for _, r := range loops {
		key := levelKey{at, binder, r}
		if p.inner[key] == nil {
			p.inner[key] = &level{around: at, loop: r, times: expr.Saturate(at.times, p.Points([]*ir.UOp{r})), front: at.front, reuse: reuse, binder: binder, staged: staged}
		}
		at = p.inner[key]
	}
	return at
}

// leaves reports an index that may be out of bounds, where a condition keeps what is read
// from being used.
func (p *pricer) leaves(x, extent *ir.UOp) bool {
	b := p.Bounds.Of(x)
	n, constant := extent.Int()
	return b.Lo < 0 || constant && b.Hi >= n
}

// turns reports a position on a ring that begins anywhere but where it is cut.
func (p *pricer) turns(x *ir.UOp) bool {
	if x.Op != ir.OpFloorMod {
		return false
	}
	n, constant := x.Src[1].Int()
	return constant && n > 0 && p.Linear.Of(x.Src[0]).Const%n != 0
}

func sum(x, y int64) int64 { return min(x+y, expr.ManyOps) }
