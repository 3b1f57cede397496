package shape

import (
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// The end of an axis that a split does not divide. Where the low sub-axes up to the
// highest lane (of a sum, or along which a window moves: or copy) are a tile of T elements, and the axis has N of at
// least T, the last tile starts earlier, at N-T:
//
//	element = min(T*tile, N-T) + element of the tile
//
// Every element of a tile then exists, all of a tile are side by side, and loads and
// stores of lanes need no masks. The last tile repeats elements of the one before it.
// A store writes the same value again; one that reads what its kernel writes leaves
// them out, as does a sum. To the largest or smallest element they make no difference.
// A tile of matrix instructions may have more than N elements: those past the end repeat
// the last one.
//
// On a CPU a loop over tiles of a reduce ends before the last one, which follows it: only
// there elements are left out. Elsewhere an element past the end is left out by comparison,
// and what it reads is kept in bounds: where low sub-axes divide the extent, lanes say, the
// comparison is one for all of their elements. A stage has elements past its end, which
// nobody reads: the last ones again.

// tileElements is T of an axis that is split into sub-axes, low to high; 0 where its
// tiles cannot start anywhere. The tiles of matrix instructions are theirs.
func (st *State) tileElements(p Axis, subAxes []SubAxis) int64 {
	n, constant := p.Axis.Size()
	matrix := st.has(plan.Matrix)
	if !constant || p.Dot || p.Pack || p.Axis.Kind == plan.StageAxis || matrix && p.Tile > 0 {
		return 0
	}
	tile := int64(0)
	for _, d := range subAxes {
		copies := d.Role == plan.Unroll && (p.Axis.Kind == plan.ReduceAxis || st.has(plan.Tiled) || st.movesWindow(p.Axis.Range)) && !matrix
		if d.Role == plan.Lane || d.Role == plan.Matrix || copies {
			m, _ := d.Range.Src[0].Int()
			tile = d.Stride * m
		}
	}
	if matrix && plan.IsMatrixSide(p.Segments) {
		tile = p.Segments[0].Size * p.Segments[1].Size
	}
	if tile > n && !plan.IsMatrixSide(p.Segments) {
		return 0
	}
	return tile
}

// movesWindow reports a loop that moves a window: an index has it beside that of a reduce.
// Copies of the loop's body past the end would be brought back into the buffer at every
// point of the window.
func (st *State) movesWindow(loop *ir.UOp) bool {
	if st.Desc.Kind == target.GPU {
		return false
	}
	return analyse.Any(st.Sink, func(u *ir.UOp) bool {
		return u.Op == ir.OpLoad && slices.ContainsFunc(u.Indices(), func(x *ir.UOp) bool {
			ranges := analyse.RangesIn(x)
			return slices.Contains(ranges, loop) && slices.ContainsFunc(st.Axes, func(other Axis) bool {
				return other.Axis.Kind == plan.ReduceAxis && slices.Contains(ranges, other.Axis.Range)
			})
		})
	})
}

// splitTail is the end of an axis whose sub-axes, high to low in s, do not divide it.
func (st *State) splitTail(p Axis, s *Split, tile int64) {
	a, r := st.Arena, p.Axis.Range
	if st.elementsApart(p, s) {
		return
	}
	n, _ := p.Axis.Size()
	if whole := s.wholeElements(n); tile == 0 && p.Axis.Kind == plan.StageAxis {
		number, element := s.tileOf(a, whole)
		s.value = a.Add(a.Mul(a.Index(whole), a.Binary(ir.OpMin, number, a.Index(n/whole-1))), element)
		return
	} else if tile == 0 {
		number, _ := s.tileOf(a, whole)
		s.Gated, s.gate = true, a.Lt(number, a.Div(r.Src[0], a.Index(whole)))
		return
	}
	number, element := s.tileOf(a, tile)
	if tile > n {
		// A tile of matrix instructions is whole: it repeats the last element.
		s.value = a.Binary(ir.OpMin, element, a.Index(n-1))
		if exists := st.simp.Do(a.Lt(number, a.Index(1))); !exists.IsInt(1) {
			s.gate = exists
		}
		s.first = a.Lt(element, a.Index(n))
		return
	}
	if st.lastApart(p, s, tile, element) {
		return
	}
	unit := ir.GCD(tile, n) // what all starts are multiples of: loads stay aligned
	start := a.Mul(a.Index(unit), a.Binary(ir.OpMin, a.Mul(number, a.Index(tile/unit)), a.Index((n-tile)/unit)))
	s.value = a.Add(start, element)
	exists := st.simp.Do(a.Lt(number, a.Index((n+tile-1)/tile)))
	if !exists.IsInt(1) {
		s.gate = exists
	}
	if n%tile != 0 {
		// Said to lie in its bounds, the count stays one number for all lanes.
		repeated := a.Cast(st.simp.Do(a.Sub(a.Mul(number, a.Index(tile)), start)), ir.I32)
		repeated = a.Make(ir.OpAssume, ir.I32, nil, repeated, a.ConstInt(ir.I32, 0), a.ConstInt(ir.I32, tile))
		s.first = a.Lt(a.Add(repeated, a.ConstInt(ir.I32, -1)), a.Cast(element, ir.I32))
	}
}

// wholeElements is the largest number of elements that low sub-axes have together and
// that divides n: if one of them exists, all do. Of an extent that is not known it is 1.
func (s *Split) wholeElements(n int64) int64 {
	whole := int64(1)
	for _, d := range s.SubAxes {
		if n%d.Stride == 0 {
			whole = max(whole, d.Stride)
		}
	}
	if n == 0 {
		return 1
	}
	return whole
}

// tileOf is the number of the tile of so many elements, and the element of it.
func (s *Split) tileOf(a *ir.Arena, elements int64) (number, element *ir.UOp) {
	number, element = a.Index(0), a.Index(0)
	for _, d := range s.SubAxes {
		if d.Stride >= elements {
			number = a.Add(number, a.Mul(d.Range, a.Index(d.Stride/elements)))
		} else {
			element = a.Add(element, a.Mul(d.Range, a.Index(d.Stride)))
		}
	}
	return number, element
}

// fewestTiles is how many tiles a loop must have to end before the last one.
const fewestTiles = 4

// lastApart takes the last tile of a reduce out of its loop, where tiles are what the loop
// runs over and all reduces are of one value.
func (st *State) lastApart(p Axis, s *Split, tile int64, element *ir.UOp) bool {
	a, old := st.Arena, s.SubAxes[0]
	n, _ := p.Axis.Size()
	loops := p.Axis.Kind == plan.ReduceAxis && p.Limit == nil && old.Role == plan.Serial && old.Stride == tile && n/tile >= fewestTiles
	if !loops || st.Desc.Kind == target.GPU || hasTuple(st.Sink, p.Axis.Range) {
		return false
	}
	tiles := st.place(st.newRange(a.Index(n/tile)), old.Role, st.order[old.Range])
	delete(st.roles, old.Range)
	delete(st.order, old.Range)
	s.SubAxes[0].Range = tiles
	s.last = &lastTile{start: st.newRange(a.Index(n - tile + 1)), loop: a.Mul(tiles, a.Index(tile)), end: a.Index(n - tile)}
	s.value = a.Add(s.last.start, element)
	s.first = a.Lt(a.Index(tile-n%tile-1), element)
	return true
}

// elementsApart takes the elements of a softmax that fill no tile out of its loop, one after the other, where the plan
// says so: masks of all products of a tile may take as long as the products.
func (st *State) elementsApart(p Axis, s *Split) bool {
	a, r, old := st.Arena, p.Axis.Range, s.SubAxes[0]
	loops := p.Apart && old.Role == plan.Serial && s.Tile > 1 && old.Stride == s.Tile
	if !loops || !onlySoftmax(a, st.Sink, r) {
		return false
	}
	n, tile := r.Src[0], a.Index(s.Tile)
	passes, left := a.Div(n, tile), a.Mod(n, tile)
	whole := a.Mul(passes, tile)
	if p.Limit != nil {
		passes = a.Binary(ir.OpMin, passes, st.ceilDiv(p.Limit, s.Tile))
		left = a.Binary(ir.OpMax, a.Binary(ir.OpMin, left, a.Sub(p.Limit, whole)), a.Index(0))
	}
	order := st.order[old.Range]
	tiles := st.place(st.newRange(st.simp.Do(passes)), plan.Serial, order)
	one := st.place(st.newRange(st.simp.Do(left)), plan.Serial, order)
	delete(st.roles, old.Range)
	delete(st.order, old.Range)
	s.SubAxes[0].Range = tiles
	_, element := s.tileOf(a, s.Tile)
	s.last = &lastTile{start: st.newRange(n), loop: a.Mul(tiles, tile), end: a.Add(whole, one), apart: one}
	s.value = a.Add(s.last.start, element)
	return true
}

// onlySoftmax reports a range over which nothing but softmax tuples runs.
func onlySoftmax(a *ir.Arena, sink, r *ir.UOp) bool {
	return !analyse.Any(sink, func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce && u.ReduceRange() == r && !(analyse.IsTuple(u) && a.MonoidOf(u).Rescales)
	})
}

