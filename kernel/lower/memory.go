package lower

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/packed"
)

// memory writes loads, of lanes whose addresses follow patterns.
type memory struct {
	*lowering
	params    map[*ir.UOp]*program.Value // PARAM, TABLE, VAR
	align     map[*program.Value]int64   // bytes, proven, of buffers and stack arrays
	address   map[*ir.UOp]*flatAddress
	accesses  map[int][]*ir.UOp      // of PARAMs, by slot
	ptrDepths map[*program.Value]int // the scope that holds each pointer
	linear    *ir.Linearizer
	packed    bool // a weight is
}

// flatAddress is where an access goes: a linear form of offsets from the start
// of its buffer, in elements, or in bytes for a FIELD.
type flatAddress struct {
	node   *ir.UOp // Idx
	buffer *ir.UOp // of a LOAD, STORE or FIELD
	form   ir.LinearForm
}

// place is an address at coordinates: a scalar pointer and an offset for each
// lane, from that pointer, in elements. A general place has one offset vector.
type place struct {
	ptr     *program.Value
	subAxes []int
	offsets []int64
	vector  *program.Value // offsets of a general place
	cache   program.Cache  // of a store
	align   int
	run     int // lanes of a general place one after another that are neighbours, with the alignment of their first; 0: none are
}

// lowerLoad reads a PARAM, TABLE or STAGE.
func (l *memory) lowerLoad(u *ir.UOp, at coords) val {
	buf := u.Src[0]
	switch {
	case buf.Op != ir.OpStage && isEmpty(buf):
		// Both arms of a WHERE are computed, with indices clamped; of nothing no
		// element can be read instead, and none is chosen.
		return l.exprs.lower(l.Arena.Const(u.DType, 0), at)
	case buf.Op == ir.OpStage:
		return l.stager.loadStage(u, at)
	case u.Op == ir.OpField:
		return l.loadField(u, at)
	}
	address := l.rejoinedLanes(l.addressOf(u), at)
	if moving := l.movingTerms(address.form, at); !l.block.onGPU() && len(moving) > 0 {
		if v, ok := l.loadInside(u, at); ok {
			return v
		}
		if v, ok := l.loadStep(u, moving, at); ok {
			return v
		}
		if v, ok := l.loadTwoRuns(u, address, at); ok {
			return v
		}
	}
	return l.read(l.placeOf(l.base(buf), address, int64(u.DType.Size()), at))
}

// Positions that a reshape has taken apart. An address then has digits of a position p: rests p%n and quotients
// p/n, along which neighbouring lanes have no fixed distance where a row ends. Where the digits are those of rows
// one after the other, the address is the position again; else lanes that meet two rows are two loads and a choice.

// movingTerms are the terms of an address by which its lanes have no fixed distance: such
// lanes are gathered.
func (l *memory) movingTerms(address ir.LinearForm, at coords) []ir.Term {
	return slices.DeleteFunc(slices.Clone(address.Terms), func(t ir.Term) bool {
		return l.exprs.isStatic(t.Atom) || len(l.exprs.laneSubAxes(t.Atom, at)) == 0
	})
}

// digits are two terms of an address: the rest of a position by n, and a quotient.
type digits struct {
	rest, quotient ir.Term
	n              int64
}

// digitsOf lists the pairs of an address.
func digitsOf(f ir.LinearForm) (list []digits) {
	for _, rest := range f.Terms {
		if rest.Atom.Op != ir.OpFloorMod {
			continue
		}
		n, constant := rest.Atom.Src[1].Int()
		for _, quotient := range f.Terms {
			if constant && n > 0 && quotient.Atom.Op == ir.OpFloorDiv {
				list = append(list, digits{rest, quotient, n})
			}
		}
	}
	return list
}

// joined is an address with x, as often as the rest, in place of both digits; ok is false where x is nil.
func (l *memory) joined(f ir.LinearForm, d digits, x *ir.UOp) (form ir.LinearForm, ok bool) {
	if x == nil {
		return f, false
	}
	f, ok1 := f.Plus(ir.AtomForm(d.rest.Atom), -d.rest.Coef)
	f, ok2 := f.Plus(ir.AtomForm(d.quotient.Atom), -d.quotient.Coef)
	f, ok3 := f.Plus(l.linear.Of(x), d.rest.Coef)
	return f, ok1 && ok2 && ok3
}

// rejoinedLanes is rejoined where lanes of a CPU would be gathered.
func (l *memory) rejoinedLanes(address *flatAddress, at coords) *flatAddress {
	if l.block.onGPU() || len(l.movingTerms(address.form, at)) < 2 {
		return address
	}
	return l.rejoined(address)
}

