package lower

import (
	"cmp"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Lowering of sums over sub-axes of MMA.
//
// Factors of integer sums are bytes, as the instruction takes them (matrixbytes.go). Other
// factors are f32, the instruction's are bf16 or f16: a factor becomes as many
// terms as hold all its bits, three bf16 at most (24 bits). Products of terms
// that together lie below the last bit of an f32 are left out: a factor of small
// integers times any float takes three instructions, two floats take six. All
// are summed in f32.

// matrices writes sums of matrix instructions.
type matrices struct {
	*lowering
	sums      map[*ir.UOp]*matrixSum
	chains    map[chainKey]*matrixChain
	fragments map[fragmentKey][]*program.Value
	scaled    map[scaledKey]*program.Value
	offsets   map[offsetKey][]*program.Value
}

// offsetKey names the products of an offset and the columns of a chain.
type offsetKey struct {
	scope  *scope
	node   memoKey
	steps  int
	offset int64
}

// scaledKey names a fragment times a scale.
type scaledKey struct {
	fragment *program.Value
	scale    float64
}

// chainKey names the instructions for a tile.
type chainKey struct {
	scope *scope
	node  memoKey
}

// matrixChain are the instructions for a tile, each of which goes on with the sum of the one before: one for each of the
// copies of a sum and each pair of terms, the small ones of two copies before the large ones.
type matrixChain struct {
	steps []matrixStep
	sum   *program.Value // of the first so many steps; of integers, of all
	done  int

	places []*program.Value // of the bytes of integers: the sum of the products of each place
}

// matrixStep are the products of terms of a place at a copy of a sum: place 0 has those of the largest.
type matrixStep struct {
	at    coords
	place int
}

// copiesTogether are those whose terms are held at once: a sum that large terms are not in yet is rounded, or cut off, less.
const copiesTogether = 2

// fragmentKey names the terms of a side at some coordinates.
type fragmentKey struct {
	scope *scope
	node  memoKey
	elem  ir.DType
}

// mostTerms: products of terms i and j with i+j at or past it are left out.
// Two halves hold as many bits as three terms of bf16, but for one.
const (
	mostTerms  = 3
	mostHalves = 2
)

// matrixSum emits the instructions for all copies of a tile and picks one; of
// columns that are a lane's points, all of them.
func (l *matrices) matrixSum(u *ir.UOp, m *matrixSum, at coords) val {
	r, first := l.copyAt(u, at, l.free.Index.Of(l.Tile.RowCopy)), l.firstOf(m, at)
	if len(m.tiles) > 1 {
		low, high := l.matrixTile(m, 0, first), l.matrixTile(m, 1, first)
		n := plan.ColumnCopies * plan.RowCopies
		v := l.b.Shuffle(low, high, plan.ColumnCopies*r, plan.ColumnCopies*r+1, n+plan.ColumnCopies*r, n+plan.ColumnCopies*r+1)
		return val{v: v, subAxes: []int{l.free.Index.Of(l.Tile.Point)}, depth: l.scopes.top()}
	}
	c := l.copyAt(u, at, l.free.Index.Of(l.Tile.ColumnCopy))
	return val{v: l.b.Extract(l.matrixTile(m, 0, first), l.placeOf(u, at, r, c)), depth: l.scopes.top()}
}

// firstOf are the coordinates of a tile's first element, at the first copy of its sum.
func (l *matrices) firstOf(m *matrixSum, at coords) coords {
	at = at.with(l.free.Index.Of(l.Tile.RowCopy), 0).with(l.free.Index.Of(l.Tile.ColumnCopy), 0)
	for _, c := range m.copies {
		at = at.with(l.free.Index.Of(c), 0)
	}
	if g := l.Tile.Group; g != nil {
		for _, c := range g.ColumnTiles {
			at = at.with(l.free.Index.Of(c), 0)
		}
	}
	return at
}

// placeOf is which of the results of an instruction is that of copies of the lane's rows and columns.
func (l *matrices) placeOf(u *ir.UOp, at coords, row, column int) int {
	place := plan.ColumnCopies*row + column
	if g := l.Tile.Group; g != nil {
		tiles := plan.RowCopies * plan.ColumnCopies
		for _, r := range g.ColumnTiles {
			i := l.free.Index.Of(r)
			place += tiles * l.copyAt(u, at, i)
			tiles *= int(l.extent[i])
		}
	}
	return place
}

// results are how many an instruction gives a thread.
func (l *matrices) results() int {
	if g := l.Tile.Group; g != nil {
		return int(g.Columns()) / plan.MatrixColumns * plan.RowCopies * plan.ColumnCopies
	}
	return plan.RowCopies * plan.ColumnCopies
}

// matrixTile is the result of the instructions for a tile of columns: of both rows
// of the lane, two columns each.
func (l *matrices) matrixTile(m *matrixSum, i int, at coords) *program.Value {
	t := m.tiles[i]
	c := l.chainOf(m, t, at)
	l.goOn(m, t, c, len(c.steps))
	return c.sum
}

// chainOf are the instructions for a tile.
func (l *matrices) chainOf(m *matrixSum, t columnTile, at coords) *matrixChain {
	key := chainKey{l.scopes.stack[l.scopes.depth(t.product)], l.scopes.key(t.product, at)}
	chain, ok := l.chains[key]
	if !ok {
		chain = &matrixChain{}
		points := []coords{at}
		for _, c := range m.copies {
			i := l.free.Index.Of(c)
			points = lists.FlatMap(points, func(at coords) []coords {
				return lists.Make(int(l.extent[i]), func(k int) coords { return at.with(i, int32(k)) })
			})
		}
		places := l.places(m, t)
		for together := range slices.Chunk(points, copiesTogether) {
			for place := places - 1; place >= 0; place-- {
				for _, at := range together {
					chain.steps = append(chain.steps, matrixStep{at, place})
				}
			}
		}
		l.chains[key] = chain
	}
	return chain
}

// places are how many the products of two factors' terms have.
func (l *matrices) places(m *matrixSum, t columnTile) int {
	if m.rows.DType.IsInt() {
		return 1
	}
	elem, nx, ny := shape.TermsOfProduct(l.Bounds, m.rows, t.columns)
	if elem == ir.F16 {
		return min(nx+ny-1, mostHalves)
	}
	return min(nx+ny-1, mostTerms)
}

// goOn writes up to so many steps of the instructions for a tile of columns.
func (l *matrices) goOn(m *matrixSum, t columnTile, c *matrixChain, steps int) {
	l.scopes.in(l.scopes.depth(t.product), func() {
		for c.done < min(steps, len(c.steps)) {
			l.block.mustBeUniform(l.Tile.Group == nil)
			if m.rows.DType.IsInt() {
				l.goOnWithIntegers(m, t, c)
				continue
			}
			step := c.steps[c.done]
			c.done++
			if c.sum == nil {
				c.sum = l.b.Zero(program.Vector(m.rows.DType, l.results()))
			}
			if l.Tile.Group != nil {
				c.sum = l.multiplyGroup(c.sum, m.rows, t.columns, step)
				continue
			}
			c.sum = l.multiply(c.sum, m.rows, t.columns, step)
		}
	})
}

// copyAt is the coordinate of a copy on which a node may not depend: all are
// equal then.
func (l *matrices) copyAt(u *ir.UOp, at coords, i int) int {
	if !l.free.Of(u).Has(i) {
		return 0
	}
	return int(at[i])
}

// multiply adds to a sum the products of a step.
func (l *matrices) multiply(acc *program.Value, row, column *ir.UOp, step matrixStep) *program.Value {
	elem, nx, ny := shape.TermsOfProduct(l.Bounds, row, column)
	rows, columns := l.sideFragments(row, step.at, elem, nx, l.rowFragment), l.sideFragments(column, step.at, elem, ny, l.columnFragment)
	rowScales, columnScales := scalesOf(row, elem, nx), scalesOf(column, elem, ny)
	for i := range nx {
		if j := step.place - i; j >= 0 && j < ny {
			for part := range len(rows) / nx {
				x, y := rows[part*nx+i], columns[part*ny+j]
				if nx == 1 { // the factor that is one term can be scaled, too: an integer
					x = l.timesScale(row, step.at, x, columnScales[j])
				} else {
					y = l.timesScale(column, step.at, y, rowScales[i])
				}
				acc = l.b.Mma(acc, x, y)
			}
		}
	}
	return acc
}

// scalesOf are the powers of two that the terms of a side are taken times.
func scalesOf(u *ir.UOp, elem ir.DType, n int) []float64 {
	scales := lists.Make(n, func(int) float64 { return 1 })
	if stored := storedTerms(u, elem, n); stored != nil {
		scales = lists.Map(stored, func(t shape.Term) float64 { return t.Scale })
	}
	return scales
}

// timesScale is a fragment of a side times a power of two, once for all instructions that take it.
func (l *matrices) timesScale(u *ir.UOp, at coords, fragment *program.Value, scale float64) *program.Value {
	if scale == 1 {
		return fragment
	}
	key := scaledKey{fragment, scale}
	scaled, ok := l.scaled[key]
	if !ok {
		l.scopes.in(l.scopes.depth(u), func() { scaled = l.b.Mul(fragment, l.b.Float(fragment.Type, scale)) })
		l.scaled[key] = scaled
	}
	return scaled
}

// goOnWithIntegers adds the products of a step to the sums of a chain, a sum for each place of bytes; those of the step after it, too,
// where an instruction takes the points of both. Behind the last step the sums are put together.
func (l *matrices) goOnWithIntegers(m *matrixSum, t columnTile, c *matrixChain) {
	steps := l.stepsTogether(t, c, c.done)
	rows := together(l.b, steps, func(at coords) []*program.Value { return l.rowFragment(m.rows, at, m.rows.DType, 1) })
	columns := l.columnBytes(t, steps)
	if c.places == nil {
		c.places = l.firstPlaces(m, t, c, min(len(rows)+len(columns)-1, t.product.DType.Size()))
	}
	l.addProducts(c.places, rows, columns)
	if c.done += len(steps); c.done == len(c.steps) {
		c.sum = l.b.Cast(l.joinPlaces(c.places), t.product.DType)
	}
}

// addProducts adds the products of bytes to the sums of their places.
func (l *matrices) addProducts(sums, rows, columns []*program.Value) {
	for i, x := range rows {
		for j, y := range columns {
			if place := i + j; place < len(sums) {
				sums[place] = l.b.Mma(sums[place], x, y)
			}
		}
	}
}

// stepsTogether are the steps of a chain, from one on, that an instruction takes.
func (l *matrices) stepsTogether(t columnTile, c *matrixChain, first int) []matrixStep {
	steps := c.steps[first : first+1]
	if first+1 < len(c.steps) && l.columnBytes(t, steps)[0].Type.Lanes == plan.LanePoints {
		steps = c.steps[first : first+2]
	}
	return steps
}

// columnBytes are the bytes of a tile of columns at the points of an instruction.
func (l *matrices) columnBytes(t columnTile, steps []matrixStep) []*program.Value {
	return together(l.b, steps, func(at coords) []*program.Value { return l.columnFragment(t.columns, at, t.columns.DType, 1) })
}

// together are the bytes of a factor at the points of several steps.
func together(b *program.Builder, steps []matrixStep, fragment func(at coords) []*program.Value) []*program.Value {
	all := fragment(steps[0].at)
	for _, s := range steps[1:] {
		more := fragment(s.at)
		all = lists.Make(len(all), func(i int) *program.Value { return b.Concat(all[i], more[i]) })
	}
	return all
}

// firstPlaces are what the sums of a chain's places begin with: of rows that have an offset, the products of the offset and the columns, once
// for all tiles of rows.
func (l *matrices) firstPlaces(m *matrixSum, t columnTile, c *matrixChain, n int) []*program.Value {
	zeros := lists.Make(n, func(int) *program.Value { return l.b.Zero(program.Vector(ir.I32, plan.RowCopies*plan.ColumnCopies)) })
	if m.offset == 0 {
		return zeros
	}
	d := l.scopes.depth(t.columns)
	key := offsetKey{l.scopes.stack[d], l.scopes.key(t.columns, c.steps[0].at), len(c.steps), m.offset}
	sums, ok := l.offsets[key]
	if !ok {
		l.scopes.in(d, func() {
			sums = zeros
			for i := 0; i < len(c.steps); {
				steps := l.stepsTogether(t, c, i)
				bytes := l.columnBytes(t, steps)
				offset := l.b.Int(program.Vector(ir.I8, plan.RowCopies*bytes[0].Type.Lanes), m.offset)
				l.addProducts(sums, []*program.Value{offset}, bytes)
				i += len(steps)
			}
		})
		l.offsets[key] = sums
	}
	return slices.Clone(sums)
}

// joinPlaces puts the sums of places of bytes together, those of high places first.
func (l *matrices) joinPlaces(places []*program.Value) *program.Value {
	sum := places[len(places)-1]
	for _, lower := range slices.Backward(places[:len(places)-1]) {
		sum = l.b.Add(l.b.Alu(ir.OpShl, sum, l.b.Int(sum.Type, 8)), lower)
	}
	return sum
}

// sideFragments are the terms of a side: those that a panel holds, or all of one
// float. Of sums of more elements than an instruction takes they are those of the first,
// then of those that follow.
func (l *matrices) sideFragments(u *ir.UOp, at coords, elem ir.DType, n int, fragment func(*ir.UOp, coords, ir.DType, int) []*program.Value) []*program.Value {
	stored := storedTerms(u, elem, n)
	if stored == nil {
		return fragment(shape.Narrowest(u, elem), at, elem, n)
	}
	terms := lists.Map(stored, func(t shape.Term) []*program.Value { return fragment(t.Value, at, elem, 1) })
	var out []*program.Value
	for part := range terms[0] {
		for _, of := range terms {
			out = append(out, of[part])
		}
	}
	return out
}

// rowFragment are the terms of the lane's points in both of its rows, in the
// instruction's order: words of one row and of the other in turn. A word holds two
// halves or four bytes.
func (l *matrices) rowFragment(u *ir.UOp, at coords, elem ir.DType, n int) []*program.Value {
	i := l.free.Index.Of(l.Tile.RowCopy)
	return l.fragment(u, at, elem, func() []*program.Value {
		if l.isFragment(u) {
			return []*program.Value{l.panelFragment(u, at)}
		}
		if code, scale := l.scaledFragment(u, elem); code != nil {
			return []*program.Value{l.b.Mul(l.panelFragment(code, at), l.rowScales(scale, at, elem))}
		}
		low, high := l.lanePoints(u, at.with(i, 0)), l.lanePoints(u, at.with(i, 1))
		if u.DType.IsInt() {
			lows, highs := bytesOf(l.b, l.Bounds, low, u), bytesOf(l.b, l.Bounds, high, u)
			return lists.Make(len(lows), func(i int) *program.Value {
				return l.wordsInTurn(lows[i], highs[i], 0, low.Type.Lanes, wordBytes)
			})
		}
		if n == 1 { // bytes that lie side by side become halves together
			low, high = l.split(low, elem, n)[0], l.split(high, elem, n)[0]
		}
		var terms []*program.Value
		for first := 0; first < low.Type.Lanes; first += plan.LanePoints {
			terms = append(terms, l.split(l.wordsInTurn(low, high, first, plan.LanePoints, max(wordBytes/elem.Size(), 1)), elem, n)...)
		}
		return terms
	})
}

// scaledFragment takes a read of rows in the order of fragments times a scale of each row apart; code is nil for any other factor.
func (l *matrices) scaledFragment(u *ir.UOp, elem ir.DType) (code, scale *ir.UOp) {
	if u.Op != ir.OpMul || elem != ir.F16 {
		return nil, nil
	}
	code, scale = shape.Narrowest(u.Src[0], elem), shape.Narrowest(u.Src[1], elem)
	if code.DType != elem || scale.DType != elem || !l.isFragment(code) || l.free.Of(scale).Has(l.free.Index.Of(l.Tile.Point)) {
		return nil, nil
	}
	return code, scale
}

// rowScales are the scales of both rows of a lane, each at the row's places of a fragment.
func (l *matrices) rowScales(u *ir.UOp, at coords, elem ir.DType) *program.Value {
	row := func(copy int32) *program.Value {
		v := l.exprs.settle(l.exprs.lower(u, at.with(l.free.Index.Of(l.Tile.RowCopy), copy)))
		return l.b.Broadcast(l.exprs.expand(v, nil), plan.LanePoints)
	}
	return l.wordsInTurn(row(0), row(1), 0, plan.LanePoints, wordBytes/elem.Size())
}

// wordsInTurn are some points of two rows, a word of so many of each in turn.
func (l *matrices) wordsInTurn(low, high *program.Value, first, points, word int) *program.Value {
	var order []int
	for k := first; k < first+points; k += word {
		for row := range plan.RowCopies {
			for i := range word {
				order = append(order, row*low.Type.Lanes+k+i)
			}
		}
	}
	return l.b.Shuffle(low, high, order...)
}

// isFragment reports a read of rows that lie in a panel in the order of fragments.
func (l *matrices) isFragment(u *ir.UOp) bool {
	if l.Tile == nil || u.Op != ir.OpLoad || u.Src[0].Op != ir.OpStage || !shape.IsSharedTile(u.Src[0]) {
		return false
	}
	free := l.free.Of(u)
	return free.Has(l.free.Index.Of(l.Tile.Point)) && free.Has(l.free.Index.Of(l.Tile.RowCopy))
}

// panelFragment is a fragment of rows that lies in a panel as the instruction wants
// it.
func (l *matrices) panelFragment(u *ir.UOp, at coords) *program.Value {
	a, stage := l.Arena, u.Src[0]
	first := map[*ir.UOp]*ir.UOp{l.Tile.Point: a.Index(0), l.Tile.RowCopy: a.Index(0)}
	index := lists.Map(u.Indices(), func(x *ir.UOp) *ir.UOp { return l.Simplify.Do(a.Substitute(x, first)) })
	read := a.Load(stage, index...)
	array := l.stager.fillStage(stage, at)
	p := l.memory.placeOf(array, l.stager.readAddress(read), int64(stage.DType.Size()), at)
	return l.b.Load(p.ptr, plan.RowCopies*plan.LanePoints, p.align)
}

// columnFragment are the terms of the lane's points in column lane/4.
func (l *matrices) columnFragment(u *ir.UOp, at coords, elem ir.DType, n int) []*program.Value {
	return l.fragment(u, at, elem, func() []*program.Value {
		points := l.lanePoints(u, at)
		if u.DType.IsInt() {
			return bytesOf(l.b, l.Bounds, points, u)
		}
		var terms []*program.Value
		for first := 0; first < points.Type.Lanes; first += plan.LanePoints {
			terms = append(terms, l.split(l.b.Slice(points, first, plan.LanePoints), elem, n)...)
		}
		return terms
	})
}

// fragment emits terms once, in the outermost scope where they can stand.
func (l *matrices) fragment(u *ir.UOp, at coords, elem ir.DType, make func() []*program.Value) []*program.Value {
	d := l.scopes.depth(u)
	key := fragmentKey{l.scopes.stack[d], l.scopes.key(u, at), elem}
	terms, ok := l.fragments[key]
	if !ok {
		l.scopes.in(d, func() { terms = make() })
		l.fragments[key] = terms
	}
	return terms
}

// lanePoints is a factor at the lane's points: a vector.
func (l *matrices) lanePoints(u *ir.UOp, at coords) *program.Value {
	return l.exprs.expand(l.exprs.settle(l.exprs.lower(u, at)), []int{l.free.Index.Of(l.Tile.Point)})
}

// split writes floats as n terms, each the rounded rest of those before.
func (l *matrices) split(x *program.Value, elem ir.DType, n int) []*program.Value {
	if x.Type.Elem == elem {
		return []*program.Value{x}
	}
	terms := make([]*program.Value, n)
	for i := range terms {
		terms[i] = l.b.Cast(x, elem)
		if i < n-1 {
			x = l.b.Sub(x, l.b.Cast(terms[i], ir.F32))
		}
	}
	return terms
}

// holdsMatrix reports a sum around matrix instructions.
func (l *matrices) holdsMatrix(u *ir.UOp) bool {
	for x := range l.sums {
		if l.loops.contains(u, x) {
			return true
		}
	}
	return false
}

// tileMembers accumulates sums in an open loop of a kernel with matrix instructions:
// one accumulator for each copy of a result, and of the copies of the sums one after
// the other, each for all results of all sums, those that an instruction goes on with too. So the fragments of few copies are
// held at a time, not those of all.
func (l *matrices) tileMembers(open *program.Loop, sums []*ir.UOp, home *scope) []carry {
	members := make([]*tileMember, len(sums))
	most := 0
	for i, u := range sums {
		m := &tileMember{lowering: l.lowering, node: u, points: l.loops.combos(l.free.Of(u))}
		if inner := l.sums[u.Src[0]]; inner != nil && inner.around {
			m.around = inner
		}
		for _, at := range m.points {
			m.summands = append(m.summands, l.loops.pointsOf(u.Src[0], at, analyse.RangeSet{}, nil))
		}
		m.sums = make([]val, len(m.points))
		members[i], most = m, max(most, len(m.summands[0]))
	}
	for j := range most {
		list := slices.DeleteFunc(slices.Clone(members), func(m *tileMember) bool { return j >= len(m.summands[0]) })
		for _, m := range list {
			m.begin(open, j)
		}
		for n, more := 1, true; more; n++ {
			more = false
			for _, m := range list {
				more = m.goOn(j, n) || more
			}
		}
		for _, m := range list {
			m.add(open, j)
		}
	}
	var carries []carry
	for _, m := range members {
		for k, at := range m.points {
			key, sum, depth := l.scopes.key(m.node, at), m.sums[k], l.scopes.top()-1
			carries = append(carries, carry{sum.v, func(r *program.Value) { home.memo[key] = val{v: r, subAxes: sum.subAxes, depth: depth} }})
		}
	}
	return carries
}

// tileMember is one of the sums that a loop accumulates.
type tileMember struct {
	*lowering
	node     *ir.UOp
	points   []coords     // copies of the result
	summands [][]sumPoint // by point: copies of the sum
	sums     []val        // by point
	around   *matrixSum   // whose instructions go on with the accumulators; nil where they are added
}

// begin starts the instructions of copy j of the sum from what is summed up so far, where they go on with the accumulators.
func (m *tileMember) begin(open *program.Loop, j int) {
	if m.around == nil {
		return
	}
	var chains []*matrixChain
	sums := make(map[*matrixChain][]*program.Value)
	for k := range m.points {
		if j == 0 {
			m.sums[k] = val{v: m.b.Carry(open, m.b.Zero(program.Scalar(m.node.DType)))}
		}
		chain, place := m.chainOf(k, j)
		if sums[chain] == nil {
			chains = append(chains, chain)
			sums[chain] = make([]*program.Value, m.mma.results())
		}
		sums[chain][place] = m.sums[k].v
	}
	for _, chain := range chains {
		of := sums[chain]
		for i := range of { // a result that is the same for both copies is in all of its places
			tile := i - i%(plan.RowCopies*plan.ColumnCopies)
			of[i] = cmp.Or(of[i], of[tile+i%plan.ColumnCopies], of[i-i%plan.ColumnCopies], of[tile], of[i%plan.ColumnCopies], of[0])
		}
		chain.sum = m.b.Concat(of...)
	}
}

// chainOf are the instructions that make point k at copy j of the sum, and which of their results it is.
func (m *tileMember) chainOf(k, j int) (chain *matrixChain, place int) {
	p := m.summands[k][j]
	r, c := m.mma.copyAt(p.node, p.at, m.free.Index.Of(m.Tile.RowCopy)), m.mma.copyAt(p.node, p.at, m.free.Index.Of(m.Tile.ColumnCopy))
	return m.mma.chainOf(m.around, m.around.tiles[0], m.mma.firstOf(m.around, p.at)), m.mma.placeOf(p.node, p.at, r, c)
}

// goOn writes up to n steps of the instructions of copy j of the sum for all results, where it is a sum with which instructions go on, and
// reports whether more are left.
func (m *tileMember) goOn(j, n int) (more bool) {
	sum := m.mma.sums[m.summands[0][j].node]
	if sum == nil {
		return false
	}
	for k := range m.points {
		first := m.mma.firstOf(sum, m.summands[k][j].at)
		for _, t := range sum.tiles {
			c := m.mma.chainOf(sum, t, first)
			m.mma.goOn(sum, t, c, n)
			more = more || n < len(c.steps)
		}
	}
	return more
}

// add accumulates copy j of the sum for all results.
func (m *tileMember) add(open *program.Loop, j int) {
	for k := range m.points {
		p := m.summands[k][j]
		if m.around != nil {
			chain, place := m.chainOf(k, j)
			m.sums[k].v = m.b.Extract(chain.sum, place)
			continue
		}
		terms := m.loops.terms(p.node, p.at, p.pend)
		subAxes, pend := m.loops.alignTerms(terms)
		if !pend.Empty() {
			fail("plan: lanes of a sum beside matrix instructions stay open")
		}
		if j == 0 {
			zero := m.b.Zero(program.Vector(storedType(m.node.DType), m.exprs.laneCount(subAxes)))
			m.sums[k] = val{v: m.b.Carry(open, zero), subAxes: subAxes}
		}
		for _, t := range terms {
			m.sums[k] = m.loops.accumulate(m.sums[k], t, m.sums[k].subAxes)
		}
	}
}

// Products of a warpgroup (Opt WGMMA). Both factors lie in panels in shared memory, each of their terms in one of its own: points of
// the sum in pieces of eight, a line of eight pieces for each row, in an order that differs from row to row (ir/program: group.go). The
// instruction reads them there. A term that a factor's instruction is to take times a power of two has a panel, too (shape.ScaledCopies).

// multiplyGroup adds to a sum the products of a step.
func (l *matrices) multiplyGroup(acc *program.Value, row, column *ir.UOp, step matrixStep) *program.Value {
	elem, nx, ny := shape.TermsOfProduct(l.Bounds, row, column)
	rows, columns := groupTerms(row, elem, nx), groupTerms(column, elem, ny)
	for i, x := range rows {
		j := step.place - i
		if j < 0 || j >= ny {
			continue
		}
		y := columns[j]
		if nx == 1 {
			x.Value = scaledCopy(row, x.Value, y.Scale)
		} else {
			y.Value = scaledCopy(column, y.Value, x.Scale)
		}
		acc = l.b.GroupMma(acc, l.groupPanel(x.Value, step.at), l.groupPanel(y.Value, step.at))
	}
	return acc
}

// scaledCopy is the panel of a factor of one term times a power of two.
func scaledCopy(u, value *ir.UOp, scale float64) *ir.UOp {
	if scale == 1 {
		return value
	}
	for _, c := range shape.ScaledCopies(u) {
		if c.Scale == scale {
			return c.Value
		}
	}
	fail("plan: WGMMA of a factor that is in no tile times %g", scale)
	return nil
}

// groupPanel is where an instruction finds a term of a factor: the panel that it is read from, filled, at the first row and point.
func (l *matrices) groupPanel(u *ir.UOp, at coords) *program.Value {
	stage := u.Src[0]
	read := l.readAt(u, l.firstOfGroup(nil))
	array := l.stager.fillStage(stage, at)
	return l.memory.placeOf(array, l.stager.readAddress(read), int64(stage.DType.Size()), at).ptr
}

// firstOfGroup binds the ranges of a tile to its first element, but for some.
func (l *matrices) firstOfGroup(but map[*ir.UOp]int64) map[*ir.UOp]*ir.UOp {
	t, a := l.Tile, l.Arena
	with := make(map[*ir.UOp]*ir.UOp)
	for _, r := range append([]*ir.UOp{t.RowLane, t.RowCopy, t.Group.Warp, t.ColumnLane, t.ColumnCopy, t.Point}, t.Group.ColumnTiles...) {
		with[r] = a.Index(but[r])
	}
	return with
}

// readAt is a read of a panel with some ranges bound.
func (l *matrices) readAt(u *ir.UOp, with map[*ir.UOp]*ir.UOp) *ir.UOp {
	index := lists.Map(u.Indices(), func(x *ir.UOp) *ir.UOp { return l.Simplify.Do(l.Arena.Substitute(x, with)) })
	return l.Arena.Load(u.Src[0], index...)
}

// elementOf is which element of a panel a read finds with some ranges of the tile bound and all others at their start, without padding.
func (l *matrices) elementOf(u *ir.UOp, but map[*ir.UOp]int64) int64 {
	index := l.stager.stageIndex(l.readAt(u, l.firstOfGroup(but)))
	with := make(map[*ir.UOp]*ir.UOp)
	for _, r := range l.Ranges {
		with[r] = l.Arena.Index(0)
	}
	n, ok := l.Simplify.Do(l.Arena.Substitute(index, with)).Int()
	if !ok {
		fail("plan: WGMMA of a factor whose panel has no fixed places")
	}
	return n
}

// isGroupPanel reports a panel of a factor of a warpgroup's instruction.
func (l *matrices) isGroupPanel(stage *ir.UOp) bool {
	if l.Tile == nil || l.Tile.Group == nil || !shape.IsSharedTile(stage) || stage.DType.Size() != program.GroupPiece/plan.GroupPieces {
		return false
	}
	last := stage.Src[len(stage.Src)-1]
	return last.Src[0].IsInt(plan.GroupPieces) && l.Roles[l.free.Index.Of(last)] == plan.Lane
}
