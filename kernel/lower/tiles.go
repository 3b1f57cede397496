package lower

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Lowering of sums over sub-axes of MMA on a CPU. The sums of a tile, of all copies of its
// columns, are written to an array by one TileDot; a sum is then the row of the array that is
// its column's, with a lane for each row of the weight.
//
// Factors are read where they lie: the one of rows in a panel, whose words hold neighbours
// along the sum, the one of columns in a buffer. Floats are terms of BF16 that hold all their
// bits (kernel/shape: terms.go), and products of terms below the last bit of an f32 are left
// out, as for the matrix instructions of GPUs.

// tiles writes sums of tile instructions.
type tiles struct {
	*lowering
	sums map[tileKey]*program.Value // arrays
}

// tileKey names the sums of a tile: those of the first column.
type tileKey struct {
	scope *scope
	first memoKey
}

// side is a factor of a tile's products: the terms of one matrix, each a load.
type side struct {
	terms  []*program.Value
	stride int64 // bytes: of columns between them, of rows between words along the sum
}

// sum is the sum of products over a sub-axis of MMA.
func (l *tiles) sum(u *ir.UOp, at coords) val {
	row, columns := l.axesOf(u)
	key := l.scopes.depth(u)
	first := at
	number, count := int64(0), int64(1)
	for _, i := range columns {
		number, count = number*l.extent[i]+int64(max(at[i], 0)), count*l.extent[i]
		first = first.with(i, 0)
	}
	k := tileKey{l.scopes.stack[key], l.scopes.key(u, first)}
	array := l.sums[k]
	if array == nil {
		l.scopes.in(key, func() { array = l.multiply(u, first, row, columns, count) })
		l.sums[k] = array
	}
	p := l.b.PtrAdd(array, l.b.Index(number*program.TileColumns))
	return val{v: l.b.Load(p, program.TileColumns, 64), subAxes: []int{row}, depth: l.scopes.top()}
}

// axesOf are the lanes of the rows of a product and the copies that are its columns: those of
// stores on which one factor alone depends.
func (l *tiles) axesOf(u *ir.UOp) (row int, columns []int) {
	stores := analyse.RangeSet{}
	for _, s := range l.Stores {
		stores = stores.Union(l.free.SetOf(s.Node.Ranges()...))
	}
	free := l.free.Of(u)
	lanes := free.Meet(l.lanes).List()
	if len(lanes) != 1 || l.extent[lanes[0]] != program.TileColumns {
		fail("plan: MMA needs a factor with %d rows in lanes", program.TileColumns)
	}
	rows, other := l.factors(u)
	return lanes[0], l.free.Of(other).Minus(l.free.Of(rows)).Meet(l.copies).Meet(stores).List()
}

// factors are the factor of rows and that of columns.
func (l *tiles) factors(u *ir.UOp) (rows, columns *ir.UOp) {
	for _, f := range analyse.Factors(u.Src[0]) {
		side := &columns
		if !l.free.Of(f).Meet(l.lanes).Empty() {
			side = &rows
		}
		if *side != nil {
			fail("plan: MMA of a sum of products of more than two factors")
		}
		*side = f
	}
	if rows == nil || columns == nil {
		fail("plan: MMA of a sum that is no product of rows and columns")
	}
	return rows, columns
}

// multiply writes the sums of a tile to an array.
func (l *tiles) multiply(u *ir.UOp, at coords, row int, columns []int, count int64) *program.Value {
	i := l.free.Index.Of(u.ReduceRange())
	if count > program.TileRows || u.Arg.(ir.ReduceArg).Op != ir.OpAdd {
		fail("plan: MMA of %d columns, or of what is no sum", count)
	}
	rows, other := l.factors(u)
	a := l.rowSide(rows, at, i, row)
	b := l.columnSide(other, at, i, columns)
	elem := b.terms[0].Type.Elem
	if sum, ok := program.TileSum(elem, a.terms[0].Type.Elem); !ok || sum != u.DType {
		fail("plan: MMA of %s and %s with sums of %s", elem, a.terms[0].Type.Elem, u.DType)
	}
	word := int64(plan.WordElements / elem.Size())
	if l.extent[i]%word != 0 {
		fail("plan: MMA of %d points, which are no words", l.extent[i])
	}
	array := l.memory.array(u.DType, program.LocalSpace, count*program.TileColumns, 64)
	var pairs []*program.Value
	for order := min(len(a.terms)+len(b.terms)-2, mostTerms-1); order >= 0; order-- {
		for k := range a.terms {
			if j := order - k; j >= 0 && j < len(b.terms) {
				pairs = append(pairs, b.terms[j], a.terms[k])
			}
		}
	}
	l.b.TileDot(array, pairs, program.TileShape{Rows: int(count), Words: int(l.extent[i] / word), StrideA: b.stride, StrideB: a.stride})
	return array
}