// rejoined is an address with x in place of c*(x/c) + y%c, where y differs from x by so many
// times c, as often as there are such digits: lanes whose x are neighbours are then seen to be.
func (l *memory) rejoined(f *flatAddress) *flatAddress {
	for _, d := range digitsOf(f.form) {
		if form, ok := l.joined(f.form, d, l.wholeOf(d)); ok {
			return l.rejoined(&flatAddress{node: form.Build(l.Arena), form: form})
		}
	}
	return f
}

// wholeOf is the x of digits c*(x/c) + y%c; nil for others. x/(c*m) is (x/m)/c.
func (l *memory) wholeOf(d digits) *ir.UOp {
	y := d.quotient.Atom
	divisor, constant := y.Src[1].Int()
	if !constant || divisor <= 0 || divisor%d.n != 0 || d.quotient.Coef != d.n*d.rest.Coef {
		return nil
	}
	x := l.Simplify.Do(l.Arena.Div(y.Src[0], l.Arena.Index(divisor/d.n)))
	if !l.congruent(d.rest.Atom.Src[0], x, d.n) {
		return nil
	}
	return x
}

// congruent reports x and y that differ by a multiple of n, with what is left of a position
// written as the position less its quotient.
func (l *memory) congruent(x, y *ir.UOp, n int64) bool {
	difference, ok := l.withoutRests(l.linear.Of(x)).Plus(l.withoutRests(l.linear.Of(y)), -1)
	return ok && difference.Const%n == 0 && !slices.ContainsFunc(difference.Terms, func(t ir.Term) bool { return t.Coef%n != 0 })
}

// withoutRests is a form with z - c*(z/c) in place of z%c.
func (l *memory) withoutRests(form ir.LinearForm) ir.LinearForm {
	for _, t := range slices.Clone(form.Terms) {
		if t.Atom.Op != ir.OpFloorMod {
			continue
		}
		c, constant := t.Atom.Src[1].Int()
		next, ok1 := form.Plus(ir.AtomForm(t.Atom), -t.Coef)
		next, ok2 := next.Plus(l.linear.Of(t.Atom.Src[0]), t.Coef)
		next, ok3 := next.Plus(l.linear.Of(l.Arena.Div(t.Atom.Src[0], t.Atom.Src[1])), -t.Coef*c)
		if constant && ok1 && ok2 && ok3 {
			form = next
		}
	}
	return form
}

// loadStep reads lanes of which the first ones have one element and all others the next:
// an index divided by at least as many as there are lanes. Two loads and a choice take
// the place of a gather.
func (l *memory) loadStep(u *ir.UOp, moving []ir.Term, at coords) (val, bool) {
	subAxes, quotient := l.exprs.laneSubAxes(u, at), moving[0].Atom
	others := slices.ContainsFunc(l.addressOf(u).form.Terms, func(t ir.Term) bool {
		return t.Atom != quotient && len(l.exprs.laneSubAxes(t.Atom, at)) > 0
	})
	if others || quotient.Op != ir.OpFloorDiv {
		return val{}, false
	}
	c, ok := l.crossingOf(quotient, at)
	if !ok {
		return val{}, false
	}
	load := func(lane int) val {
		point := slices.Clone(at)
		l.exprs.setLane(point, subAxes, lane)
		return l.exprs.settle(l.exprs.lower(u, point))
	}
	return l.choose(u.DType, c, load(0), load(l.exprs.laneCount(subAxes)-1), at), true
}

// loadTwoRuns reads lanes along a row and on into the next one, which begins further on: both
// digits of a position, in rows apart. Each of the two runs is loaded as if all lanes were its
// own, within what they span together, and lanes choose.
func (l *memory) loadTwoRuns(u *ir.UOp, f *flatAddress, at coords) (val, bool) {
	a := l.Arena
	for _, d := range digitsOf(f.form) {
		x, y, gap := d.rest.Atom, d.quotient.Atom, d.quotient.Coef-d.n*d.rest.Coef
		if x.Src[0] != y.Src[0] || x.Src[1] != y.Src[1] || gap <= 0 || d.rest.Coef <= 0 {
			continue
		}
		whole, joined := l.joined(f.form, d, x.Src[0])
		c, known := l.crossingOf(y, at)
		if !joined || !known || len(l.movingTerms(whole, at)) > 0 {
			continue
		}
		run := func(lane int64) val {
			row := l.Simplify.Do(a.Mul(a.Div(a.Add(c.first, a.Index(lane)), y.Src[1]), a.Index(gap)))
			form, _ := whole.Plus(l.linear.Of(row), 1)
			return l.read(l.placeOf(l.base(u.Src[0]), &flatAddress{node: form.Build(a), form: form}, int64(u.DType.Size()), at))
		}
		return l.choose(u.DType, c, run(0), run(c.last), at), true
	}
	return val{}, false
}

