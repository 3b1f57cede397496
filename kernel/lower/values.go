package lower

import (
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

// scalarVal is a value that all lanes share, known from the current scope on.
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
	case ir.OpAdd:
		return l.b.Add(vs[0], vs[1])
	case ir.OpSub:
		return l.b.Sub(vs[0], vs[1])
	case ir.OpMul:
		return l.b.Mul(vs[0], vs[1])
	case ir.OpWhere:
		v := l.b.Where(vs[0], vs[1], vs[2])
		if dtype.IsFloat() && v.Type.Lanes == 1 {
			l.chosen[v] = vs
		}
		return v
	}
	return l.b.Alu(op, vs...)
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

// unionSubAxes merges two ascending lists.
func unionSubAxes(x, y []int) []int {
	if len(y) == 0 || slices.Equal(x, y) {
		return x
	}
	if len(x) == 0 {
		return y
	}
	out := slices.Concat(x, y)
	slices.Sort(out)
	return slices.Compact(out)
}

// laneCount is the number of lanes over sub-axes.
func (l *expressions) laneCount(subAxes []int) int {
	n := l.points(subAxes)
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
		return l.scopes.derive(x.depth, derivedKey{x.v, "b" + strconv.Itoa(n)}, func() *program.Value { return l.broadcast(x.v, n) })
	}
	return l.scopes.derive(x.depth, derivedKey{x.v, subAxesKey("e", subAxes)}, func() *program.Value {
		return l.b.Shuffle(x.v, x.v, l.pick(x.subAxes, subAxes, nil)...)
	})
}

// broadcast is a scalar in all lanes. Of two floats, one is chosen where they are in lanes already: a CPU chooses
// between vectors by a mask, but between scalars by a jump.
func (l *expressions) broadcast(v *program.Value, lanes int) *program.Value {
	of, chosen := l.chosen[v]
	if !chosen {
		return l.b.Broadcast(v, lanes)
	}
	return l.b.Where(l.b.Broadcast(of[0], lanes), l.b.Broadcast(of[1], lanes), l.b.Broadcast(of[2], lanes))
}

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

func dependsOn(x val, over analyse.RangeSet) bool {
	return slices.ContainsFunc(x.subAxes, func(i int) bool { return over.Has(i) })
}
