package shape

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Panels of matrix instructions: STAGE of a store axis of the tile. The warps of a
// block share rows or columns, so each weight is decoded and each activation split
// into terms once for the block, into shared memory, in the type that the
// instruction takes: a read of a fragment is then a load. Of the points of the sum
// a panel holds the copies, of one iteration of the loop around them. Scales,
// which stand outside of the instruction, lie in panels too.
//
// A panel is a STAGE in shared memory. All panels of a loop are filled between the
// same two barriers.

// paneller puts factors into panels.
type paneller struct {
	*State
	free *analyse.FreeSets
	read map[panelKey][]*ir.UOp
}

// panelKey names the first value of a panel: the others follow from it.
type panelKey struct {
	value *ir.UOp
	side  *TileSide
}

// markFragments reads STAGE of store axes, and of the points of a tile, as tiles of
// fragments in shared memory.
func markFragments(axes []Axis) {
	for i := range axes {
		if p := &axes[i]; p.Stage && (p.Axis.Kind == plan.StoreAxis || p.Tile > 0 && p.Has(plan.Matrix)) {
			p.Stage, p.StageAmount, p.Fragment = false, 0, true
		}
	}
}

// fillSharedTiles rewrites the sums of MMA, and the factors of the sums around them, to
// reads of panels.
func fillSharedTiles(st *State) error {
	tile := st.Tile
	if tile == nil || !tile.Rows.Staged && !tile.Columns.Staged && (tile.Points == nil || !tile.Points.Staged) {
		return nil
	}
	for depth := 1; depth > 0; depth++ {
		next, err := panelsAt(st, st.Sink, depth)
		if err != nil || next == nil {
			return err
		}
		st.Sink = next
	}
	return nil
}

// panelsAt rewrites the sums of MMA that hold others to a depth: scores have their
// panels when the sums that they weight get theirs. It returns nil where a kernel
// has no such sums.
func panelsAt(st *State, sink *ir.UOp, depth int) (*ir.UOp, error) {
	nodes := ir.Toposort(sink)
	depths := make(map[*ir.UOp]int)
	deepest := 0
	for _, u := range nodes {
		for _, s := range u.Src {
			depths[u] = max(depths[u], depths[s])
		}
		if u.Op == ir.OpReduce && st.roles[u.ReduceRange()] == plan.Matrix && analyse.IsSum(u) {
			depths[u]++
			deepest = max(deepest, depths[u])
		}
	}
	if depth > deepest {
		return nil, nil
	}
	free, err := analyse.NewFreeSets(analyse.RangesIn(sink))
	if err != nil {
		return nil, err
	}
	p := &paneller{State: st, free: free, read: make(map[panelKey][]*ir.UOp)}
	r := ir.Rebuild{Arena: st.Arena}
	r.Visit = func(u *ir.UOp, _ []*ir.UOp) *ir.UOp {
		if !analyse.IsSum(u) {
			return nil
		}
		switch role := st.roles[u.ReduceRange()]; {
		case role == plan.Matrix && depths[u] == depth:
			return p.sumOfPanels(u)
		case (role == plan.Unroll || role == plan.Serial) && depth <= 1:
			if summand := p.scaled(u.Src[0], &r); summand != nil {
				return st.Arena.Reduce(ir.OpAdd, summand, u.ReduceRange())
			}
		}
		return nil
	}
	return st.simp.Do(r.Do(sink)), nil
}