// hasTuple reports a reduce of several values over a range.
func hasTuple(sink, r *ir.UOp) bool {
	return analyse.Any(sink, func(u *ir.UOp) bool { return analyse.IsTuple(u) && u.ReduceRange() == r })
}

// readsStored reports a kernel of which a store reads what one writes: an element must
// not be written twice.
func readsStored(sink *ir.UOp) bool {
	written := lists.Set(lists.Map(sink.Src, func(store *ir.UOp) *ir.UOp { return store.Src[0] }))
	return slices.ContainsFunc(ir.Toposort(sink), func(u *ir.UOp) bool {
		return (u.Op == ir.OpLoad || u.Op == ir.OpField) && written[u.Src[0]]
	})
}

// condition is what must hold for an element to be there: that its tile exists and, if
// it counts once, that the tile before it does not have it. nil: nothing.
func (s *Split) condition(a *ir.Arena, once bool) *ir.UOp {
	switch {
	case !once || s.first == nil:
		return s.gate
	case s.gate == nil:
		return s.first
	}
	return a.And(s.gate, s.first)
}

// hasMatrix reports an axis that matrix instructions sum over: their factors stay factors where an element is left out.
func (s *Split) hasMatrix() bool {
	return slices.ContainsFunc(s.SubAxes, func(d SubAxis) bool { return d.Role == plan.Matrix })
}

