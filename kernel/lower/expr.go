package lower

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// expressions writes values, each in the outermost loop it can stand in.
type expressions struct {
	*lowering
	pure    map[*ir.UOp]bool
	floats  map[*program.Value]float64 // scalar constants
	ints    map[*program.Value]int64   // constants, by value or vector
	pending map[*ir.UOp]bool
}

// lower gives the value of a node at coordinates: a scalar, or a vector over
// those lane ranges that it depends on. It is emitted once, in the outermost
// scope where it can stand.
func (l *expressions) lower(u *ir.UOp, at coords) val {
	d := l.scopes.depth(u)
	k := l.scopes.key(u, at)
	if v, ok := l.scopes.stack[d].memo[k]; ok {
		return v
	}
	s := l.scopes.stack[d]
	var out val
	l.scopes.in(d, func() {
		before := l.b.MakeFor(l.Arena.Origin(u))
		out = l.compute(u, at)
		l.b.MakeAgainFor(before)
	})
	s.memo[k] = out
	return out
}

// compute emits a node into the current scope.
func (l *expressions) compute(u *ir.UOp, at coords) val {
	if l.isStatic(u) {
		return l.staticValue(u, at)
	}
	switch u.Op {
	case ir.OpConst:
		return l.scalarVal(l.constant(u))
	case ir.OpVar:
		return l.scalarVal(l.memory.params[u])
	case ir.OpRange:
		return l.rangeVal(u)
	case ir.OpLoad, ir.OpField:
		return l.memory.lowerLoad(u, at)
	case ir.OpReduce:
		return l.loops.lowerReduce(u, at)
	case ir.OpProj:
		return l.tuples.lowerProj(u, at)
	case ir.OpAssume:
		return l.lower(u.Src[0], at)
	case ir.OpWhere:
		return l.lowerWhere(u, at)
	case ir.OpMul, ir.OpAdd, ir.OpSub, ir.OpNeg, ir.OpCast:
		if len(u.Src) == 1 && !l.mayPend(u) {
			break
		}
		if u.Op == ir.OpAdd && !l.block.onGPU() { // there a conversion of bytes takes an offset along
			if narrow := l.wide.narrowSum(u); narrow != nil {
				return l.lower(narrow, at)
			}
		}
		if u.Op == ir.OpMul {
			if out, ok := l.words.lowerWord(u, at); ok {
				return out
			}
		}
		if out, ok := l.lowerPending(u, at); ok {
			return out
		}
	}
	if out, ok := l.scopes.lowerBits(u, at); ok {
		return out
	}
	if !u.Op.IsElementwise() {
		fail("%s cannot be lowered", u.Op)
	}
	args := make([]val, len(u.Src))
	target := l.laneSubAxes(u, at)
	for i, s := range u.Src {
		args[i] = l.settle(l.wide.operand(s, at, target))
	}
	return l.alu(u.Op, u.DType, args...)
}

func (l *expressions) scalarVal(v *program.Value) val { return val{v: v, depth: l.scopes.top()} }

// storedType is the program's dtype of a node: Idx becomes I64.
func storedType(d ir.DType) ir.DType {
	if d == ir.Idx {
		return ir.I64
	}
	return d
}

func (l *expressions) constant(u *ir.UOp) *program.Value {
	t := program.Scalar(storedType(u.DType))
	if f, ok := u.Float(); ok {
		v := l.b.Float(t, f)
		l.floats[v] = f
		return v
	}
	n, _ := u.Int()
	return l.b.Int(t, n)
}

func (l *expressions) rangeVal(u *ir.UOp) val {
	i := l.free.Index.Of(u)
	if l.block.threads.Has(i) {
		return val{v: l.block.threadIndex(i)}
	}
	for d := l.scopes.top(); d >= 0; d-- {
		if v := l.scopes.stack[d].index[i]; v != nil {
			return val{v: v, depth: d}
		}
	}
	fail("range %d is not open", u.Arg.(ir.RangeArg).ID)
	return val{}
}

// lowerWhere evaluates both arms (loads in them are kept in bounds) unless the
// condition is known at these coordinates.
func (l *expressions) lowerWhere(u *ir.UOp, at coords) val {
	cond := u.Src[0]
	if l.isStatic(cond) {
		if known, uniform := l.staticUniform(cond, at); uniform {
			if known.I != 0 {
				return l.lower(u.Src[1], at)
			}
			return l.lower(u.Src[2], at)
		}
	}
	target := l.laneSubAxes(u, at)
	return l.alu(ir.OpWhere, u.DType, l.settle(l.wide.operand(cond, at, target)), l.settle(l.wide.operand(u.Src[1], at, target)), l.settle(l.wide.operand(u.Src[2], at, target)))
}

