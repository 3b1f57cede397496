package heuristic

import (
	"cmp"
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

// largeBytes is the size from which an operand of a sum is a weight though it is not packed: larger
// than any L1, so that it is streamed.
const largeBytes = 64 << 10

// operand is a buffer as the sums of a kernel read it.
type operand struct {
	param    *ir.UOp
	accesses []*ir.UOp        // LOADs and FIELDs
	sum      *ir.UOp          // outermost sum around an access
	free     analyse.RangeSet // axes that accesses depend on, through gathered indices too
	chain    []int            // axes of the sums around it that it depends on, outer before inner
	rows     []int            // axes of the sum's result that it depends on
	reuse    []int            // axes of the sum's result that it does not depend on
	bytes    int64            // touched, an upper bound
	total    int64            // of the buffer
}

// findOperands looks at every sum that stands in no tuple: which buffers its
// body reads, over which axes. Nothing of the expression in between matters.
func (a *analysis) findOperands() { a.operands = a.operandsOf(a.outerSums()) }

// operandsOf lists the operands of sums, large ones first.
func (a *analysis) operandsOf(sums []*ir.UOp) (operands []*operand) {
	for _, sum := range sums {
		inside := ofSum(sum)
		var closed analyse.RangeSet
		for _, u := range inside {
			if analyse.IsSum(u) {
				closed = closed.With(a.axisOf(u.ReduceRange()))
			}
		}
		byParam := make(map[*ir.UOp]*operand)
		var list []*operand
		for _, u := range inside {
			if !isAccess(u) {
				continue
			}
			o := a.operandOf(u, list)
			if o == nil {
				o = &operand{param: u.Src[0], sum: sum}
				byParam[u.Src[0]] = o
				list = append(list, o)
			}
			o.accesses = append(o.accesses, u)
			o.free = o.free.Union(a.free.Of(u))
		}
		a.decodedFrom(sum, byParam)
		for _, o := range list {
			a.complete(o, closed)
		}
		operands = append(operands, list...)
	}
	slices.SortStableFunc(operands, func(x, y *operand) int {
		return cmp.Or(-cmp.Compare(x.rank(), y.rank()), -cmp.Compare(x.bytes, y.bytes), x.slot()-y.slot())
	})
	return operands
}

// operandOf finds the operand of which an access reads a part: that of its buffer, unless both
// have rows of their own, as in a product of a matrix with itself. Fields of packed blocks
// together are one value.
func (a *analysis) operandOf(access *ir.UOp, list []*operand) *operand {
	for _, o := range list {
		x, y := a.free.Of(access), o.free
		if o.param == access.Src[0] && (access.Op == ir.OpField || x.Minus(y).Empty() || y.Minus(x).Empty()) {
			return o
		}
	}
	return nil
}

// decodedFrom gives packed operands the axes of what is computed of each of them alone,
// besides those of its accesses: which of the values that a byte holds is wanted, shifts
// and masks say, not the byte's address.
func (a *analysis) decodedFrom(sum *ir.UOp, byParam map[*ir.UOp]*operand) {
	several := &operand{}
	of := make(map[*ir.UOp]*operand) // the operand of which a node is computed
	decoded := make(map[*operand]analyse.RangeSet)
	for _, u := range ir.Toposort(sum) {
		switch table := u.Op == ir.OpLoad && u.Src[0].Op == ir.OpTable; {
		case isAccess(u):
			of[u] = cmp.Or(byParam[u.Src[0]], several)
		case u.Op.IsElementwise() || table:
			for _, s := range u.Src {
				if o := of[s]; o != nil && of[u] != nil && o != of[u] {
					of[u] = several
				} else {
					of[u] = cmp.Or(of[u], o)
				}
			}
		case u.Op == ir.OpReduce || u.Op == ir.OpStage || u.Op == ir.OpLoad:
			of[u] = several
		}
		if o := of[u]; o != nil && o != several && o.rank() == packedRank {
			decoded[o] = decoded[o].Union(a.free.Of(u))
		}
	}
	for o, axes := range decoded {
		o.free = o.free.Union(axes)
	}
}

// packedRank is the rank of packed weights.
const packedRank = 2

// rank orders operands that could each be the weight of a product: packed
// before 16-bit floats before wider ones, because the work of decoding is
// shared by all uses.
func (o *operand) rank() int {
	switch {
	case o.param.Arg.(ir.ParamArg).Format != "":
		return packedRank
	case o.param.DType.Size() < 4:
		return 1
	}
	return 0
}

func isAccess(u *ir.UOp) bool {
	return (u.Op == ir.OpLoad || u.Op == ir.OpField) && u.Src[0].Op == ir.OpParam
}

// outerSums lists the ADD reduces that stand in no other reduce. A STAGE is
// computed in a place of its own: a sum inside one is an outer sum, whatever
// reads the stage.
func (a *analysis) outerSums() []*ir.UOp {
	inside := make(map[*ir.UOp]bool)
	var out []*ir.UOp
	for _, u := range slices.Backward(a.order) {
		if analyse.IsSum(u) && !inside[u] {
			out = append(out, u)
		}
		if u.Op != ir.OpStage && (u.Op == ir.OpReduce || inside[u]) {
			for _, s := range u.Src {
				inside[s] = true
			}
		}
	}
	return out
}

// ofSum lists the nodes of a sum's body, without those inside of STAGEs.
func ofSum(sum *ir.UOp) []*ir.UOp { return analyse.OutsideStages(sum) }

func (a *analysis) complete(o *operand, closed analyse.RangeSet) {
	o.chain = o.free.Meet(closed).List()
	result := a.free.Of(o.sum)
	o.rows = o.free.Meet(result).List()
	o.reuse = slices.DeleteFunc(result.Minus(o.free).List(), func(i int) bool { return a.size(i) <= 1 })
	elements := int64(1)
	for _, n := range o.param.Src {
		elements = satMul(elements, max(a.bounds.Of(n).Hi, 0))
	}
	o.total = bytesOf(o.param, elements)
	o.bytes = min(o.total, bytesOf(o.param, a.points(o.free.List())))
}

func satMul(x, y int64) int64 {
	if z, ok := ir.CheckedMul(x, y); ok {
		return z
	}
	return 1 << 62
}

// bytesOf is the size of some elements of a buffer.
func bytesOf(param *ir.UOp, elements int64) int64 {
	if !isPacked(param) {
		return satMul(elements, int64(max(param.DType.Size(), 1)))
	}
	f, _ := packed.Lookup(param.Arg.(ir.ParamArg).Format)
	return satMul(ceil(elements, int64(f.BlockElems)), int64(f.BlockBytes))
}

// isPacked reports a buffer of blocks.
func isPacked(param *ir.UOp) bool {
	f, ok := packed.Lookup(param.Arg.(ir.ParamArg).Format)
	return ok && !f.IsPlain()
}

func (o *operand) slot() int { return o.param.Arg.(ir.ParamArg).Slot }

func (o *operand) name() string { return fmt.Sprintf("p%d", o.slot()) }

// elem names what the buffer holds.
func (o *operand) elem() string {
	if f := o.param.Arg.(ir.ParamArg).Format; f != "" {
		return f
	}
	return o.param.DType.String()
}

// weights are the large operands of products: each is multiplied with
// something that is the same for many of its rows. Which is which follows from
// the axes alone.
func (a *analysis) weights() []*operand {
	var out []*operand
	for _, o := range a.operands {
		if a.isLarge(o) && len(o.chain) > 0 && len(o.rows) > 0 && a.hasPartner(o) && !a.written[o.param] {
			out = append(out, o)
		}
	}
	return a.dropSmaller(out)
}

// buffersOf are weights, one for each buffer: one may stand in two sums.
func buffersOf(weights []*operand) []*operand {
	return firstOfEach(weights, func(x, y *operand) bool { return x.param == y.param })
}

// matricesOf are weights, one for each matrix: a buffer may hold several that are read beside
// each other, such as a gate above its up.
func (a *analysis) matricesOf(weights []*operand) []*operand {
	return firstOfEach(weights, func(x, y *operand) bool { return x.param == y.param && slices.Equal(a.firstRow(x), a.firstRow(y)) })
}

func firstOfEach(weights []*operand, same func(x, y *operand) bool) (out []*operand) {
	for _, w := range weights {
		if !slices.ContainsFunc(out, func(o *operand) bool { return same(o, w) }) {
			out = append(out, w)
		}
	}
	return out
}

// reusedOf are weights whose elements several outputs have in common. Others, of the experts' results that a residual adds up, say,
// are read where results are stored.
func reusedOf(weights []*operand) []*operand {
	return lists.Filter(weights, func(o *operand) bool { return len(o.reuse) > 0 })
}

// firstRow is where an operand's rows start in its buffer: indices at the first point of each axis.
func (a *analysis) firstRow(o *operand) (at []int64) {
	indices := o.accesses[0].Indices()
	if o.accesses[0].Op == ir.OpField {
		indices = indices[:1] // fields of a block differ in the others
	}
	return lists.Map(indices, func(x *ir.UOp) int64 {
		first, _ := a.evaluate(x, noAxis, 0)
		return first
	})
}

// noAxis is an axis that no range is.
const noAxis = -1

// isLarge reports an operand that is streamed, or of which results read as much from a cache: a
// register tile of a CPU reads it less often, as does one of matrix instructions whose columns its uses fill.
// Packed blocks are a weight of any size: other plans unpack them element by element. Key and value of 128
// rows by 896 in Q4_0, 64.5 KB, made a launch of two tokens on an H200 last 16.8 us (docs/bench/h200-heads.txt).
func (a *analysis) isLarge(o *operand) bool {
	if isPacked(o.param) {
		return true
	}
	read, uses := o.total, a.points(o.reuse)
	if a.desc.Kind == target.GPU && uses < 2*plan.MatrixColumns {
		uses = 1
	}
	return satMul(read, uses) >= largeBytes
}

// dropSmaller keeps, of two operands of one sum where each is reused along the
// other's rows, the larger: in a product of two matrices the one that is read
// once. Equal sizes keep the first by slot.
func (a *analysis) dropSmaller(list []*operand) []*operand {
	var out []*operand
	for _, o := range list {
		if !slices.ContainsFunc(out, func(k *operand) bool { return k.sum == o.sum && len(o.reuse) > 0 && disjointRows(o, k) }) {
			out = append(out, o)
		}
	}
	return out
}

func disjointRows(x, y *operand) bool {
	return slices.ContainsFunc(x.reuse, func(i int) bool { return slices.Contains(y.rows, i) })
}

// hasPartner reports that the sum around an operand also reads something that
// varies along the summed axes but not along some row axis; what only says which elements
// of the operand are read is no factor of it.
func (a *analysis) hasPartner(o *operand) bool {
	chain := setOf(o.chain)
	for _, u := range ofSum(o.sum) {
		if u.Op != ir.OpLoad || slices.Contains(o.accesses, u) || u.Src[0].Op == ir.OpTable || selects(o, u) {
			continue
		}
		free := a.free.Of(u)
		if free.Meet(chain).Empty() {
			continue
		}
		for _, i := range o.rows {
			if a.size(i) > 1 && !free.Has(i) {
				return true
			}
		}
	}
	return false
}

// selects reports a load of an index of an operand's accesses.
func selects(o *operand, load *ir.UOp) bool {
	return slices.ContainsFunc(o.accesses, func(access *ir.UOp) bool {
		return slices.ContainsFunc(access.Indices(), func(x *ir.UOp) bool {
			return analyse.Any(x, func(u *ir.UOp) bool { return u == load })
		})
	})
}

// innerAxes are the axes along which an operand lies contiguously in memory:
// those of the position in a row of blocks, or with a stride of one element.
func (a *analysis) innerAxes(o *operand) analyse.RangeSet {
	var s analyse.RangeSet
	for _, u := range o.accesses {
		s = s.Union(a.contiguous(u))
	}
	return s
}

// contiguous are the axes along which an access has stride one.
func (a *analysis) contiguous(u *ir.UOp) analyse.RangeSet {
	if u.Op == ir.OpField {
		return a.free.Of(u.Src[2]).Union(a.free.Of(u.Src[3])).Minus(a.free.Of(u.Src[1]))
	}
	var s analyse.RangeSet
	for _, i := range a.free.Of(u).List() {
		if a.stride(u, i) == 1 {
			s = s.With(i)
		}
	}
	return s
}

// stride is how far, in elements, an access moves at a step along an
// axis; 0 where it is unknown.
func (a *analysis) stride(u *ir.UOp, axis int) int64 {
	stride := int64(0)
	extents := u.Src[0].Src
	if u.Src[0].Op == ir.OpStage {
		extents = nil
		for _, z := range u.Src[0].Src[1:] {
			extents = append(extents, z.Src[0])
		}
	}
	for k, x := range u.Indices() {
		n := int64(1)
		if k < len(extents) {
			n = max(a.bounds.Of(extents[k]).Hi, 1)
		}
		step, ok := a.step(x, axis)
		if !ok {
			return 0
		}
		stride = stride*n + step
	}
	return stride
}

// step is how far an index moves at a step along an axis, all other ranges being 0: what is read of a
// gathered index is unknown, but the same for all points unless it depends on the axis. It is the first
// step, or the next two where they are alike: a position that turns may do so at once.
func (a *analysis) step(x *ir.UOp, axis int) (int64, bool) {
	var at [4]int64
	for i := range at {
		var known bool
		if at[i], known = a.evaluate(x, axis, int64(i)); !known {
			return 0, false
		}
	}
	if second := at[2] - at[1]; second == at[3]-at[2] && (!a.constant(axis) || a.size(axis) >= int64(len(at))) {
		return second, true
	}
	return at[1] - at[0], true
}

// evaluate computes an index at a point of an axis. Other ranges are 0, and so is what is gathered without the axis.
func (a *analysis) evaluate(x *ir.UOp, axis int, at int64) (int64, bool) {
	done := make(map[*ir.UOp]ir.Scalar)
	for _, u := range ir.Toposort(x) {
		switch {
		case u.Op == ir.OpConst:
			done[u], _ = u.Scalar()
		case u.Op == ir.OpRange:
			v := int64(0)
			if a.axisOf(u) == axis {
				v = at
			}
			done[u] = ir.IntScalar(v)
		case u.Op == ir.OpVar:
			done[u] = ir.IntScalar(u.Arg.(ir.VarArg).Lo)
		case u.Op == ir.OpAssume:
			done[u] = done[u.Src[0]]
		case u.Op.IsElementwise():
			args := lists.Map(u.Src, func(s *ir.UOp) ir.Scalar { return done[s] })
			done[u] = ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
		case axis != noAxis && a.free.Of(u).Has(axis):
			return 0, false
		default:
			done[u] = ir.IntScalar(0)
		}
	}
	return done[x].I, true
}

// rowsOf is the union of the axes of the sums' results.
func (a *analysis) rowsOf(weights []*operand) analyse.RangeSet {
	var s analyse.RangeSet
	for _, w := range weights {
		s = s.Union(a.free.Of(w.sum))
	}
	return s
}

// lastStore is the innermost store axis of constant extent above 1 in a list.
func (a *analysis) lastStore(list []int) int {
	return lists.Last(list, func(i int) bool { return a.axes[i].Kind == plan.StoreAxis && a.constant(i) && a.size(i) > 1 }, -1)
}
