package llvm

import (
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Lane movement and folds.

func (r *renderer) lanes(in *program.Instr) {
	x := r.value(in.Args[0])
	var v value.Value
	switch in.Op {
	case program.Broadcast:
		v = r.broadcast(x, in.Result.Type.Lanes)
	case program.Extract:
		v = r.lane(x, in.Lane)
	case program.Shuffle:
		v = r.shuffleLanes(x, r.value(in.Args[1]), in.Mask)
		r.rememberLanes(in)
	case program.Concat:
		v = r.concat(in.Args)
	case program.FoldLanes:
		v = r.fold(in)
	case program.Dot4:
		v = r.dot4(in)
	}
	r.set(in, v)
}

func lanesOf(v value.Value) int {
	if t, ok := v.Type().(*types.VectorType); ok {
		return int(t.Len)
	}
	return 1
}

func (r *renderer) lane(x value.Value, lane int) value.Value {
	if lanesOf(x) == 1 {
		return x
	}
	return r.at.NewExtractElement(x, intOf(types.I32, int64(lane)))
}

func (r *renderer) broadcast(x value.Value, lanes int) value.Value {
	if lanes == 1 {
		return x
	}
	t := types.NewVector(uint64(lanes), x.Type())
	one := r.at.NewInsertElement(undef(t), x, intOf(types.I32, 0))
	return r.at.NewShuffleVector(one, undef(t), shuffleMask(make([]int, lanes)))
}

// shuffleLanes allows scalars as operands and as the result.
func (r *renderer) shuffleLanes(x, y value.Value, mask []int) value.Value {
	n := lanesOf(x)
	if len(mask) == 1 || n == 1 {
		return r.gatherLanes(x, y, mask)
	}
	return r.at.NewShuffleVector(x, y, shuffleMask(mask))
}

// gatherLanes picks lanes one by one.
func (r *renderer) gatherLanes(x, y value.Value, mask []int) value.Value {
	n := lanesOf(x)
	pick := func(m int) value.Value {
		if m >= n {
			return r.lane(y, m-n)
		}
		return r.lane(x, max(m, 0))
	}
	if len(mask) == 1 {
		return pick(mask[0])
	}
	var v value.Value = undef(types.NewVector(uint64(len(mask)), x.Type()))
	for i, m := range mask {
		if m >= 0 {
			v = r.at.NewInsertElement(v, pick(m), intOf(types.I32, int64(i)))
		}
	}
	return v
}

func (r *renderer) concat(parts []*program.Value) value.Value {
	vs := lists.Map(parts, r.value)
	return r.joinAll(vs)
}

// joinAll concatenates pairs until one is left.
func (r *renderer) joinAll(vs []value.Value) value.Value {
	for len(vs) > 1 {
		var next []value.Value
		for i := 0; i+1 < len(vs); i += 2 {
			next = append(next, r.join(vs[i], vs[i+1]))
		}
		if len(vs)%2 == 1 {
			next = append(next, vs[len(vs)-1])
		}
		vs = next
	}
	return vs[0]
}

// join concatenates two vectors or scalars.
func (r *renderer) join(x, y value.Value) value.Value {
	n, m := lanesOf(x), lanesOf(y)
	mask := make([]int, 0, n+m)
	wide := max(n, m)
	for i := range n {
		mask = append(mask, i)
	}
	for i := range m {
		mask = append(mask, wide+i)
	}
	return r.shuffleLanes(r.widenTo(x, wide), r.widenTo(y, wide), mask)
}

// widenTo adds undefined lanes.
func (r *renderer) widenTo(x value.Value, lanes int) value.Value {
	n := lanesOf(x)
	if n == lanes {
		return x
	}
	if n == 1 {
		return r.at.NewInsertElement(undef(types.NewVector(uint64(lanes), x.Type())), x, intOf(types.I32, 0))
	}
	mask := make([]int, lanes)
	for i := range mask {
		mask[i] = i
		if i >= n {
			mask[i] = -1
		}
	}
	return r.at.NewShuffleVector(x, undef(x.Type()), shuffleMask(mask))
}

// fold folds lanes in program.FoldOrder.
func (r *renderer) fold(in *program.Instr) value.Value {
	x, elem := r.value(in.Args[0]), in.Result.Type.Elem
	n := lanesOf(x)
	if n&(n-1) != 0 {
		acc := r.lane(x, 0)
		for i := 1; i < n; i++ {
			acc = r.foldStep(in.Ir, elem, acc, r.lane(x, i))
		}
		return acc
	}
	for n > 1 {
		n /= 2
		low, high := make([]int, n), make([]int, n)
		for i := range n {
			low[i], high[i] = i, n+i
		}
		x = r.foldStep(in.Ir, elem, r.shuffleLanes(x, x, low), r.shuffleLanes(x, x, high))
	}
	return x
}

func (r *renderer) foldStep(op ir.Op, elem ir.DType, x, y value.Value) value.Value {
	if op == ir.OpMin || op == ir.OpMax {
		if elem.IsFloat() {
			return r.extreme(op, x, y)
		}
		if op == ir.OpMin {
			return r.at.NewSelect(r.at.NewICmp(less(elem.IsSigned()), y, x), y, x)
		}
		return r.at.NewSelect(r.at.NewICmp(less(elem.IsSigned()), x, y), y, x)
	}
	switch {
	case op == ir.OpAdd && elem.IsFloat():
		return r.at.NewFAdd(x, y)
	case op == ir.OpAdd:
		return r.at.NewAdd(x, y)
	case elem.IsFloat():
		return r.at.NewFMul(x, y)
	}
	return r.at.NewMul(x, y)
}