// alu emits an elementwise op on settled values, expanded to common lanes.
func (l *expressions) alu(op ir.Op, dtype ir.DType, args ...val) val {
	subAxes := args[0].subAxes
	for _, x := range args[1:] {
		subAxes = unionSubAxes(subAxes, x.subAxes)
	}
	return l.aluOver(op, dtype, subAxes, args...)
}

func (l *expressions) aluOver(op ir.Op, dtype ir.DType, subAxes []int, args ...val) val {
	vs := lists.Map(args, func(x val) *program.Value { return l.expand(x, subAxes) })
	return val{v: l.emit(op, storedType(dtype), vs), subAxes: subAxes, depth: l.scopes.top()}
}

// emit writes one elementwise instruction. Division of integers by a power of
// two is a shift or mask, which floor as the op does.
func (l *expressions) emit(op ir.Op, dtype ir.DType, vs []*program.Value) *program.Value {
	switch op {
	case ir.OpCast:
		return l.b.Cast(vs[0], dtype)
	case ir.OpBitcast:
		return l.b.Bitcast(vs[0], dtype)
	case ir.OpFloorDiv:
		if dtype == ir.I64 && vs[0].Type.Lanes == 1 {
			return l.indexDiv(vs[0], vs[1])
		}
	case ir.OpFloorMod:
		if dtype == ir.I64 && vs[0].Type.Lanes == 1 {
			return l.indexMod(vs[0], vs[1])
		}
	case ir.OpShl, ir.OpShr:
		if n, ok := l.ints[vs[1]]; ok && n == 0 {
			return vs[0]
		}
	case ir.OpAdd, ir.OpMul, ir.OpSub:
		if dtype == ir.I64 && vs[0].Type.Lanes == 1 {
			return l.indexArith(op, vs[0], vs[1])
		}
	}
	return l.b.Alu(op, vs...)
}

func (l *expressions) indexArith(op ir.Op, x, y *program.Value) *program.Value {
	switch op {
	case ir.OpAdd:
		return l.b.Add(x, y)
	case ir.OpSub:
		return l.b.Sub(x, y)
	}
	return l.b.Mul(x, y)
}

func (l *expressions) indexDiv(x, y *program.Value) *program.Value {
	if n, ok := l.b.KnownInt(y); ok && n > 1 && n&(n-1) == 0 {
		if _, known := l.b.KnownInt(x); !known {
			return l.b.Alu(ir.OpShr, x, l.b.Index(int64(bits.TrailingZeros64(uint64(n)))))
		}
	}
	return l.b.FloorDiv(x, y)
}

func (l *expressions) indexMod(x, y *program.Value) *program.Value {
	if n, ok := l.b.KnownInt(y); ok && n > 1 && n&(n-1) == 0 {
		if _, known := l.b.KnownInt(x); !known {
			return l.b.Alu(ir.OpAnd, x, l.b.Index(n-1))
		}
	}
	return l.b.FloorMod(x, y)
}

// Lanes.

// unionSubAxes merges two ascending lists.
func unionSubAxes(x, y []int) []int {
	if len(y) == 0 || slices.Equal(x, y) {
		return x
	}
	if len(x) == 0 {
		return y
	}
	out := make([]int, 0, len(x)+len(y))
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0] < y[0]:
			out, x = append(out, x[0]), x[1:]
		case len(x) == 0 || y[0] < x[0]:
			out, y = append(out, y[0]), y[1:]
		default:
			out, x, y = append(out, x[0]), x[1:], y[1:]
		}
	}
	return out
}

// laneCount is the number of lanes over sub-axes.
func (l *expressions) laneCount(subAxes []int) int {
	n := int64(1)
	for _, i := range subAxes {
		n *= l.extent[i]
	}
	if n > plan.MaxLanes {
		fail("plan: a value of %d lanes, at most %d are allowed", n, plan.MaxLanes)
	}
	return int(n)
}

// setLane moves a point to a lane over sub-axes.
func (l *expressions) setLane(point coords, subAxes []int, lane int) {
	for _, i := range slices.Backward(subAxes) {
		n := int(l.extent[i])
		point[i] = int32(lane % n)
		lane /= n
	}
}