// sumOfPanels is a sum of MMA whose factors are read from panels; nil where none
// is worth it.
func (p *paneller) sumOfPanels(u *ir.UOp) *ir.UOp {
	a := p.Arena
	rows, columns := a.ConstInt(u.DType, 1), a.ConstInt(u.DType, 1)
	for _, f := range analyse.Factors(u.Src[0]) {
		if p.dependsOn(f, p.Tile.Rows) {
			rows = Times(a, rows, f)
		} else {
			columns = Times(a, columns, f)
		}
	}
	sides := []*TileSide{p.Tile.Rows, p.Tile.Columns}
	if points := p.Tile.Points; points != nil && u.ReduceRange() != points.SubAxes[0].Range && p.dependsOn(columns, points) {
		sides[1] = points
	}
	var n [2]int
	var elem ir.DType
	elem, n[0], n[1] = TermsOfProduct(p.bounds, rows, columns)
	factors, replaced := []*ir.UOp{rows, columns}, false
	for k, side := range sides {
		f := factors[k]
		if !side.Staged || !p.dependsOn(f, side) || !p.free.Of(f).Has(p.free.Index.Of(u.ReduceRange())) || sumsMatrix(p.State, f) {
			continue // of sums the lanes have the values already
		}
		if k == 0 && elem == ir.F16 && n[k] == 1 && p.Tile.Group == nil {
			if scaled := p.scaledPanel(f, u.ReduceRange()); scaled != nil {
				factors[k], replaced = scaled, true
				continue
			}
		}
		terms := []Term{{ByteFactor(p.Arena, p.bounds, f, k == 0), 1}}
		if u.DType == ir.F32 {
			terms = p.terms(f, elem, n[k])
		}
		if terms[0].Value == nil {
			continue
		}
		values := lists.Map(terms, func(t Term) *ir.UOp { return t.Value })
		if p.Tile.Group != nil && n[k] == 1 {
			values = append(values, p.scaledFor(values[0], factors[1-k], elem, n[1-k])...)
		}
		reads := p.stage(f, values, side)
		factors[k], replaced = p.sumOf(terms, reads[:len(terms)], u.DType), true
		for i, read := range reads[len(terms):] {
			scale, _ := lastConstant(values[len(terms)+i])
			factors[k] = withScaled(a, factors[k], read, scale)
		}
	}
	if !replaced {
		return nil
	}
	return a.Reduce(ir.OpAdd, a.Mul(factors[0], factors[1]), u.ReduceRange())
}

// scaledPanel is a factor of rows, codes times integer scales of groups, read from two panels; nil for any other. In one panel threads
// would decode a scale for each of the few points of a group that one of them makes.
func (p *paneller) scaledPanel(f, point *ir.UOp) *ir.UOp {
	a := p.Arena
	var codes, scales []*ir.UOp
	for _, x := range analyse.Factors(f) {
		if p.free.Of(x).Has(p.free.Index.Of(point)) {
			codes = append(codes, x)
		} else {
			scales = append(scales, x)
		}
	}
	scale := analyse.Product(a, scales)
	if scale == nil || len(codes) == 0 || !p.dependsOn(scale, p.Tile.Rows) || len(p.inner(scale, p.Tile.Rows)) == 0 {
		return nil
	}
	half := func(x *ir.UOp) *ir.UOp {
		return a.Cast(p.stage(x, []*ir.UOp{a.Cast(x, ir.F16)}, p.Tile.Rows)[0], f.DType)
	}
	return a.Mul(half(analyse.Product(a, codes)), half(scale))
}

// scaledFor are a factor of one term times the powers of two that the terms of the other one are taken times: a warpgroup's instruction
// reads what it multiplies from panels, where a warp's takes fragments that it has multiplied.
func (p *paneller) scaledFor(value, other *ir.UOp, elem ir.DType, n int) (values []*ir.UOp) {
	stored := StoredTerms(other)
	if n < 2 || len(stored) != n || stored[0].Value.DType != elem {
		return nil
	}
	for _, t := range stored {
		if t.Scale != 1 {
			values = append(values, p.Arena.Mul(value, p.Arena.Const(elem, t.Scale)))
		}
	}
	return values
}

// sumOf is a factor as the sum of its terms, as they are read.
func (p *paneller) sumOf(terms []Term, reads []*ir.UOp, dtype ir.DType) (sum *ir.UOp) {
	a := p.Arena
	for i, read := range reads {
		term := a.Cast(read, dtype)
		if scale := terms[i].Scale; scale != 1 {
			term = a.Mul(term, a.Const(dtype, scale))
		}
		if sum == nil {
			sum = term
		} else {
			sum = a.Add(sum, term)
		}
	}
	return sum
}

