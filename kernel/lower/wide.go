package lower

import (
	"fmt"
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// A factor that varies slowly, such as the scale of a group of weights, has
// few lanes or none where its partner has many, and a different value in every
// copy. Computed copy by copy it would cost scalar loads and conversions for
// each. Instead its copies become lanes of one vector, computed once, from
// which each copy takes its part with the shuffle that spreads it anyway.

// widener computes slow factors as vectors, and contracts sums of products.
type widener struct {
	*lowering
	widths map[*ir.UOp]*width
	uses   map[*ir.UOp]int
}

// operands lowers the factors of a product over the lanes target.
func (l *widener) operands(u *ir.UOp, at coords, target []int) (x, y val) {
	return l.besideOpen(u, l.operand(u.Src[0], at, target), l.operand(u.Src[1], at, target), at)
}

// besideOpen gives the factors x and y of a product, lowered anew where one is a sum that is
// open over lanes: the other is then spread over those, too.
func (l *widener) besideOpen(u *ir.UOp, x, y val, at coords) (val, val) {
	switch target := l.exprs.laneSubAxes(u, at); {
	case x.pend.Empty() && !y.pend.Empty():
		x = l.operandBeside(u.Src[0], at, target, unionSubAxes(target, y.subAxes))
	case !x.pend.Empty() && y.pend.Empty():
		y = l.operandBeside(u.Src[1], at, target, unionSubAxes(target, x.subAxes))
	}
	return x, y
}

// operand lowers a source of an op whose result runs over the lanes target.
func (l *widener) operand(u *ir.UOp, at coords, target []int) val {
	return l.operandBeside(u, at, target, target)
}

// operandBeside is operand where the result is then spread over the lanes beside.
func (l *widener) operandBeside(u *ir.UOp, at coords, target, beside []int) val {
	if half := u.Op == ir.OpCast && u.Src[0].DType == ir.F16; half && len(target) > 0 && len(l.exprs.laneSubAxes(u, at)) == 0 && !l.exprs.isStatic(u) {
		return l.spreadHalf(u, at, target)
	}
	wide := l.wideCopies(u, at, beside)
	if wide.Empty() {
		return l.exprs.lower(u, at)
	}
	point := append(coords(nil), at...)
	for _, i := range wide.List() {
		point[i] = laneCoord
	}
	x := l.exprs.lower(u, point)
	key := derivedKey{x.v, subAxesKey("part", target)}
	for _, i := range wide.List() {
		key.what += fmt.Sprintf(" %d=%d", i, at[i])
	}
	v := l.scopes.derive(x.depth, key, func() *program.Value { // the copy at the point, spread over the target
		return l.b.Shuffle(x.v, x.v, l.exprs.pick(x.subAxes, target, at)...)
	})
	return val{v: v, subAxes: target, depth: x.depth}
}

// spreadHalf spreads an f16 scalar before it is converted: a broadcast load and
// one conversion, where the other order takes four instructions.
func (l *widener) spreadHalf(u *ir.UOp, at coords, target []int) val {
	x := l.exprs.lower(u.Src[0], at)
	v := l.scopes.derive(x.depth, derivedKey{x.v, subAxesKey("half "+u.DType.String(), target)}, func() *program.Value {
		return l.b.Cast(l.b.Broadcast(x.v, l.exprs.laneCount(target)), u.DType)
	})
	return val{v: v, subAxes: target, depth: x.depth}
}

// wideCopies picks the copies of u that become lanes: none if u has as many
// lanes as its partner, is cheap, or would have to gather.
func (l *widener) wideCopies(u *ir.UOp, at coords, target []int) analyse.RangeSet {
	free := l.free.Of(u)
	if u.DType == ir.Idx || u.DType == ir.Bool || u.Op == ir.OpConst || len(target) == 0 || free.Meet(l.copies).Empty() || l.exprs.isStatic(u) {
		return analyse.RangeSet{}
	}
	own := l.exprs.laneSubAxes(u, at)
	lanes, limit := l.exprs.laneCount(own), 16
	if !l.block.onGPU() { // bytes of more copies are one register, too
		limit = max(limit, l.Desc.VectorBytes/u.DType.Size())
	}
	if len(own) == len(target) || lanes >= limit {
		return analyse.RangeSet{}
	}
	w := l.widthOf(u)
	if !w.worth {
		return analyse.RangeSet{}
	}
	var wide analyse.RangeSet
	list := free.Meet(l.copies).List()
	for _, i := range slices.Backward(list) {
		if at[i] >= 0 && lanes*int(l.extent[i]) <= limit {
			wide.Add(i)
			lanes *= int(l.extent[i])
		}
	}
	if wide.Empty() || lanes < 4 {
		return analyse.RangeSet{}
	}
	point := append(coords(nil), at...)
	for _, i := range wide.List() {
		point[i] = laneCoord
	}
	if !l.compact(w, point, at) {
		return analyse.RangeSet{}
	}
	return wide
}

// copiesAsLanes reports a sum over copies of which all together, with the lanes that each has,
// fit a register: the minima of a block times the sums of its activations, say. They become
// lanes of one value.
func (l *widener) copiesAsLanes(sum *ir.UOp, at coords) bool {
	if l.block.onGPU() {
		return false
	}
	point, body := slices.Clone(at), sum
	var over analyse.RangeSet
	for body.Op == ir.OpReduce && body.Arg.(ir.ReduceArg).Op == ir.OpAdd {
		i := l.free.Index.Of(body.ReduceRange())
		if l.Dots.Has(i) || l.Roles[i] != plan.Unroll && l.Roles[i] != plan.Lane {
			return false
		}
		point[i] = laneCoord
		over.Add(i)
		body = body.Src[0]
	}
	w := l.widthOf(body)
	lanes := l.exprs.laneSubAxes(body, point)
	return w.worth && over.Minus(l.free.Of(body)).Empty() && l.points(lanes) <= int64(l.Desc.VectorBytes/4) && l.compact(w, point, at)
}

// width is what wideCopies asks of a node: whether it computes anything, and
// which loads it makes.
type width struct {
	worth bool
	loads []*ir.UOp
}

func (l *widener) widthOf(u *ir.UOp) *width {
	if w := l.widths[u]; w != nil {
		return w
	}
	w := &width{}
	pure := true
	ir.Walk(func(x *ir.UOp) []*ir.UOp {
		switch {
		case x.Op == ir.OpLoad || x.Op == ir.OpField:
			w.loads = append(w.loads, x)
			return nil
		case x.Op == ir.OpConst || x.Op == ir.OpVar || x.Op == ir.OpRange || x.DType == ir.Idx:
		case x.Op.IsElementwise():
			w.worth = true
		default:
			pure = false
		}
		return x.Src
	}, u)
	w.worth = w.worth && pure && len(w.loads) > 0
	l.widths[u] = w
	return w
}

// compact reports loads whose lanes lie close together at a point with copies as lanes, or
// not even where each copy is for itself, so that they are read one by one anyway.
func (l *widener) compact(w *width, point, at coords) bool {
	return !slices.ContainsFunc(w.loads, func(u *ir.UOp) bool {
		return !l.compactLoad(u, point) && l.compactLoad(u, at)
	})
}

// compactLoad reports a load whose lanes lie close together: contiguous or
// within a register.
func (l *widener) compactLoad(u *ir.UOp, at coords) bool {
	if u.Src[0].Op != ir.OpParam && u.Src[0].Op != ir.OpStage {
		return len(l.exprs.laneSubAxes(u, at)) == 0
	}
	if u.Src[0].Op == ir.OpStage && slices.ContainsFunc(l.free.Of(u.Src[0]).Meet(l.copies).List(), func(i int) bool { return at[i] == laneCoord }) {
		return false // each copy has an array of its own
	}
	addr, step := l.memory.addressAndStep(u)
	var static []ir.Term
	var subAxes []int
	for _, t := range addr.form.Terms {
		d := l.exprs.laneSubAxes(t.Atom, at)
		if len(d) == 0 {
			continue
		}
		if !l.exprs.isStatic(t.Atom) {
			return false
		}
		static = append(static, t)
		subAxes = unionSubAxes(subAxes, d)
	}
	offsets := l.memory.staticOffsets(static, subAxes, at)
	size := int64(u.DType.Size())
	return (slices.Max(offsets)-slices.Min(offsets))*step < max(16, 2*size*int64(l.exprs.laneCount(subAxes)))
}

// Contraction (the FMA Opt).

// contract emits a sum or difference with a product in it as one instruction.
func (l *widener) contract(u *ir.UOp, at coords) (val, bool) {
	target := l.exprs.laneSubAxes(u, at)
	x, y := u.Src[0], u.Src[1]
	fma := l.Options.FMA && (u.DType == ir.F32 || u.DType == ir.F64)
	isSum := func(x *ir.UOp) bool { return l.dotSum(x) || fma && l.unrolledSum(x) }
	switch {
	case u.Op == ir.OpAdd && isSum(x):
		return l.sumFrom(y, x, at, target), true
	case u.Op == ir.OpAdd && isSum(y):
		return l.sumFrom(x, y, at, target), true
	case !fma:
	case u.Op == ir.OpAdd && l.single(x):
		return l.fmaOf(x.Src[0], x.Src[1], y, at, target), true
	case u.Op == ir.OpAdd && l.single(y):
		return l.fmaOf(y.Src[0], y.Src[1], x, at, target), true
	case u.Op == ir.OpSub && l.single(x) && l.fewer(y, x, at):
		return l.fmaOf(x.Src[0], x.Src[1], l.Arena.Unary(ir.OpNeg, y), at, target), true
	}
	return val{}, false
}

// narrowSum rewrites f(q) + c, with q a narrow integer and c a whole number, to
// f(q + c) where the sum fits the signed dtype of q's size: both are exact, and
// the sum runs on four times as many lanes a register.
func (l *widener) narrowSum(u *ir.UOp) *ir.UOp {
	a := l.Arena
	x, c := u.Src[0], u.Src[1]
	if x.Op != ir.OpCast || !x.Src[0].DType.IsInt() || x.Src[0].DType.Size() > 2 || u.DType != ir.F32 && u.DType != ir.F64 {
		return nil
	}
	v, ok := c.Float()
	if !ok || v != math.Trunc(v) || math.Abs(v) > 1<<14 || v == 0 {
		return nil
	}
	q := x.Src[0]
	d := ir.I8
	if q.DType.Size() == 2 {
		d = ir.I16
	}
	b := l.Bounds.Of(q)
	lo, hi := d.IntRange()
	if !b.Within(lo, hi) || b.Lo+int64(v) < lo || b.Hi+int64(v) > hi {
		return nil
	}
	return a.Cast(a.Add(a.Cast(q, d), a.ConstInt(d, int64(v))), u.DType)
}

// single reports a float product that nothing else uses. Those of factors that are taken apart are in no list of uses.
func (l *widener) single(u *ir.UOp) bool { return u.Op == ir.OpMul && l.uses[u] <= 1 }

// unrolledSum reports a sum over copies that nothing else uses.
func (l *widener) unrolledSum(u *ir.UOp) bool {
	return u.Op == ir.OpReduce && l.uses[u] == 1 && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && l.Roles[l.free.Index.Of(u.ReduceRange())] == plan.Unroll
}

// dotSum reports a sum of dots, over lanes or copies, that nothing else uses: it
// starts from what is added to it.
func (l *widener) dotSum(u *ir.UOp) bool {
	if u.Op != ir.OpReduce || l.uses[u] != 1 || u.DType != ir.I32 || u.Arg.(ir.ReduceArg).Op != ir.OpAdd {
		return false
	}
	i := l.free.Index.Of(u.ReduceRange())
	if l.Dots.Has(i) {
		_, _, ok := l.byteFactors(u.Src[0])
		return ok
	}
	return (l.Roles[i] == plan.Unroll || l.Roles[i] == plan.Lane) && l.dotSum(u.Src[0])
}

// sumFrom adds the terms of a sum to a first value.
func (l *widener) sumFrom(first, sum *ir.UOp, at coords, target []int) val {
	terms := []term{{x: l.exprs.settle(l.operand(first, at, target))}}
	return l.exprs.settle(l.loops.sum(append(terms, l.loops.terms(sum, at, analyse.RangeSet{})...)))
}

func (l *widener) fewer(x, y *ir.UOp, at coords) bool {
	return len(l.exprs.laneSubAxes(x, at)) <= len(l.exprs.laneSubAxes(y, at))
}

func (l *widener) fmaOf(x, y, z *ir.UOp, at coords, target []int) val {
	return l.exprs.aluOver(ir.OpFma, x.DType, target, l.exprs.settle(l.operand(x, at, target)), l.exprs.settle(l.operand(y, at, target)), l.exprs.settle(l.operand(z, at, target)))
}