// pick is the mask that takes, for each lane over to, the lane over from at the same
// coordinates. Sub-axes that to has not are where at is; 0: where that is no number.
func (l *expressions) pick(from, to []int, at coords) []int {
	mask, point := make([]int, l.laneCount(to)), make(coords, len(l.Ranges))
	copy(point, at)
	for lane := range mask {
		l.setLane(point, to, lane)
		for _, i := range from {
			mask[lane] = mask[lane]*int(l.extent[i]) + int(max(point[i], 0))
		}
	}
	return mask
}

func subAxesKey(what string, subAxes []int) string {
	var s strings.Builder
	s.WriteString(what)
	for _, i := range subAxes {
		s.WriteByte(' ')
		s.WriteString(strconv.Itoa(i))
	}
	return s.String()
}

// expand repeats a value over more lanes.
func (l *expressions) expand(x val, subAxes []int) *program.Value {
	if slices.Equal(x.subAxes, subAxes) {
		return x.v
	}
	n := l.laneCount(subAxes)
	if f, ok := l.floats[x.v]; ok {
		return l.b.Float(program.Vector(x.v.Type.Elem, n), f)
	}
	if c, ok := l.b.KnownInt(x.v); ok {
		v := l.b.Broadcast(x.v, n)
		l.ints[v] = c
		return v
	}
	if len(x.subAxes) == 0 {
		return l.scopes.derive(x.depth, derivedKey{x.v, "b" + strconv.Itoa(n)}, func() *program.Value { return l.b.Broadcast(x.v, n) })
	}
	return l.scopes.derive(x.depth, derivedKey{x.v, subAxesKey("e", subAxes)}, func() *program.Value {
		return l.b.Shuffle(x.v, x.v, l.pick(x.subAxes, subAxes, nil)...)
	})
}

// Deferred folding: REDUCE(ADD; lane) leaves its lanes pending. Sums and
// products with values that do not depend on those lanes keep them so; anything
// else settles the value first. A matrix-vector product folds once per row.

// settle folds what is pending.
func (l *expressions) settle(x val) val {
	if x.pend.Empty() {
		return x
	}
	return l.foldLanes(ir.OpAdd, x, x.pend)
}

// foldLanes folds some sub-axes of a value.
func (l *expressions) foldLanes(op ir.Op, x val, over analyse.RangeSet) val {
	if threads := over.Meet(l.block.threads); !threads.Empty() {
		if rest := over.Minus(threads); !rest.Empty() {
			x = l.foldLanes(op, x, rest)
		}
		return l.folds.foldThreads(op, x, threads)
	}
	out := val{depth: x.depth, pend: x.pend.Minus(over)}
	for _, i := range x.subAxes {
		if !over.Has(i) {
			out.subAxes = append(out.subAxes, i)
		}
	}
	key := derivedKey{x.v, subAxesKey("fold "+op.String(), over.List())}
	out.v = l.scopes.derive(x.depth, key, func() *program.Value {
		if len(out.subAxes) == 0 {
			return l.b.FoldLanes(op, x.v)
		}
		return l.foldSome(op, x, out.subAxes, over)
	})
	return out
}

// foldSome folds part of the sub-axes: halves are combined while the number of
// parts is even, then one after the other.
func (l *expressions) foldSome(op ir.Op, x val, keep []int, over analyse.RangeSet) *program.Value {
	folded := over.List()
	keepLanes, parts := l.laneCount(keep), l.laneCount(folded)
	if !l.block.onGPU() && inOrder(l.pick(x.subAxes, append(slices.Clone(keep), folded...), nil)) {
		return l.foldGroups(op, x.v, keepLanes, parts)
	}
	mask := l.pick(x.subAxes, append(folded, keep...), nil) // the folded sub-axes outermost
	v := x.v
	if !inOrder(mask) {
		v = l.b.Shuffle(v, v, mask...)
	}
	for parts > 1 && parts%2 == 0 {
		parts /= 2
		v = l.b.Alu(op, l.b.Slice(v, 0, parts*keepLanes), l.b.Slice(v, parts*keepLanes, parts*keepLanes))
	}
	acc := l.b.Slice(v, 0, keepLanes)
	for k := 1; k < parts; k++ {
		acc = l.b.Alu(op, acc, l.b.Slice(v, k*keepLanes, keepLanes))
	}
	return acc
}