// terms are what a float is the sum of: those that are stored, or each the rounded rest of those before.
func (p *paneller) terms(x *ir.UOp, elem ir.DType, n int) []Term {
	a := p.Arena
	if from := Narrowest(x, elem); from != x {
		return []Term{{from, 1}}
	}
	if stored := StoredTerms(x); len(stored) > 1 && stored[0].Value.DType == elem {
		return stored
	}
	if n == 1 && elem == ir.F16 && isTermCode(p.bounds, x) {
		return []Term{{HalfOf(a, p.bounds, x), 1}}
	}
	out := make([]Term, n)
	for i := range out {
		out[i] = Term{a.Cast(x, elem), 1}
		if i < n-1 {
			x = a.Sub(x, a.Cast(out[i].Value, ir.F32))
		}
	}
	return out
}

// scaled is a product, or a difference of products, with scales that are read from panels; nil where none is.
func (p *paneller) scaled(u *ir.UOp, rebuilt *ir.Rebuild) *ir.UOp {
	if u.Op != ir.OpSub {
		return p.scales(u, rebuilt)
	}
	x, y := p.scales(u.Src[0], rebuilt), p.scales(u.Src[1], rebuilt)
	switch {
	case x == nil && y == nil:
		return nil
	case x == nil:
		x = rebuilt.Of(u.Src[0])
	case y == nil:
		y = rebuilt.Of(u.Src[1])
	}
	return p.Arena.Sub(x, y)
}

// scales is a product with the factors of each side as one, read from a panel; nil
// where none is worth it. A factor that does not change in the loop is cheaper
// within the panel than as a load and a product of each lane.
func (p *paneller) scales(product *ir.UOp, rebuilt *ir.Rebuild) *ir.UOp {
	a := p.Arena
	var rest []*ir.UOp
	sides := make(map[*TileSide][]*ir.UOp)
	for _, f := range analyse.Factors(product) {
		side := p.Tile.Rows
		if p.dependsOn(f, p.Tile.Columns) {
			side = p.Tile.Columns
		}
		switch {
		case !p.dependsOn(f, side) || side == p.Tile.Columns && p.dependsOn(f, p.Tile.Rows) || !p.plain(f):
			rest = append(rest, rebuilt.Of(f))
		default:
			sides[side] = append(sides[side], f)
		}
	}
	order := []*TileSide{p.Tile.Rows, p.Tile.Columns}
	if !slices.ContainsFunc(rest, func(f *ir.UOp) bool { return p.dependsOn(f, p.Tile.Rows) }) {
		slices.Reverse(order) // a sum of columns is scaled once for all rows
	}
	replaced := false
	for _, side := range order {
		f := analyse.Product(a, sides[side])
		if f == nil {
			continue
		}
		if side.Staged && (f.DType.IsFloat() || f.DType == ir.I32) && len(p.inner(f, side)) > 0 {
			f, replaced = p.stage(f, []*ir.UOp{f}, side)[0], true
		}
		rest = append(rest, f)
	}
	if !replaced {
		return nil
	}
	out := rest[0]
	for _, f := range rest[1:] {
		out = a.Mul(f, out)
	}
	return out
}

// plain reports a factor without sums of its own.
func (p *paneller) plain(f *ir.UOp) bool {
	return !analyse.Any(f, func(x *ir.UOp) bool { return x.Op == ir.OpReduce || x.Op == ir.OpStage })
}

func (p *paneller) dependsOn(u *ir.UOp, side *TileSide) bool {
	free := p.free.Of(u)
	return slices.ContainsFunc(side.SubAxes, func(d SubAxis) bool {
		i, ok := p.free.Index.Get(d.Range)
		return ok && free.Has(i)
	})
}

// inner are the copies and points of sums on which a factor depends, outer before
// inner.
func (p *paneller) inner(u *ir.UOp, side *TileSide) []*ir.UOp {
	var copies, points []*ir.UOp
	for _, i := range p.free.Of(u).List() {
		switch r := p.free.Ranges[i]; {
		case side.has(r) || p.Tile.Rows.has(r) || p.Tile.Columns.has(r):
		case p.roles[r] == plan.Matrix:
			points = append(points, r)
		case p.roles[r] == plan.Unroll:
			copies = append(copies, r)
		}
	}
	return append(copies, points...)
}

