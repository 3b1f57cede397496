package emit

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// cuts: what a pointwise kernel reads over and over along a loop, x[r%m], or around an end, x[(r+c)%m], lies side by side but
// where the position turns. So that lanes of a CPU load it and divide no position,
//
//	for r<n*m: y[r] = x[r/m, r%m]    ->  for q<n, t<m: y[q*m+t] = x[q, t]
//	for r<n:   y[r] = x[(r+c)%m]     ->  for r<n: y[r] = where(r+c<m, x[r+c], x[r+c-m])

// CutLoops writes kernels without positions that turn along lanes.
func CutLoops(s *state.State) {
	eachWritten(s, cutLoops, "lanes read side by side")
	eachWritten(s, chooseTurns, "lanes read side by side up to where a position turns")
}

// cutLoops cuts the loops of a kernel of which it reads the digits.
func cutLoops(s *state.State, sink *ir.UOp) *ir.UOp {
	if !isPointwise(sink) {
		return sink
	}
	for _, r := range sink.Src[0].Ranges() {
		if m := digitOf(s, sink, r); m > 0 {
			return cutLoops(s, cutLoop(s, sink, r, m))
		}
	}
	return sink
}

// isPointwise reports a kernel without reduces and packed weights whose stores have the same loops.
func isPointwise(sink *ir.UOp) bool {
	loops := sink.Src[0].Ranges()
	if slices.ContainsFunc(sink.Src, func(store *ir.UOp) bool { return !slices.Equal(store.Ranges(), loops) }) {
		return false
	}
	return !slices.ContainsFunc(ir.Toposort(sink), func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce || u.Op == ir.OpStage || u.Op == ir.OpField
	})
}

// digitOf is the extent of the one lower digit of a loop that a kernel asks for, 0 where it asks for none, for several, or for one
// that has no lanes.
func digitOf(s *state.State, sink, r *ir.UOp) int64 {
	n, constant := r.Src[0].Int()
	digit := int64(0)
	for _, store := range sink.Src {
		if slices.ContainsFunc(store.Indices(), func(x *ir.UOp) bool { return x != r && slices.Contains(ir.Toposort(x), r) }) {
			return 0 // stored in digits, too
		}
	}
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpFloorMod && u.Op != ir.OpFloorDiv || u.Src[0] != r {
			continue
		}
		m, known := u.Src[1].Int()
		if !known || digit > 0 && m != digit {
			return 0
		}
		digit = m
	}
	// Whole iterations of lanes are within a digit that they divide.
	if !constant || digit < s.Opt.Profile.Lanes || n%digit != 0 || n == digit || digit%(vectorsAtOnce*s.Opt.Profile.Lanes) == 0 || !slices.ContainsFunc(ir.Toposort(sink), func(u *ir.UOp) bool { return asksApart(u, r) }) {
		return 0
	}
	return digit
}

// asksApart reports a load at one digit of a loop without the other beside it: both together lie side by side.
func asksApart(load, r *ir.UOp) bool {
	if load.Op != ir.OpLoad {
		return false
	}
	index := load.Indices()
	digit := func(k int, op ir.Op) bool {
		return k >= 0 && k < len(index) && index[k].Op == op && index[k].Src[0] == r
	}
	for k := range index {
		if digit(k, ir.OpFloorMod) && !digit(k-1, ir.OpFloorDiv) || digit(k, ir.OpFloorDiv) && !digit(k+1, ir.OpFloorMod) {
			return true
		}
	}
	return false
}

// cutLoop writes the kernel with a loop over each digit of r.
func cutLoop(s *state.State, sink, r *ir.UOp, m int64) *ir.UOp {
	d := digitLoops(s, sink, r, m)
	stores := make([]*ir.UOp, len(sink.Src))
	for i, store := range sink.Src {
		stored := 2 + len(store.Indices())
		src := slices.Clone(store.Src[:stored])
		for k := 1; k < stored; k++ {
			src[k] = s.Simplify(s.Substitute(src[k], d.with))
		}
		stores[i] = s.A.Make(ir.OpStore, store.DType, store.Arg, slices.Concat(src, d.instead(store.Ranges(), r))...)
	}
	return s.A.With(sink, stores)
}

// digits are loops over the two digits of another one.
type digits struct {
	high, low *ir.UOp
	with      map[*ir.UOp]*ir.UOp // the loop: its position by them
}

// digitLoops are loops over the digits of r, of which the lower one has m points.
func digitLoops(s *state.State, sink, r *ir.UOp, m int64) digits {
	n, _ := r.Src[0].Int()
	free := 0 // a number that no range of the kernel has
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpRange {
			free = max(free, expr.RangeID(u)+1)
		}
	}
	high, low := s.A.Range(expr.RangeID(r), s.A.Index(n/m)), s.A.Range(free, s.A.Index(m))
	return digits{high, low, map[*ir.UOp]*ir.UOp{r: s.A.Add(s.A.Mul(high, s.A.Index(m)), low)}}
}