// foldGroups folds neighbouring lanes, so many for each of the groups, as foldSome does: halves
// of groups that are registers are combined where they are, and only what is left of each group
// moves to the lanes of its neighbours.
func (l *expressions) foldGroups(op ir.Op, v *program.Value, groups, parts int) *program.Value {
	take := func(from, count int) *program.Value { // of each group
		mask := make([]int, 0, groups*count)
		for g := range groups {
			for k := range count {
				mask = append(mask, g*parts+from+k)
			}
		}
		return l.b.Shuffle(v, v, mask...)
	}
	for parts > 1 && parts%2 == 0 {
		half := parts / 2
		v = l.b.Alu(op, take(0, half), take(half, half))
		parts = half
	}
	if parts == 1 {
		return v
	}
	acc := take(0, 1)
	for k := 1; k < parts; k++ {
		acc = l.b.Alu(op, acc, take(k, 1))
	}
	return acc
}

// inOrder reports the numbers 0, 1, ..
func inOrder[T int | int64](list []T) bool {
	for i, x := range list {
		if x != T(i) {
			return false
		}
	}
	return true
}

// lowerPending handles arithmetic that is linear in a pending operand.
func (l *expressions) lowerPending(u *ir.UOp, at coords) (val, bool) {
	if !l.mayPend(u) {
		return l.wide.contract(u, at)
	}
	x := l.lower(u.Src[0], at)
	if len(u.Src) == 1 {
		if x.pend.Empty() {
			return val{}, false
		}
		out := l.alu(u.Op, u.DType, x)
		out.pend = x.pend
		return out, true
	}
	y := l.lower(u.Src[1], at)
	if x.pend.Empty() && y.pend.Empty() {
		return val{}, false
	}
	if u.Op == ir.OpMul {
		x, y = l.wide.besideOpen(u, x, y, at)
		x, y = l.factors(x, y, u)
	} else if x.pend != y.pend {
		return val{}, false
	}
	pend := x.pend.Union(y.pend)
	out := l.alu(u.Op, u.DType, x, y)
	out.pend = pend
	return out, true
}

// mayPend reports that a lane sum below u can reach it unsettled.
func (l *expressions) mayPend(u *ir.UOp) bool {
	if p, ok := l.pending[u]; ok {
		return p
	}
	p := false
	switch u.Op {
	case ir.OpReduce:
		i := l.free.Index.Of(u.ReduceRange())
		pends := l.folds.pends(i) && !(l.Dots.Has(i) && l.wide.isDot(u)) // a dot leaves no lane to be summed
		p = u.Arg.(ir.ReduceArg).Op == ir.OpAdd && (pends || l.mayPend(u.Src[0]))
	case ir.OpCast: // of the sum's parts instead of the sum: class A
		p = u.DType == ir.F32 && u.Src[0].DType == ir.I32 && l.mayPend(u.Src[0])
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg:
		p = slices.ContainsFunc(u.Src, l.mayPend)
	}
	l.pending[u] = p
	return p
}

// factors prepares two factors: at most one stays pending, and the other does
// not depend on its pending lanes or threads, nor, on a CPU, on lanes that the first has not:
// each of those would have all pending lanes. They are those of the product u.
func (l *expressions) factors(x, y val, u *ir.UOp) (val, val) {
	if !x.pend.Empty() && !y.pend.Empty() {
		y = l.settle(y)
	}
	x, y = l.settleWide(x), l.settleWide(y)
	if !x.pend.Empty() && (dependsOn(y, x.pend) || l.multiplies(x, y) || !l.free.Of(u.Src[1]).Meet(l.sharing(x.pend)).Empty()) {
		x = l.settle(x)
	}
	if !y.pend.Empty() && (dependsOn(x, y.pend) || l.multiplies(y, x) || !l.free.Of(u.Src[0]).Meet(l.sharing(y.pend)).Empty()) {
		y = l.settle(y)
	}
	return x, y
}

// settleWide settles a sum that is open over many registers, before it is
// multiplied: each of them would be.
func (l *expressions) settleWide(x val) val {
	if l.block.onGPU() || x.pend.Empty() || l.laneCount(x.subAxes)*x.elem().Size() <= 2*l.Desc.VectorBytes {
		return x
	}
	return l.settle(x)
}