// loadsOf are the loads of a factor's terms.
func (l *tiles) loadsOf(u *ir.UOp) []*ir.UOp {
	if u.Op == ir.OpCast && u.DType == ir.I32 {
		u = u.Src[0]
	}
	list := []*ir.UOp{u}
	if terms := shape.StoredTerms(u); terms != nil {
		list = lists.Map(terms, func(t shape.Term) *ir.UOp { return t.Value })
	}
	for _, x := range list {
		if x.Op != ir.OpLoad {
			fail("plan: MMA of a factor that lies nowhere")
		}
	}
	return list
}

// rowSide is a factor in a panel.
func (l *tiles) rowSide(u *ir.UOp, at coords, i, row int) side {
	var s side
	for _, x := range l.loadsOf(u) {
		size := int64(x.DType.Size())
		word := plan.WordElements / size
		address, base := l.addressOf(x, at)
		l.wantStep(address, row, 1, word, "rows that are no neighbours")
		l.wantStep(address, i, 1, 1, "points along a row that are no words")
		stride := size * l.stepOf(address, i, word)
		if s.terms != nil && stride != s.stride {
			fail("plan: MMA of terms in panels of different forms")
		}
		s.stride = stride
		s.terms = append(s.terms, l.pointer(base, address, x, at, i, row))
	}
	return s
}

// columnSide is a factor in a buffer, whose points are neighbours.
func (l *tiles) columnSide(u *ir.UOp, at coords, i int, columns []int) side {
	var s side
	for _, x := range l.loadsOf(u) {
		address, base := l.addressOf(x, at)
		for k := int64(1); k < l.extent[i]; k++ {
			l.wantStep(address, i, k, k, "points that are no neighbours")
		}
		step := int64(0)
		for k := len(columns) - 1; k >= 0; k-- {
			inner := int64(1)
			for _, c := range columns[k+1:] {
				inner *= l.extent[c]
			}
			for n := int64(1); n < l.extent[columns[k]]; n++ {
				moved := l.stepOf(address, columns[k], n)
				if step == 0 {
					step = moved / (n * inner)
				}
				if moved != step*n*inner {
					fail("plan: MMA of columns that are not equally far apart")
				}
			}
		}
		if stride := step * int64(x.DType.Size()); s.terms != nil && stride != s.stride {
			fail("plan: MMA of terms in buffers of different forms")
		} else {
			s.stride = stride
		}
		s.terms = append(s.terms, l.pointer(base, address, x, at, append([]int{i}, columns...)...))
	}
	return s
}

// addressOf is where a load of a buffer or stage reads, which is filled first.
func (l *tiles) addressOf(x *ir.UOp, at coords) (address *ir.UOp, base *program.Value) {
	if x.Src[0].Op == ir.OpStage {
		return l.stager.readAddress(x).node, l.stager.fillStage(x.Src[0], at)
	}
	return l.memory.addressOf(x).node, l.memory.base(x.Src[0])
}

// atPoint is an address with a number in place of a range.
func (l *tiles) atPoint(address *ir.UOp, i int, n int64) *ir.UOp {
	return l.Simplify.Do(l.Arena.Substitute(address, map[*ir.UOp]*ir.UOp{l.Ranges[i]: l.Arena.Index(n)}))
}

// stepOf is by how many elements an address moves from the first point of a range to another.
func (l *tiles) stepOf(address *ir.UOp, i int, n int64) int64 {
	step, ok := l.memory.linear.Of(l.atPoint(address, i, n)).Plus(l.memory.linear.Of(l.atPoint(address, i, 0)), -1)
	if !ok || len(step.Terms) > 0 {
		fail("plan: MMA of elements whose distance is not known")
	}
	return step.Const
}

// wantStep checks a step.
func (l *tiles) wantStep(address *ir.UOp, i int, n, want int64, what string) {
	if l.stepOf(address, i, n) != want {
		fail("plan: MMA of %s", what)
	}
}

// pointer is where a load reads at the first points of some ranges.
func (l *tiles) pointer(base *program.Value, address, x *ir.UOp, at coords, ranges ...int) *program.Value {
	first := make(map[*ir.UOp]*ir.UOp)
	for _, i := range ranges {
		first[l.Ranges[i]] = l.Arena.Index(0)
	}
	node := l.Simplify.Do(l.Arena.Substitute(address, first))
	p := l.memory.placeOf(base, &flatAddress{node: node, buffer: x.Src[0], form: l.memory.linear.Of(node)}, int64(x.DType.Size()), at)
	if len(p.offsets) != 1 || p.vector != nil {
		fail("plan: MMA of a factor along other lanes")
	}
	return p.ptr
}