// crossing is how the lanes of a position meet two quotients at most: those of the first and of
// the last lane, which have the least position and the largest.
type crossing struct {
	first   *ir.UOp // the first lane's position
	last    int64   // of the last lane, from the first one on
	inFirst *ir.UOp // whether a lane has the first one's quotient
}

// crossingOf is that of a quotient; ok is false where lanes are not known, or may meet more.
func (l *memory) crossingOf(quotient *ir.UOp, at coords) (c crossing, ok bool) {
	position, n := quotient.Src[0], quotient.Src[1]
	lanes, rest, ok := l.lanesApart(position, at)
	if !ok {
		return c, false
	}
	offsets := l.staticOffsets(lanes.Terms, l.exprs.laneSubAxes(quotient, at), at)
	last := offsets[len(offsets)-1]
	if most, constant := n.Int(); !constant || last > most || offsets[0] != 0 || slices.Min(offsets) < 0 || slices.Max(offsets) > last {
		return c, false
	}
	a, first := l.Arena, rest.Build(l.Arena)
	left := l.Simplify.Do(a.Sub(n, a.Mod(first, n))) // of the first lane's row
	return crossing{first, last, a.Lt(l.word(lanes.Build(a)), l.word(left))}, true
}

// choose is one value in the lanes that have the first lane's quotient, and the other one in
// those that have the last lane's.
func (l *memory) choose(dtype ir.DType, c crossing, first, last val, at coords) val {
	return l.exprs.alu(ir.OpWhere, dtype, l.exprs.settle(l.exprs.lower(c.inFirst, at)), first, last)
}

// loadInside reads neighbouring lanes of which some may be outside of a buffer: each
// that is inside, where indices kept in bounds lane by lane would be gathered. What the
// others give does not matter, since their arm of a WHERE is not taken.
func (l *memory) loadInside(u *ir.UOp, at coords) (val, bool) {
	a, extents := l.Arena, u.Src[0].Src
	index, inside := slices.Clone(u.Indices()), a.ConstInt(ir.Bool, 1)
	for k, x := range index {
		low, high := l.inBounds(x, extents[k])
		if low && high || len(l.exprs.laneSubAxes(x, at)) == 0 {
			index[k] = l.clamped(x, extents[k])
			continue
		}
		x, extent := l.word(x), l.word(extents[k])
		if x.DType != extent.DType {
			return val{}, false
		}
		if !low {
			inside = a.And(inside, a.Lt(a.ConstInt(x.DType, -1), x))
		}
		if !high {
			inside = a.And(inside, a.Lt(x, extent))
		}
		index[k] = l.reaching(index[k], extents[k], at)
	}
	if inside.Op == ir.OpConst {
		return val{}, false
	}
	sum := l.Simplify.Do(l.rowMajor(extents, index, false))
	address := l.rejoined(&flatAddress{node: sum, form: l.linear.Of(sum)})
	if len(l.movingTerms(address.form, at)) > 0 {
		return val{}, false
	}
	size := u.DType.Size()
	p := l.placeOf(l.base(u.Src[0]), address, int64(size), at)
	guard := func() *program.Value {
		return l.exprs.expand(l.exprs.settle(l.exprs.lower(l.Simplify.Do(inside), at)), p.subAxes)
	}
	switch {
	case inOrder(p.offsets):
		return val{v: l.guarded(guard(), p, size), subAxes: p.subAxes, depth: l.scopes.top()}, true
	case inOrder(backwards(p.offsets)):
		turn := backwards(lists.Upto(len(p.offsets)))
		held := guard()
		v := l.guarded(l.b.Shuffle(held, held, turn...), p, size)
		return val{v: l.b.Shuffle(v, v, turn...), subAxes: p.subAxes, depth: l.scopes.top()}, true
	}
	return val{}, false
}

// guarded loads neighbouring lanes, each where its guard holds.
func (l *memory) guarded(guard *program.Value, p place, size int) *program.Value {
	elem := p.ptr.Type.Elem
	other := l.b.Broadcast(l.exprs.constant(l.Arena.Const(elem, 0)), len(p.offsets))
	return l.b.Guarded(guard, p.ptr, other, min(p.align, size))
}