// multiplies reports lanes of y beside which the pending lanes of x would be repeated.
func (l *expressions) multiplies(x, y val) bool {
	return !x.pend.Meet(l.lanes).Empty() && !l.block.onGPU() && len(unionSubAxes(x.subAxes, y.subAxes)) > len(x.subAxes)
}

// sharing is the thread ranges whose sub-axes lie, wholly or in part, where those
// of a set lie: what depends on them differs between the threads of an open sum.
func (l *expressions) sharing(over analyse.RangeSet) analyse.RangeSet {
	var out analyse.RangeSet
	for _, i := range over.Meet(l.block.threads).List() {
		for k, d := range l.block.subAxes {
			if mine := l.block.subAxes[i]; d.stride%mine.end() != 0 && mine.stride%d.end() != 0 {
				out.Add(k)
			}
		}
	}
	return out
}

func dependsOn(x val, over analyse.RangeSet) bool {
	return slices.ContainsFunc(x.subAxes, func(i int) bool { return over.Has(i) })
}

// Static values: those that depend on copies and lanes alone.

// isStatic reports an expression over constants and vector ranges that is not
// a mere constant.
func (l *expressions) isStatic(u *ir.UOp) bool {
	if s, ok := l.pure[u]; ok {
		return s
	}
	s := false
	switch {
	case u.Op == ir.OpRange:
		s = l.vector.Has(l.free.Index.Of(u))
	case u.Op.IsElementwise() && !isTranscendental(u.Op) && u.Op != ir.OpRng:
		s = !slices.ContainsFunc(u.Src, func(x *ir.UOp) bool { return x.Op != ir.OpConst && !l.isStatic(x) })
	}
	l.pure[u] = s
	return s
}

func isTranscendental(op ir.Op) bool {
	return op == ir.OpExp2 || op == ir.OpLog2 || op == ir.OpSin || op == ir.OpRsqrt
}

// evalStatic computes a static node at a point; lane coordinates must be
// numbers in at.
func (l *expressions) evalStatic(u *ir.UOp, at coords) ir.Scalar {
	if s, ok := u.Scalar(); ok {
		return s
	}
	if u.Op == ir.OpRange {
		return ir.IntScalar(int64(at[l.free.Index.Of(u)]))
	}
	args := lists.Map(u.Src, func(s *ir.UOp) ir.Scalar { return l.evalStatic(s, at) })
	return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
}

// laneSubAxes are the lane ranges that a node depends on at these coordinates.
func (l *expressions) laneSubAxes(u *ir.UOp, at coords) []int {
	return lists.Filter(l.free.Of(u).Meet(l.vector).List(), func(i int) bool { return at[i] == laneCoord })
}

// staticLanes evaluates a static node in every lane over sub-axes.
func (l *expressions) staticLanes(u *ir.UOp, at coords, subAxes []int) []ir.Scalar {
	out := make([]ir.Scalar, l.laneCount(subAxes))
	point := append(coords(nil), at...)
	for lane := range out {
		l.setLane(point, subAxes, lane)
		out[lane] = l.evalStatic(u, point)
	}
	return out
}

// staticUniform reports the value of a static node that is the same in all lanes.
func (l *expressions) staticUniform(u *ir.UOp, at coords) (ir.Scalar, bool) {
	values := l.staticLanes(u, at, l.laneSubAxes(u, at))
	for _, v := range values[1:] {
		if v != values[0] {
			return v, false
		}
	}
	return values[0], true
}

func (l *expressions) staticValue(u *ir.UOp, at coords) val {
	subAxes := l.laneSubAxes(u, at)
	values := l.staticLanes(u, at, subAxes)
	d := storedType(u.DType)
	if v, uniform := l.staticUniform(u, at); uniform {
		if d.IsFloat() {
			c := l.b.Float(program.Scalar(d), v.F)
			if !math.IsNaN(v.F) {
				l.floats[c] = v.F
			}
			return l.scalarVal(c)
		}
		return l.scalarVal(l.b.Int(program.Scalar(d), v.I))
	}
	out := val{subAxes: subAxes, depth: l.scopes.top()}
	if d.IsFloat() {
		floats := lists.Map(values, func(v ir.Scalar) float64 { return v.F })
		out.v = l.b.FloatLanes(d, floats...)
		return out
	}
	ints := lists.Map(values, func(v ir.Scalar) int64 { return v.I })
	out.v = l.b.IntLanes(d, ints...)
	return out
}