// mostCopied is how many points of a panel that a warpgroup reads are copied without a loop, before which its instructions would have to end.
const mostCopied = 64

// panelFill is how the threads of a block fill a panel: the ranges of its array,
// innermost first, and where a read of each stands.
type panelFill struct {
	*paneller
	ranges, index []*ir.UOp
	copied        map[*ir.UOp]bool    // ranges that are copies of a sum
	ofPieces      map[*ir.UOp]bool    // of those, the pieces of an instruction's points
	inLine        map[*ir.UOp]bool    // of those, what lies in the line of a row that a warpgroup reads
	with          map[*ir.UOp]*ir.UOp // ranges of the factor -> those of the panel
	left          int64               // threads that are not taken yet
	withoutLoop   int64               // points of a range that a thread makes without a loop
}

func (f *panelFill) add(n int64, role plan.Role, at *ir.UOp) *ir.UOp {
	r := f.newRange(f.Arena.Index(n))
	f.place(r, role, orderKey{panelOrder, -r.Arg.(ir.RangeArg).ID})
	f.ranges, f.index = append(f.ranges, r), append(f.index, at)
	return r
}

// subAxes adds the n points of a value: threads, copies, a loop. It returns the
// value in the panel.
func (f *panelFill) subAxes(at *ir.UOp, n, threads int64) *ir.UOp {
	a, value, stride := f.Arena, f.Arena.Index(0), int64(1)
	take := func(n int64, role plan.Role, last bool) {
		if n < 2 {
			return
		}
		x := a.Div(at, a.Index(stride))
		if !last {
			x = a.Mod(x, a.Index(n))
		}
		value, stride = a.Add(value, a.Mul(f.add(n, role, x), a.Index(stride))), stride*n
	}
	t := ir.GCD(n, threads)
	f.left /= t
	take(t, plan.Local, t == n)
	u := ir.GCD(n/t, f.withoutLoop)
	take(u, plan.Unroll, t*u == n)
	take(n/t/u, plan.Serial, true)
	return value
}

// stage stores values over the ranges of x, all alike, and reads them. The array of
// a factor of rows is in the order of fragments: what a lane wants of both of its
// rows lies side by side, and one thread makes it. Neighbouring threads go on along the sum, where lines of memory do: of a warp
// whose threads each had a row of their own, an instruction to load takes the first cache as many steps as rows. On an H100
// panels of BF16 took 1.2 to 1.45 times as long so, and that cache was busy for 75 to 80 % of the time (decision 0048).
func (p *paneller) stage(x *ir.UOp, values []*ir.UOp, side *TileSide) []*ir.UOp {
	a, key := p.Arena, panelKey{values[0], side}
	if reads := p.read[key]; reads != nil {
		return reads
	}
	packed := analyse.Any(x, func(u *ir.UOp) bool { return u.Op == ir.OpField })
	f := &panelFill{paneller: p, copied: make(map[*ir.UOp]bool), ofPieces: make(map[*ir.UOp]bool), inLine: make(map[*ir.UOp]bool), with: make(map[*ir.UOp]*ir.UOp), left: p.Threads / p.elsewhere(x, side),
		withoutLoop: int64(p.Options.Program.Of(program.Fill))}
	if p.Tile.Group != nil && !packed {
		f.withoutLoop = mostCopied
	}
	inner := p.inner(x, side)
	var pieces []copyDigit
	matrix := len(inner) > 0 && p.roles[inner[len(inner)-1]] == plan.Matrix
	if matrix {
		r := inner[len(inner)-1]
		inner = inner[:len(inner)-1]
		if p.Tile.Group != nil {
			f.piece(r)
			pieces = append(pieces, copyDigit{of: r, stride: plan.GroupPieces, n: plan.MatrixPoints / plan.GroupPieces, spread: spreadOfPieces(packed)})
		} else {
			f.points(r, values[0].DType, side)
		}
	}
	rows := matrix && side == p.Tile.Rows && p.Tile.Group == nil
	if p.Tile.Points != nil || p.alongSide(x, side) { // lanes of a fragment, or what is loaded, lie side by side
		if rows {
			f.rowLanes()
		}
		f.side(x, side)
		rows = false
	}
	slices.Reverse(inner)
	digits := linesOf(pieces, lists.FlatMap(inner, func(r *ir.UOp) []copyDigit { return p.digits(x, r, matrix && packed) }))
	for _, d := range digits {
		if d.spread == byThreads {
			f.copies(d)
		}
	}
	if rows {
		f.rowLanes()
	}
	f.side(x, side)
	for spread := byThreadsLeft; spread <= byThread; spread++ {
		for _, d := range digits {
			if d.spread == spread {
				f.copies(d)
			}
		}
	}
	if matrix {
		f.putCopiesOutside()
	}
	src := make([]*ir.UOp, 1, len(f.ranges)+1)
	where := make([]*ir.UOp, 0, len(f.index))
	for k := len(f.ranges) - 1; k >= 0; k-- {
		src, where = append(src, f.ranges[k]), append(where, p.simp.Do(f.index[k]))
	}
	reads := make([]*ir.UOp, len(values))
	for k, v := range values {
		src[0] = p.simp.Do(a.Substitute(v, f.with))
		reads[k] = a.Load(a.Make(ir.OpStage, v.DType, ir.StageArg{Space: ir.SpaceShared}, append([]*ir.UOp(nil), src...)...), where...)
	}
	p.read[key] = reads
	return reads
}