// backwards is a list from its end.
func backwards[T any](list []T) []T {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

// reaching is an index of neighbouring lanes from its start on where none of them is in
// bounds: a masked load in front of a buffer, of which every lane is masked, takes the
// processor as long as hundreds of others (100 us of 8, concatenated halves of 35 x 997 f32).
func (l *memory) reaching(x, extent *ir.UOp, at coords) *ir.UOp {
	a := l.Arena
	lanes, start, ok := l.lanesApart(x, at)
	if !ok {
		return x
	}
	first := start.Build(a)
	offsets := l.staticOffsets(lanes.Terms, l.exprs.laneSubAxes(x, at), at)
	low, high := slices.Min(offsets), slices.Max(offsets)
	reaches := a.And(a.Lt(a.Index(-1-high), first), a.Lt(first, a.Add(extent, a.Index(-low))))
	return a.Add(a.Where(l.Simplify.Do(reaches), first, a.Index(-low)), lanes.Build(a))
}

// lanesApart is an index as what lanes add to it, known here, and the rest, which all of
// them share; ok is false where lanes add what is not known.
func (l *memory) lanesApart(x *ir.UOp, at coords) (lanes, rest ir.LinearForm, ok bool) {
	form := l.linear.Of(x)
	rest = ir.ConstForm(form.Const)
	for _, t := range form.Terms {
		switch {
		case len(l.exprs.laneSubAxes(t.Atom, at)) == 0:
			rest.Terms = append(rest.Terms, t)
		case l.exprs.isStatic(t.Atom):
			lanes.Terms = append(lanes.Terms, t)
		default:
			return lanes, rest, false
		}
	}
	return lanes, rest, true
}

// comparedLanes is a comparison of positions in 32 bits with lanes on one side: one of a vector
// that is known with a number that all lanes share, which takes a quarter of what sums of 64
// bits take. nil: lanes are not known, or numbers may not fit.
func (l *memory) comparedLanes(u *ir.UOp, at coords) *ir.UOp {
	x, y := u.Src[0], u.Src[1]
	if l.block.onGPU() || x.DType != ir.Idx || len(l.exprs.laneSubAxes(u, at)) == 0 {
		return nil
	}
	a := l.Arena
	lanes, rest, ok := l.lanesApart(l.Simplify.Do(a.Sub(y, x)), at)
	if !ok || len(lanes.Terms) == 0 {
		return nil
	}
	low, high := l.word(l.Simplify.Do(a.Sub(a.Index(0), rest.Build(a)))), l.word(lanes.Build(a))
	if low.DType != ir.I32 || high.DType != ir.I32 {
		return nil
	}
	return a.Lt(low, high)
}

// bitsOfLanes is a test of a bit whose place differs between threads as one of the number shifted by what they
// add to it: 0 < (1 << t+i) & x is 0 < (1 << i) & (x >> t), so that lanes test bits that are known here, and a
// GPU spreads four of them by one multiplication. nil: no lanes test bits, or all is known.
func (l *memory) bitsOfLanes(u *ir.UOp, at coords) *ir.UOp {
	x, amount := analyse.TestedBit(u)
	if x == nil || !l.block.onGPU() || len(l.exprs.laneSubAxes(x, at)) > 0 {
		return nil
	}
	if amount.Op == ir.OpCast {
		amount = amount.Src[0]
	}
	if amount.DType != ir.Idx || !l.Bounds.Of(amount).Within(0, int64(x.DType.Bits())-1) {
		return nil
	}
	lanes, rest, ok := l.lanesApart(amount, at)
	if !ok || len(lanes.Terms) == 0 || len(rest.Terms) == 0 {
		return nil
	}
	a := l.Arena
	low, high := lanes.Build(a), rest.Build(a)
	if l.Bounds.Of(low).Lo < 0 || l.Bounds.Of(high).Lo < 0 {
		return nil
	}
	number := func(index *ir.UOp) *ir.UOp { return a.Cast(index, x.DType) }
	bit := a.Binary(ir.OpShl, a.ConstInt(x.DType, 1), number(low))
	return a.Lt(u.Src[0], a.And(bit, a.Binary(ir.OpShr, x, number(high))))
}

// word is an index in 32 bits where it is proven to fit, of which a register has twice as
// many lanes.
func (l *memory) word(x *ir.UOp) *ir.UOp {
	if l.Bounds.Of(x).Within(math.MinInt32, math.MaxInt32) {
		return l.Arena.Cast(x, ir.I32)
	}
	return x
}

// array reserves memory for the whole program.
func (l *memory) array(elem ir.DType, space program.Space, count int64, align int) *program.Value {
	var v *program.Value
	l.b.With(l.scopes.prologue, func() { v = l.b.Alloca(elem, space, count, align) })
	l.align[v] = int64(align)
	return v
}

// isEmpty reports a buffer without elements.
func isEmpty(buf *ir.UOp) bool {
	return slices.ContainsFunc(buf.Src, func(extent *ir.UOp) bool { return extent.IsInt(0) })
}

// base is the pointer of a buffer or table.
func (l *memory) base(buf *ir.UOp) *program.Value {
	if v := l.params[buf]; v != nil {
		return v
	}
	if buf.Op != ir.OpTable {
		fail("%s cannot be read", buf.Op)
	}
	v := l.b.Table(buf.DType, buf.Arg.(ir.TableArg).Data)
	l.params[buf] = v
	l.align[v] = 64
	return v
}

// floatTable is the pointer of a table of bytes, converted.
func (l *memory) floatTable(dtype ir.DType, bytes string) *program.Value {
	values := lists.Map([]byte(bytes), func(b byte) float64 {
		if dtype == ir.I8 {
			return float64(int8(b))
		}
		return float64(b)
	})
	return l.b.Table(ir.F32, string(ir.EncodeTable(ir.F32, values)))
}

// addressOf is the row-major offset of a LOAD or STORE. Each index of a LOAD is kept in
// bounds: one that is not proven may belong to an arm of a WHERE that is not taken.
func (l *memory) addressOf(u *ir.UOp) *flatAddress {
	if f := l.address[u]; f != nil {
		return f
	}
	return l.remember(u, l.rowMajor(u.Src[0].Src, u.Indices(), u.Op == ir.OpLoad))
}

func (l *memory) rowMajor(extents, index []*ir.UOp, clamp bool) *ir.UOp {
	a := l.Arena
	sum := a.Index(0)
	for k, x := range index {
		if clamp {
			x = l.clamped(x, extents[k])
		}
		sum = a.Add(a.Mul(sum, extents[k]), x)
	}
	return sum
}

func (l *memory) remember(u, sum *ir.UOp) *flatAddress {
	sum = l.Simplify.Do(sum)
	f := &flatAddress{node: sum, buffer: u.Src[0], form: l.linear.Of(sum)}
	l.address[u] = f
	return f
}

// clamped is x brought into 0..extent-1 where that is not proven. Neighbours stay
// neighbours: a run of elements that divides the extent is brought there as a whole, so
// that its lanes are one load.
func (l *memory) clamped(x, extent *ir.UOp) *ir.UOp {
	a := l.Arena
	low, high := l.inBounds(x, extent)
	if low && high {
		return x
	}
	number, element, run := l.runOf(x, extent)
	if !high {
		number = a.Binary(ir.OpMin, number, a.Add(a.Div(extent, a.Index(run)), a.Index(-1)))
	}
	if !low {
		number = a.Binary(ir.OpMax, number, a.Index(0))
	}
	return a.Add(a.Mul(number, a.Index(run)), element)
}

// runOf writes x as number*run + element, 0 <= element < run, with the longest run that
// divides the extent.
func (l *memory) runOf(x, extent *ir.UOp) (number, element *ir.UOp, run int64) {
	a := l.Arena
	form := l.linear.Of(x)
	number, element, run = x, a.Index(0), 1
	n, constant := extent.Int()
	for _, step := range form.Terms {
		if !constant || step.Coef <= run || n%step.Coef != 0 {
			continue
		}
		high, low := ir.ConstForm(ir.FloorDiv(form.Const, step.Coef)), ir.ConstForm(ir.FloorMod(form.Const, step.Coef))
		for _, t := range form.Terms {
			if t.Coef%step.Coef == 0 {
				high.Terms = append(high.Terms, ir.Term{Atom: t.Atom, Coef: t.Coef / step.Coef})
			} else {
				low.Terms = append(low.Terms, t)
			}
		}
		if within := low.Build(a); l.Bounds.Of(within).Within(0, step.Coef-1) {
			number, element, run = high.Build(a), within, step.Coef
		}
	}
	return number, element, run
}

// inBounds says which of 0 <= x and x < extent are proven.
func (l *memory) inBounds(x, extent *ir.UOp) (low, high bool) {
	a := l.Arena
	b := l.Bounds.Of(x)
	low = b.Lo >= 0
	if n, ok := extent.Int(); ok && b.Hi < n {
		return low, true
	}
	return low, l.Simplify.Do(a.Lt(x, extent)).IsInt(1)
}

// loadField reads a field of a packed buffer.
func (l *memory) loadField(u *ir.UOp, at coords) val {
	if v, ok := l.words.loadInWord(u, at); ok {
		return v
	}
	addr := l.fieldAddress(u)
	size := int64(u.DType.Size())
	p := l.placeOf(l.base(u.Src[0]), addr, 1, at)
	if v, ok := l.byteOfWords(p, addr, u.DType, at); ok {
		return v
	}
	if p.vector != nil && size > 1 {
		return l.readEach(p, u.DType)
	}
	for i, o := range p.offsets {
		if o%size != 0 {
			return l.readEach(p, u.DType)
		}
		p.offsets[i] = o / size
	}
	p.ptr = l.scopes.derive(l.ptrDepths[p.ptr], derivedKey{p.ptr, "as " + u.DType.String()}, func() *program.Value { return l.b.PtrCast(p.ptr, u.DType) })
	return l.read(p)
}

// byteOfWords reads lanes that are one byte of each of neighbouring words: rows of a record. The
// words are loaded once for all their bytes.
func (l *memory) byteOfWords(p place, addr *flatAddress, dtype ir.DType, at coords) (val, bool) {
	if l.block.onGPU() || p.vector != nil || dtype.Size() != 1 || len(p.offsets) < plan.WordElements {
		return val{}, false
	}
	for lane, o := range p.offsets {
		if o != int64(lane*plan.WordElements) {
			return val{}, false
		}
	}
	phase := addr.form.Const
	var static []ir.Term
	for _, t := range addr.form.Terms {
		switch {
		case l.exprs.isStatic(t.Atom):
			static = append(static, t)
		case t.Coef%plan.WordElements != 0:
			return val{}, false
		}
	}
	if l.align[l.base(addr.buffer)]%plan.WordElements != 0 {
		return val{}, false
	}
	phase = ir.FloorMod(phase+slices.Min(l.staticOffsets(static, p.subAxes, at)), plan.WordElements)
	d := l.scopes.top()
	n := len(p.offsets)
	start := p.ptr
	if phase != 0 {
		start = l.b.PtrAdd(p.ptr, l.b.Index(-phase))
	}
	words := l.b.Load(l.b.PtrCast(start, ir.U32), n, int(plan.WordElements))
	if phase > 0 {
		words = l.b.Alu(ir.OpShr, words, l.b.Int(words.Type, 8*phase))
	}
	bytes := l.b.Cast(words, ir.U8)
	if dtype != ir.U8 {
		bytes = l.b.Bitcast(bytes, dtype)
	}
	return val{v: bytes, subAxes: p.subAxes, depth: d}, true
}

// fieldAddress is the byte offset of a FIELD, its row and block in bounds.
func (l *memory) fieldAddress(u *ir.UOp) *flatAddress {
	if f := l.address[u]; f != nil {
		return f
	}
	a := l.Arena
	arg := u.Arg.(ir.FieldArg)
	f := l.format(arg.Format)
	buf, row, block, j := u.Src[0], u.Src[1], u.Src[2], u.Src[3]
	rows := a.Index(1)
	for _, n := range buf.Src[:len(buf.Src)-1] {
		rows = a.Mul(rows, n)
	}
	perRow := a.Div(buf.Src[len(buf.Src)-1], a.Index(int64(f.BlockElems)))
	fd, ok := f.Field(arg.Field)
	if !ok {
		fail("format %s has no field %q", arg.Format, arg.Field)
	}
	row = l.clamped(row, l.Simplify.Do(rows))
	block = l.clamped(block, l.Simplify.Do(perRow))
	j = l.clamped(j, a.Index(int64(fd.Count)))
	if layout := l.layoutOf(f, buf); layout != packed.Identity {
		return l.remember(u, l.fieldPlace(f, layout, arg.Field, l.Simplify.Do(rows), l.Simplify.Do(perRow)).Address(a, row, block, j))
	}
	return l.remember(u, f.Address(a, arg.Field, row, block, j, perRow))
}

// layoutOf is the layout of a packed buffer.
func (l *memory) layoutOf(f *packed.Format, buf *ir.UOp) packed.Layout {
	shape := make([]int64, len(buf.Src))
	for i, n := range buf.Src {
		size, constant := n.Int()
		if !constant && !l.Desc.Planes {
			return packed.Identity
		}
		shape[i] = size
	}
	return packed.LayoutOf(f, shape, l.Desc.Planes, l.Desc.Records)
}

// fieldPlace is the place of a field in a layout.
func (l *memory) fieldPlace(f *packed.Format, layout packed.Layout, field string, rows, perRow *ir.UOp) packed.FieldPlace {
	n, constant := rows.Int()
	m, both := perRow.Int()
	if !constant || !both {
		fail("packed weights in %s have a constant shape", layout.Name())
	}
	for i := range f.Fields {
		if f.Fields[i].Name == field {
			return layout.Place(f, n, m).Fields[i]
		}
	}
	fail("format %s has no field %q", f.Name, field)
	return packed.FieldPlace{}
}

// placeOf turns a linear form into a pointer and lane offsets. step is the
// bytes of one unit of the form.
func (l *memory) placeOf(base *program.Value, addr *flatAddress, step int64, at coords) place {
	var scalar []ir.Term
	var static []ir.Term
	align := ir.GCD(l.align[base], step*addr.form.Const)
	var subAxes []int
	for _, t := range addr.form.Terms {
		switch {
		case l.exprs.isStatic(t.Atom):
			static = append(static, t)
			subAxes = unionSubAxes(subAxes, l.exprs.laneSubAxes(t.Atom, at))
		case len(l.exprs.laneSubAxes(t.Atom, at)) == 0:
			scalar = append(scalar, t)
			align = ir.GCD(align, step*t.Coef)
		default:
			return l.generalPlace(base, addr, step, at)
		}
	}
	p := place{subAxes: subAxes, offsets: l.staticOffsets(static, subAxes, at)}
	least := slices.Min(p.offsets)
	for i := range p.offsets {
		p.offsets[i] -= least
	}
	p.align = int(lowBit(ir.GCD(align, step*(least+addr.form.Const))))
	p.ptr = l.pointer(base, scalar, addr.form.Const+least, at)
	return p
}

func (l *memory) staticOffsets(terms []ir.Term, subAxes []int, at coords) []int64 {
	out := make([]int64, l.exprs.laneCount(subAxes))
	point := append(coords(nil), at...)
	for lane := range out {
		l.exprs.setLane(point, subAxes, lane)
		for _, t := range terms {
			out[lane] += t.Coef * l.exprs.evalStatic(t.Atom, point).I
		}
	}
	return out
}

// pointer adds scalar terms to a base pointer, outer loops first, so that
// each loop adds only what it changes.
func (l *memory) pointer(base *program.Value, terms []ir.Term, offset int64, at coords) *program.Value {
	type located struct {
		v     val
		coef  int64
		depth int
	}
	var list []located
	terms, subAxes := l.block.mergedThreads(terms)
	for _, t := range subAxes {
		list = append(list, located{val{v: l.block.threadPart(t.subAxis)}, t.coef, 0})
	}
	for _, t := range terms {
		v := l.exprs.lower(t.Atom, at)
		list = append(list, located{v, t.Coef, v.depth})
	}
	slices.SortStableFunc(list, func(x, y located) int { return x.depth - y.depth })
	ptr, depth := base, 0
	for i := 0; i < len(list); {
		j := i
		var key strings.Builder
		for ; j < len(list) && list[j].depth == list[i].depth; j++ {
			fmt.Fprintf(&key, "+%d*%d", list[j].v.v.ID, list[j].coef)
		}
		part := list[i:j]
		depth = list[i].depth
		ptr = l.scopes.derive(depth, derivedKey{ptr, key.String()}, func() *program.Value {
			sum := l.b.Index(0)
			for _, t := range part {
				sum = l.b.Add(sum, l.b.Mul(t.v.v, l.b.Index(t.coef)))
			}
			return l.b.PtrAdd(ptr, sum)
		})
		i = j
	}
	if offset != 0 {
		ptr = l.scopes.derive(depth, derivedKey{ptr, fmt.Sprint("+", offset)}, func() *program.Value {
			return l.b.PtrAdd(ptr, l.b.Index(offset))
		})
	}
	l.ptrDepths[ptr] = depth
	return ptr
}

// generalPlace computes one offset for each lane.
func (l *memory) generalPlace(base *program.Value, addr *flatAddress, step int64, at coords) place {
	x := l.exprs.settle(l.offsets32(addr.node, at))
	p := place{ptr: base, subAxes: x.subAxes, vector: x.v, align: int(lowBit(ir.GCD(l.align[base], step)))}
	if l.block.onGPU() {
		l.findEntries(&p, addr, step, at)
	}
	return p
}

// findEntries finds lanes of a general place that are neighbours.
func (l *memory) findEntries(p *place, addr *flatAddress, step int64, at coords) {
	var static []ir.Term
	var parts [][]ir.Scalar
	align := l.align[p.ptr]
	for _, t := range addr.form.Terms {
		if l.exprs.isStatic(t.Atom) {
			static = append(static, t)
			continue
		}
		align = ir.GCD(align, step*t.Coef)
		for _, u := range l.exprs.staticParts(t.Atom, at) {
			parts = append(parts, l.exprs.staticLanes(u, at, p.subAxes))
		}
	}
	offsets := l.staticOffsets(static, p.subAxes, at)
	n := entryLanes(offsets, parts, widestRead/int(step))
	if n == 1 {
		return
	}
	for first := 0; first < len(offsets); first += n {
		align = ir.GCD(align, step*(addr.form.Const+offsets[first]))
	}
	p.run, p.align = n, int(lowBit(align))
}

// offsets32 computes an index vector, in 32 bits where it is proven to fit.
func (l *memory) offsets32(u *ir.UOp, at coords) val {
	if !l.Bounds.Of(u).Within(0, math.MaxInt32) {
		return l.exprs.lower(u, at)
	}
	if u.Op == ir.OpCast && u.Src[0].DType.IsInt() {
		return l.exprs.alu(ir.OpCast, ir.I32, l.exprs.settle(l.exprs.lower(u.Src[0], at)))
	}
	return l.exprs.alu(ir.OpCast, ir.I32, l.exprs.settle(l.exprs.lower(u, at)))
}

// read loads from a place: one element, contiguous lanes, a short span and a
// shuffle, or a gather. Every element of a span lies between two elements that
// are read, so it is inside the buffer.
func (l *memory) read(p place) val {
	d := l.scopes.top()
	if p.run > 1 {
		return val{v: l.loadEntries(p), subAxes: p.subAxes, depth: d}
	}
	if p.vector != nil {
		return val{v: l.b.Gather(p.ptr, p.vector, p.align), subAxes: p.subAxes, depth: d}
	}
	span, n := slices.Max(p.offsets)+1, len(p.offsets)
	size := int64(p.ptr.Type.Elem.Size())
	switch {
	case span == 1: // of all lanes
		return val{v: l.b.Load(p.ptr, 1, p.align), depth: d}
	case inOrder(p.offsets):
		return val{v: l.b.Load(p.ptr, n, p.align), subAxes: p.subAxes, depth: d}
	case (span <= 2*int64(n) || span*size <= 16) && !l.apartInRuns(p.offsets, size):
		return l.readSpan(p, span)
	}
	least := int64(minRun)
	if l.block.onGPU() {
		least = max(shape.BankBytes, 2*size)
	}
	for bytes := int64(minRun); bytes >= least; bytes /= 2 { // the longest
		if r, ok := runsOf(p.offsets, size, bytes); ok {
			return val{v: l.readRuns(p, r), subAxes: p.subAxes, depth: d}
		}
	}
	if span <= l.mostSpan(int64(n), p.ptr.Type.Elem) {
		return l.readSpan(p, span)
	}
	dtype := ir.I64
	if span < math.MaxInt32 {
		dtype = ir.I32
	}
	align := int(lowBit(ir.GCD(int64(p.align), size)))
	return val{v: l.b.Gather(p.ptr, l.b.IntLanes(dtype, p.offsets...), align), subAxes: p.subAxes, depth: d}
}

// loadEntries loads each run of neighbours of a general place at once.
func (l *memory) loadEntries(p place) *program.Value {
	var runs []*program.Value
	for lane := 0; lane < p.vector.Type.Lanes; lane += p.run {
		offset := l.b.Cast(l.b.Extract(p.vector, lane), ir.I64)
		runs = append(runs, l.b.Load(l.b.PtrAdd(p.ptr, offset), p.run, p.align))
	}
	return l.b.Concat(runs...)
}

// readSpan loads all between the first and the last lane, and picks the lanes out.
func (l *memory) readSpan(p place, span int64) val {
	whole := l.scopes.derive(l.scopes.top(), derivedKey{p.ptr, fmt.Sprint("span ", span)}, func() *program.Value {
		return l.b.Load(p.ptr, int(span), p.align)
	})
	mask := lists.Map(p.offsets, func(o int64) int { return int(o) })
	return val{v: l.b.Shuffle(whole, whole, mask...), subAxes: p.subAxes, depth: l.scopes.top()}
}

// mostSpan is how many elements are loaded at most for n lanes that would be gathered. Beside packed weights,
// which bound a loop, a gather of activations takes fewer instructions: decode of LLaMA 1B's layers in Q5_K_M, int8, one
// Zen 4 core, 183 to 204 tokens a second, 150 to 183 with activations picked out.
func (l *memory) mostSpan(n int64, elem ir.DType) int64 {
	if l.block.onGPU() || elem.Size() < 4 || l.packed {
		return 0
	}
	return plan.LanesApart * n
}

// apartInRuns reports lanes of a CPU that are runs with little between them, and yet would
// take a register twice as wide to be loaded as one: two blocks of 16 bytes, 18 bytes apart.
func (l *memory) apartInRuns(offsets []int64, size int64) bool {
	r, ok := runsOf(offsets, size, minRun)
	register := func(elements int64) int { return bits.Len64(uint64(elements*size - 1)) }
	return ok && r.unit == r.length && !l.block.onGPU() && register(slices.Max(offsets)+1) > register(int64(len(offsets)))
}

// readEach loads lane by lane through byte offsets.
func (l *memory) readEach(p place, dtype ir.DType) val {
	lanes := make([]*program.Value, l.exprs.laneCount(p.subAxes))
	for i := range lanes {
		var offset *program.Value
		if p.vector != nil {
			offset = l.b.Cast(l.b.Extract(p.vector, i), ir.I64)
		} else {
			offset = l.b.Index(p.offsets[i])
		}
		lanes[i] = l.b.Load(l.b.PtrCast(l.b.PtrAdd(p.ptr, offset), dtype), 1, 1)
	}
	return val{v: l.b.Concat(lanes...), subAxes: p.subAxes, depth: l.scopes.top()}
}

// lowBit is the largest power of two that divides n, at most 64.
func lowBit(n int64) int64 {
	if n == 0 {
		return 64
	}
	return min(n&-n, 64)
}
