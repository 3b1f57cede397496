package emit

import (
	"slices"

	"tgc/ir"
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
	n, _ := r.Src[0].Int()
	high, low := s.A.Range(expr.RangeID(r), s.A.Index(n/m)), s.A.Range(freeID(sink), s.A.Index(m))
	with := map[*ir.UOp]*ir.UOp{r: s.A.Add(s.A.Mul(high, s.A.Index(m)), low)}
	stores := make([]*ir.UOp, len(sink.Src))
	for i, store := range sink.Src {
		stored := 2 + len(store.Indices())
		src := slices.Clone(store.Src[:stored])
		for k := 1; k < stored; k++ {
			src[k] = s.Simplify(s.Substitute(src[k], with))
		}
		loops, at := store.Ranges(), slices.Index(store.Ranges(), r)
		stores[i] = s.A.Make(ir.OpStore, store.DType, store.Arg, slices.Concat(src, slices.Replace(slices.Clone(loops), at, at+1, high, low))...)
	}
	return s.A.With(sink, stores)
}

// freeID is a number that no loop of a kernel has.
func freeID(sink *ir.UOp) int {
	id := 0
	for _, r := range sink.Src[0].Ranges() {
		id = max(id, expr.RangeID(r)+1)
	}
	return id
}

// mostTurns is how often a position may turn along a loop: each time is a load more.
const mostTurns = 2

// chooseTurns reads x[p%m], where p turns along a loop at a few places, at p, p-m, .. Factors of products stay what tiles know.
func chooseTurns(s *state.State, sink *ir.UOp) *ir.UOp {
	nodes := ir.Toposort(sink)
	if slices.ContainsFunc(nodes, func(u *ir.UOp) bool { _, _, product := s.FactorRanges(u); return product }) {
		return sink
	}
	for _, u := range nodes {
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam || isPacked(u.Src[0]) {
			continue
		}
		k := len(u.Indices()) - 1
		if k < 0 || !turns(s, u.Indices()[k]) {
			continue
		}
		return chooseTurns(s, s.A.Rebuild(sink, func(x *ir.UOp, src []*ir.UOp) *ir.UOp {
			if x == u {
				return atTurns(s, x, k)
			}
			return nil
		}))
	}
	return sink
}

// turns reports a position modulo a constant that goes on by one along a loop, and turns at a few places.
func turns(s *state.State, index *ir.UOp) bool {
	if index.Op != ir.OpFloorMod {
		return false
	}
	m, constant := index.Src[1].Int()
	p := index.Src[0]
	if !constant || m < s.Opt.Profile.Lanes || p.Op != ir.OpAdd || !slices.ContainsFunc(p.Src, func(x *ir.UOp) bool { return x.Op == ir.OpRange }) {
		return false
	}
	bounds := s.Bounds.Of(p)
	return bounds.Lo >= 0 && bounds.Hi/m-bounds.Lo/m <= mostTurns
}

// atTurns is a load at index k, p%m, as a choice of loads at p less a multiple of m.
func atTurns(s *state.State, load *ir.UOp, k int) *ir.UOp {
	p, a := load.Indices()[k].Src[0], s.A
	m, _ := load.Indices()[k].Src[1].Int()
	bounds := s.Bounds.Of(p)
	var choice *ir.UOp
	for turn := bounds.Hi / m; turn >= bounds.Lo/m; turn-- {
		src := slices.Clone(load.Src)
		src[1+k] = s.Simplify(a.Sub(p, a.Index(turn*m)))
		at := a.With(load, src)
		if choice == nil {
			choice = at
			continue
		}
		choice = a.Where(s.Simplify(a.Lt(p, a.Index((turn+1)*m))), at, choice)
	}
	return choice
}