// gatedElement is an element of a reduce where it takes part, else the identity.
func (s *Split) gatedElement(st *State, u, v, identity *ir.UOp) *ir.UOp {
	once := true
	if analyse.IsPlain(u) {
		op := u.Arg.(ir.ReduceArg).Op
		once = op != ir.OpMax && op != ir.OpMin
	}
	cond := s.condition(st.Arena, once)
	zero, ok := identity.Float()
	switch {
	case cond == nil:
		return v
	case (s.first != nil || s.hasMatrix() && analyse.IsPlain(u)) && (ok && zero == 0 || identity.IsInt(0)):
		return gatedTerm(st, cond, v, identity)
	}
	return gated(st, s, v, cond, identity)
}

// gatedTerm is a term of a sum, or 0. Of a product every factor is 0 that may
// be infinite, of integers the second one, and of an inner sum every term, so that lanes, multiply-adds and masked
// loads remain; of a conversion what it converts, which remains what a matrix instruction
// takes. A quantised weight is finite: only what it is multiplied with is compared away,
// once for all rows.
func gatedTerm(st *State, cond, v, zero *ir.UOp) *ir.UOp {
	a := st.Arena
	switch {
	case v.Op == ir.OpCast && (v.Src[0].DType.IsFloat() || v.DType.IsInt() && v.Src[0].DType.IsInt()):
		return a.Cast(gatedTerm(st, cond, v.Src[0], a.Const(v.Src[0].DType, 0)), v.DType)
	case len(StoredTerms(v)) > 1 && v.Op == ir.OpAdd: // they stay what few terms of a matrix instruction hold
		return a.Add(gatedTerm(st, cond, v.Src[0], zero), gatedTerm(st, cond, v.Src[1], zero))
	case len(StoredTerms(v)) > 0 && v.Op == ir.OpMul:
		return a.Mul(gatedTerm(st, cond, v.Src[0], zero), v.Src[1])
	case v.Op == ir.OpMul && (v.DType.IsInt() || largest(v.Src[0]) < mostFinite):
		return a.Mul(v.Src[0], gatedTerm(st, cond, v.Src[1], zero))
	case v.Op == ir.OpMul && largest(v.Src[1]) < mostFinite:
		return a.Mul(gatedTerm(st, cond, v.Src[0], zero), v.Src[1])
	case v.Op == ir.OpMul:
		return a.Mul(gatedTerm(st, cond, v.Src[0], zero), gatedTerm(st, cond, v.Src[1], zero))
	case v.Op == ir.OpReduce && analyse.IsSum(v):
		return a.Reduce(ir.OpAdd, gatedTerm(st, cond, v.Src[0], zero), v.ReduceRange())
	}
	return a.Where(cond, v, zero)
}

// mostFinite is what a factor may be at most to be called finite: far from the largest f16.
const mostFinite = 1 << 12

// largest bounds the magnitude of a float that is computed from integers and constants
// alone; infinity: it is not, or nothing is known.
func largest(v *ir.UOp) float64 {
	switch {
	case v.Op == ir.OpCast && v.Src[0].DType.IsInt() && v.Src[0].DType.Size() == 1:
		return 1 << 8
	case v.Op == ir.OpConst && v.DType.IsFloat():
		x, _ := v.Float()
		return math.Abs(x)
	case v.Op == ir.OpAdd, v.Op == ir.OpSub:
		return largest(v.Src[0]) + largest(v.Src[1])
	case v.Op == ir.OpMul:
		return largest(v.Src[0]) * largest(v.Src[1])
	case v.Op == ir.OpNeg:
		return largest(v.Src[0])
	}
	return math.Inf(1)
}