// rowLanes adds the lanes of a fragment along the rows.
func (f *panelFill) rowLanes() {
	f.with[f.Tile.RowLane] = f.subAxes(f.Tile.RowLane, plan.RowLanes, f.left)
}

// copyDigit are the copies of a sum that are a stride apart.
type copyDigit struct {
	of        *ir.UOp
	stride, n int64
	spread    spread
	inLine    bool // they lie in the line of a row that a warpgroup reads
}

// spread is how early threads are taken for copies; those for which none are left a thread has all of.
type spread int

const (
	byThreads     spread = iota // before the rows: they read bytes of their own
	byThreadsLeft               // they share the bytes of packed weights, but not what those are scaled by
	byThread                    // they share both
)

// copies adds copies of a sum.
func (f *panelFill) copies(d copyDigit) {
	a, before := f.Arena, len(f.ranges)
	at := a.Mod(a.Div(d.of, a.Index(d.stride)), a.Index(d.n))
	value := a.Mul(f.subAxes(at, d.n, f.left), a.Index(d.stride))
	if rest := f.with[d.of]; rest != nil {
		value = a.Add(rest, value)
	}
	f.with[d.of] = value
	for _, r := range f.ranges[before:] {
		f.copied[r], f.inLine[r], f.ofPieces[r] = true, d.inLine, f.roles[d.of] == plan.Matrix
	}
}

// putCopiesOutside puts the copies of a sum around all else of the array: what the lanes of a warp read at once then lies side by side,
// in different banks, where between copies there would have to be gaps (kernel/lower: padding.go) that cost up to a fourth of the shared memory.
func (f *panelFill) putCopiesOutside() {
	var ranges, index []*ir.UOp
	outside := func(r *ir.UOp) int {
		switch {
		case r == f.ranges[0] || f.ofPieces[r]: // the points of a piece come first
			return 0
		case f.inLine[r]:
			return 1
		case f.copied[r]:
			return 3
		}
		return 2
	}
	for class := range 4 {
		for k, r := range f.ranges {
			if outside(r) == class {
				ranges, index = append(ranges, r), append(index, f.index[k])
			}
		}
	}
	f.ranges, f.index = ranges, index
}

// digits takes the copies of a sum apart, those of packed weights into what reads other bytes and what shares them: both
// halves of a byte, which one thread then loads once, with what both are scaled by.
func (p *paneller) digits(x, r *ir.UOp, packed bool) (list []copyDigit) {
	n, _ := r.Src[0].Int()
	if !packed {
		return []copyDigit{{of: r, stride: 1, n: n}}
	}
	for stride := int64(1); stride < n; {
		size := int64(2)
		if n/stride%2 != 0 {
			size = n / stride
		}
		d := copyDigit{of: r, stride: stride, n: size, spread: p.spreadOf(x, r, stride, size)}
		if last := len(list) - 1; last >= 0 && list[last].spread == d.spread {
			list[last].n *= size
		} else {
			list = append(list, d)
		}
		stride *= size
	}
	return list
}