// instead lists loops with those of the digits in place of r.
func (d *digits) instead(loops []*ir.UOp, r *ir.UOp) []*ir.UOp {
	at := slices.Index(loops, r)
	return slices.Replace(slices.Clone(loops), at, at+1, d.high, d.low)
}

// Bounds of choices where positions turn.
const (
	mostTurns  = 2   // along a loop: each time is another load
	mostChosen = 128 // nodes of what is read, in all forms
)

// chooseTurns writes what is read at p%m, where p goes on by one along a loop and turns at a few places, as a choice of what
// is read at p, p-m, .. Of a pointwise kernel the loop is the innermost one, and what is read has the masks around a load,
// which may ask for p%m, too; of others it is any, and a load. Factors of products stay what tiles know.
func chooseTurns(s *state.State, sink *ir.UOp) *ir.UOp {
	nodes, loops := ir.Toposort(sink), sink.Src[0].Ranges()
	pointwise := isPointwise(sink)
	if pointwise && len(loops) == 0 || slices.ContainsFunc(nodes, func(u *ir.UOp) bool { _, _, product := s.FactorRanges(u); return product }) {
		return sink
	}
	for _, u := range slices.Backward(nodes) { // masks before the loads in them
		if !isRead(u) || !pointwise && u.Op != ir.OpLoad {
			continue
		}
		for _, position := range ir.Toposort(u) {
			if !turns(s, position) || pointwise && !(s.DependsOn(position, loops[len(loops)-1]) && readsAlong(u, position)) || !pointwise && u.Src[len(u.Src)-1] != position {
				continue
			}
			chosen := atTurns(s, u, position)
			if len(ir.Toposort(chosen)) > mostChosen {
				continue
			}
			return chooseTurns(s, s.A.Rebuild(sink, func(x *ir.UOp, _ []*ir.UOp) *ir.UOp {
				if x == u {
					return chosen
				}
				return nil
			}))
		}
	}
	return sink
}

// readsAlong reports a read whose loads have a position in their last index: they go on along it.
func readsAlong(u, position *ir.UOp) bool {
	return analyse.Any(u, func(load *ir.UOp) bool {
		return load.Op == ir.OpLoad && slices.Contains(ir.Toposort(load.Src[len(load.Src)-1]), position)
	})
}

// isRead reports a load of a buffer, or a choice of such and numbers.
func isRead(u *ir.UOp) bool {
	switch u.Op {
	case ir.OpLoad:
		return u.Src[0].Op == ir.OpParam && len(u.Indices()) > 0 && !isPacked(u.Src[0])
	case ir.OpWhere:
		either := func(x *ir.UOp) bool { return x.Op == ir.OpConst || isRead(x) }
		return either(u.Src[1]) && either(u.Src[2]) && !(u.Src[1].Op == ir.OpConst && u.Src[2].Op == ir.OpConst)
	}
	return false
}

// goesOn reports a position that moves by one along a loop, or back.
func goesOn(s *state.State, p *ir.UOp) bool {
	return slices.ContainsFunc(s.Linear.Of(p).Terms, func(t ir.Term) bool {
		return t.Atom.Op == ir.OpRange && (t.Coef == 1 || t.Coef == -1)
	})
}

// turns reports a position modulo a constant that goes on by one along a loop, or back, and turns at a few places.
func turns(s *state.State, index *ir.UOp) bool {
	if index.Op != ir.OpFloorMod {
		return false
	}
	m, constant := index.Src[1].Int()
	p := index.Src[0]
	if !constant || m < s.Opt.Profile.Lanes || p.Op != ir.OpAdd || !goesOn(s, p) {
		return false
	}
	first, last := turnsOf(s, p, m)
	return last-first <= mostTurns
}

// turnsOf is how often a position has turned at its least and at its largest.
func turnsOf(s *state.State, p *ir.UOp, m int64) (first, last int64) {
	bounds := s.Bounds.Of(p)
	floor := func(n int64) int64 { return (n - (n%m+m)%m) / m }
	return floor(bounds.Lo), floor(bounds.Hi)
}

// atTurns is an expression with a position p%m as a choice of forms at p less a multiple of m.
func atTurns(s *state.State, of, position *ir.UOp) *ir.UOp {
	p, a := position.Src[0], s.A
	m, _ := position.Src[1].Int()
	first, last := turnsOf(s, p, m)
	var choice *ir.UOp
	for turn := last; turn >= first; turn-- {
		at := s.Substitute(of, map[*ir.UOp]*ir.UOp{position: s.Simplify(a.Sub(p, a.Index(turn*m)))})
		if choice == nil {
			choice = at
			continue
		}
		choice = a.Where(s.Simplify(a.Lt(p, a.Index((turn+1)*m))), at, choice)
	}
	return choice
}