// spreadOf is how copies, so many a stride apart, are dealt out.
func (p *paneller) spreadOf(x, r *ir.UOp, stride, n int64) spread {
	switch {
	case p.moves(x, r, stride, n, true):
		return byThreads
	case p.moves(x, r, stride, n, false):
		return byThreadsLeft
	}
	return byThread
}

// moves reports copies, so many a stride apart, of which any reads other bytes of packed weights than the first: of fields of
// which each point has bytes, or of those that serve all points of a copy.
func (p *paneller) moves(x, r *ir.UOp, stride, n int64, points bool) bool {
	copies, _ := r.Src[0].Int()
	return analyse.Any(x, func(u *ir.UOp) bool {
		if u.Op != ir.OpField || p.ofPoints(u) != points {
			return false
		}
		return slices.ContainsFunc(u.Indices(), func(at *ir.UOp) bool {
			of := lists.Make(int(copies), func(c int) *ir.UOp {
				return p.simp.Do(p.Arena.Substitute(at, map[*ir.UOp]*ir.UOp{r: p.Arena.Index(int64(c))}))
			})
			for c := range copies {
				if first := c - c/stride%n*stride; of[c] != of[first] {
					return true
				}
			}
			return false
		})
	})
}

// ofPoints reports a field of which each point of a matrix instruction has bytes.
func (p *paneller) ofPoints(field *ir.UOp) bool {
	return slices.ContainsFunc(p.free.Of(field).List(), func(i int) bool { return p.roles[p.free.Ranges[i]] == plan.Matrix })
}

// alongSide reports a factor whose elements in memory lie side by side along the rows or
// columns of a tile: neighbouring threads then load those. With neighbours along the sum, as
// in a matrix whose rows are summed, each lane of a warp would read a sector of memory for
// one element: the right matrix of 512 x 512 x 512 took 16,000 sectors a step.
func (p *paneller) alongSide(x *ir.UOp, side *TileSide) bool {
	low := side.SubAxes[0].Range
	linear := ir.NewLinearizer(p.Arena)
	return analyse.Any(x, func(u *ir.UOp) bool {
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam {
			return false
		}
		index := u.Indices()
		terms := linear.Of(p.simp.Do(index[len(index)-1])).Terms
		return slices.ContainsFunc(terms, func(t ir.Term) bool { return t.Atom == low && t.Coef == 1 })
	})
}

// elsewhere is the number of parts of a block's threads that fill panels of their
// own: what lies there differs among them.
func (p *paneller) elsewhere(x *ir.UOp, side *TileSide) int64 {
	parts := int64(1)
	for _, i := range p.free.Of(x).List() {
		r := p.free.Ranges[i]
		if n, ok := r.Src[0].Int(); ok && p.roles[r].IsThread() && !side.has(r) {
			parts *= n
		}
	}
	return parts
}

// side adds the sub-axes of a side on which a factor depends, and which stand nowhere
// in the panel yet.
func (f *panelFill) side(x *ir.UOp, side *TileSide) {
	a, own := f.Arena, f.free.Of(x)
	at, n := a.Index(0), int64(1)
	var subAxes []*ir.UOp
	for _, d := range side.SubAxes {
		if i, ok := f.free.Index.Get(d.Range); ok && own.Has(i) && f.with[d.Range] == nil {
			place := d.Range
			if d.Role == plan.Matrix {
				place = f.columnOf(d.Range)
			}
			at = a.Add(at, a.Mul(place, a.Index(n)))
			extent, _ := d.Range.Src[0].Int()
			n *= extent
			subAxes = append(subAxes, d.Range)
		}
	}
	if n < 2 {
		return
	}
	value := f.subAxes(at, n, f.left)
	for _, r := range subAxes {
		f.with[r] = a.Mod(value, r.Src[0])
		if f.roles[r] == plan.Matrix {
			f.with[r] = f.pointOf(f.with[r])
		}
		value = a.Div(value, r.Src[0])
	}
}

// columnOf is where a point of a tile lies among the columns of two tiles: those of
// the first, which have the first two points of each lane, then the others.
func (f *panelFill) columnOf(point *ir.UOp) *ir.UOp {
	a := f.Arena
	half := a.Mod(a.Div(point, a.Index(plan.ColumnCopies)), a.Index(plan.LanePoints/plan.ColumnCopies))
	return a.Add(a.Mul(half, a.Index(plan.MatrixColumns)), a.Add(a.Mul(a.Div(point, a.Index(plan.LanePoints)), a.Index(plan.ColumnCopies)), a.Mod(point, a.Index(plan.ColumnCopies))))
}

// pointOf is the inverse of columnOf.
func (f *panelFill) pointOf(column *ir.UOp) *ir.UOp {
	a := f.Arena
	lane := a.Mod(a.Div(column, a.Index(plan.ColumnCopies)), a.Index(plan.ColumnLanes))
	half := a.Div(column, a.Index(plan.MatrixColumns))
	return a.Add(a.Mul(lane, a.Index(plan.LanePoints)), a.Add(a.Mul(half, a.Index(plan.ColumnCopies)), a.Mod(column, a.Index(plan.ColumnCopies))))
}

// points adds the points of a tile's sum, four for each lane; of rows, those of the
// lane's other row with them, in the instruction's order: words of a row, then of the
// other. The instruction wants them in neighbouring registers, so that any other
// order costs moves.
func (f *panelFill) points(r *ir.UOp, elem ir.DType, side *TileSide) {
	a := f.Arena
	word := int64(BankBytes / elem.Size())
	value := f.add(word, plan.Lane, a.Mod(r, a.Index(word)))
	if side == f.Tile.Rows {
		f.with[f.Tile.RowCopy] = f.add(plan.RowCopies, plan.Lane, f.Tile.RowCopy)
	}
	if word < plan.LanePoints {
		value = a.Add(value, a.Mul(f.add(plan.LanePoints/word, plan.Lane, a.Mod(a.Div(r, a.Index(word)), a.Index(plan.LanePoints/word))), a.Index(word)))
	}
	f.with[r] = a.Add(value, a.Mul(f.subAxes(a.Div(r, a.Index(plan.LanePoints)), plan.MatrixPoints/plan.LanePoints, f.left), a.Index(plan.LanePoints)))
}

// piece adds the neighbouring points that a warpgroup's instruction wants side by side.
func (f *panelFill) piece(r *ir.UOp) {
	f.with[r] = f.add(plan.GroupPieces, plan.Lane, f.Arena.Mod(r, f.Arena.Index(plan.GroupPieces)))
}

// linesOf puts the pieces of the points of a warpgroup's instruction, and of as many copies as a line holds, into the line of a row.
func linesOf(pieces, copies []copyDigit) (list []copyDigit) {
	if pieces == nil {
		return copies
	}
	left := int64(plan.LinePieces)
	for _, d := range append(pieces, copies...) {
		n := ir.GCD(d.n, left)
		if left /= n; n > 1 {
			list = append(list, copyDigit{of: d.of, stride: d.stride, n: n, spread: d.spread, inLine: true})
		}
		if n < d.n {
			list = append(list, copyDigit{of: d.of, stride: d.stride * n, n: d.n / n, spread: d.spread})
			left = 1
		}
	}
	return list
}

// spreadOfPieces is how the pieces of an instruction's points are dealt out: one thread makes all of packed weights, which
// mostly have a scale in common.
func spreadOfPieces(packed bool) spread {
	if packed {
		return byThread
	}
	return byThreads
}

// BankBytes is the width of a bank of shared memory.
const BankBytes = 4

// IsSharedTile reports a stage that is filled together with others.
func IsSharedTile(stage *ir.UOp) bool { return stage.Arg.(ir.StageArg).Space == ir.SpaceShared }
