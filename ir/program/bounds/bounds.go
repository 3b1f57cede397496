// Package bounds finds between which integers the values of a program lie.
package bounds

import (
	"maps"
	"math"
	"math/bits"

	"tgc/ir"
	"tgc/ir/program"
)

// Intervals of integer values, so that 64-bit indices whose values fit are
// computed in 32 bits and divided without corrections for signs. They are plain
// ranges, not ir.Interval: an end that lies inside of the dtype's says that nothing
// wraps (Number.Exact), which a known residue or bit would break.

// Interval is Lo..Hi, both included, of every lane of a value.
type Interval struct{ Lo, Hi int64 }

var unknown = Interval{math.MinInt64, math.MaxInt64}

// Fits32 reports an interval within those of a signed 32-bit integer.
func (b Interval) Fits32() bool { return b.Lo >= math.MinInt32 && b.Hi <= math.MaxInt32 }

// Known reports a limit on either side.
func (b Interval) Known() bool { return b.Lo != math.MinInt64 || b.Hi != math.MaxInt64 }

func (b Interval) join(c Interval) Interval { return Interval{min(b.Lo, c.Lo), max(b.Hi, c.Hi)} }

// Of walks a program once. What a loop carries is unknown.
func Of(p *program.Program) map[*program.Value]Interval {
	a := &boundsAnalysis{program: p, of: make(map[*program.Value]Interval), held: make(map[*program.Value]Interval)}
	a.root = FilledFirst(p)
	for i := range p.Params {
		q := &p.Params[i]
		if q.Kind == program.ParamTable {
			a.root[q.Value], a.held[q.Value] = q.Value, entries(q)
		}
		if q.Kind == program.ParamVar {
			a.of[q.Value] = unknown
			if q.Lo != 0 || q.Hi != 0 {
				a.of[q.Value] = Interval{q.Lo, q.Hi}
			}
		}
	}
	a.block(p.Body)
	return a.of
}

type boundsAnalysis struct {
	program *program.Program
	of      map[*program.Value]Interval
	root    map[*program.Value]*program.Value // the table or array that a pointer leads into
	held    map[*program.Value]Interval       // what a table or array holds
}

// FilledFirst gives the pointers into arrays of bytes all of which are written at places of
// the text before any at which they are read: such an array holds what is stored in it.
func FilledFirst(p *program.Program) map[*program.Value]*program.Value {
	root, read, other := make(map[*program.Value]*program.Value), make(map[*program.Value]bool), make(map[*program.Value]bool)
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.Alloca && in.Result.Type.Elem.Size() == 1 {
			root[in.Result] = in.Result
		}
		for k, v := range in.Args {
			switch array := root[v]; {
			case array == nil:
			case in.Op == program.PtrAdd:
				root[in.Result] = array
			case in.Op == program.Load || in.Op == program.Gather:
				read[array] = true
			case in.Op != program.Store || k > 0 || read[array]:
				other[array] = true
			}
		}
	})
	maps.DeleteFunc(root, func(_, array *program.Value) bool { return other[array] })
	return root
}

// entries is the range of a table's values.
func entries(p *program.Param) Interval {
	elem := p.Value.Type.Elem
	if elem.Size() != 1 || len(p.Table) == 0 {
		return rangeOf(elem)
	}
	b := Interval{math.MaxInt64, math.MinInt64}
	for _, x := range []byte(p.Table) {
		n := int64(x)
		if elem.IsSigned() {
			n = int64(int8(x))
		}
		b = b.join(Interval{n, n})
	}
	return b
}

// rangeOf is all that a dtype can hold.
func rangeOf(d ir.DType) Interval {
	if d == ir.U64 || d.IsFloat() {
		return unknown
	}
	lo, hi := d.IntRange()
	return Interval{lo, hi}
}

func (a *boundsAnalysis) get(v *program.Value) Interval {
	if b, ok := a.of[v]; ok {
		return b
	}
	return rangeOf(v.Type.Elem)
}

func (a *boundsAnalysis) block(b *program.Block) {
	for i := range b.Instrs {
		a.instr(&b.Instrs[i])
	}
}

func (a *boundsAnalysis) instr(in *program.Instr) {
	switch in.Op {
	case program.For:
		a.loop(in)
		return
	case program.If:
		a.block(in.Body)
		a.block(in.Else)
		yes, no := in.Body.Yielded(), in.Else.Yielded()
		for i, r := range in.Results {
			a.of[r] = a.get(yes[i]).join(a.get(no[i]))
		}
		return
	case program.GridLoop:
		a.of[in.Body.Args[0]] = Interval{0, max(a.program.Units()-1, 0)}
		a.block(in.Body)
		return
	}
	if in.Op == program.PtrAdd && a.root[in.Args[0]] != nil {
		a.root[in.Result] = a.root[in.Args[0]]
	}
	if in.Op == program.Store && a.root[in.Args[0]] != nil {
		a.store(a.root[in.Args[0]], a.get(in.Args[1]))
	}
	if in.Result == nil || in.Result.Type.Ptr || in.Result.Type.Elem.IsFloat() {
		return
	}
	limit := rangeOf(in.Result.Type.Elem)
	b := a.result(in)
	if b.Lo < limit.Lo || b.Hi > limit.Hi || b.Lo > b.Hi {
		b = limit // it may wrap
	}
	a.of[in.Result] = b
}

// store notes what goes into an array.
func (a *boundsAnalysis) store(array *program.Value, b Interval) {
	if held, ok := a.held[array]; ok {
		b = b.join(held)
	}
	a.held[array] = b
}

func (a *boundsAnalysis) loop(in *program.Instr) {
	lo, hi, step := a.get(in.Args[0]), a.get(in.Args[1]), a.get(in.Args[2])
	// The index register holds one step past the last index before it ends.
	index := Interval{lo.Lo, max(hi.Hi-1, lo.Hi)}
	if past, ok := ir.CheckedAdd(index.Hi, step.Hi); !ok || past > math.MaxInt32 || !lo.Fits32() || !hi.Fits32() {
		index = unknown
	}
	a.of[in.Body.Args[0]] = index
	a.block(in.Body)
}

func (a *boundsAnalysis) result(in *program.Instr) Interval {
	all := rangeOf(in.Result.Type.Elem)
	switch in.Op {
	case program.Const:
		if in.Result.Type.Elem == ir.U64 {
			return all
		}
		return Interval{in.Int, in.Int}
	case program.ConstLanes:
		if in.Result.Type.Elem == ir.U64 {
			return all
		}
		b := Interval{in.Ints[0], in.Ints[0]}
		for _, n := range in.Ints {
			b = b.join(Interval{n, n})
		}
		return b
	case program.Load, program.Gather:
		if b, ok := a.held[a.root[in.Args[0]]]; ok {
			return b
		}
	case program.Broadcast, program.Extract, program.Shuffle, program.Concat:
		b := a.get(in.Args[0])
		for _, v := range in.Args[1:] {
			b = b.join(a.get(v))
		}
		return b
	case program.ThreadIndex:
		if len(a.program.Block) == 0 {
			return Interval{0, 0}
		}
		return Interval{0, a.program.Block[in.Lane] - 1}
	case program.Guarded:
		return all
	case program.Alu:
		return a.alu(in, all)
	}
	return all
}

func (a *boundsAnalysis) alu(in *program.Instr, all Interval) Interval {
	if in.Args[0].Type.Elem.IsFloat() {
		return all
	}
	if in.Ir == ir.OpWhere {
		return a.get(in.Args[1]).join(a.get(in.Args[2]))
	}
	if in.Result.Type.Elem == ir.U64 || in.Args[0].Type.Elem == ir.U64 {
		return all
	}
	x := a.get(in.Args[0])
	if len(in.Args) == 1 {
		switch {
		case in.Ir == ir.OpCast:
			return x
		case in.Ir == ir.OpNeg && x.Lo > math.MinInt64:
			return Interval{-x.Hi, -x.Lo}
		}
		return all
	}
	if len(in.Args) == 2 {
		if b, ok := binaryBounds(in.Ir, x, a.get(in.Args[1])); ok {
			return b
		}
	}
	return all
}

// binaryBounds is the exact range of an op on mathematical integers.
func binaryBounds(op ir.Op, x, y Interval) (Interval, bool) {
	switch op {
	case ir.OpAdd:
		lo, ok1 := ir.CheckedAdd(x.Lo, y.Lo)
		hi, ok2 := ir.CheckedAdd(x.Hi, y.Hi)
		return Interval{lo, hi}, ok1 && ok2
	case ir.OpSub:
		if y.Lo == math.MinInt64 {
			return Interval{}, false
		}
		return binaryBounds(ir.OpAdd, x, Interval{-y.Hi, -y.Lo})
	case ir.OpMul:
		return corners(x, y, ir.CheckedMul)
	case ir.OpMin:
		return Interval{min(x.Lo, y.Lo), min(x.Hi, y.Hi)}, true
	case ir.OpMax:
		return Interval{max(x.Lo, y.Lo), max(x.Hi, y.Hi)}, true
	case ir.OpFloorDiv:
		if y.Lo < 1 || !x.Known() {
			return Interval{}, false
		}
		return corners(x, y, func(p, q int64) (int64, bool) { return ir.FloorDiv(p, q), true })
	case ir.OpFloorMod:
		if y.Lo < 1 {
			return Interval{}, false
		}
		if x.Lo >= 0 {
			return Interval{0, min(x.Hi, y.Hi-1)}, true
		}
		return Interval{0, y.Hi - 1}, true
	case ir.OpAnd:
		switch {
		case x.Lo >= 0 && y.Lo >= 0:
			return Interval{0, min(x.Hi, y.Hi)}, true
		case y.Lo >= 0:
			return Interval{0, y.Hi}, true
		case x.Lo >= 0:
			return Interval{0, x.Hi}, true
		}
	case ir.OpOr, ir.OpXor:
		if x.Lo >= 0 && y.Lo >= 0 {
			return Interval{0, int64(1)<<bits.Len64(uint64(x.Hi|y.Hi)) - 1}, true
		}
	case ir.OpShr:
		if y.Lo == y.Hi && y.Lo >= 0 && y.Lo < 63 {
			return Interval{x.Lo >> y.Lo, x.Hi >> y.Lo}, true
		}
	case ir.OpShl:
		if y.Lo == y.Hi && y.Lo >= 0 && y.Lo < 32 {
			return binaryBounds(ir.OpMul, x, Interval{1 << y.Lo, 1 << y.Lo})
		}
	}
	return Interval{}, false
}

func corners(x, y Interval, f func(p, q int64) (int64, bool)) (Interval, bool) {
	b := Interval{math.MaxInt64, math.MinInt64}
	for _, p := range []int64{x.Lo, x.Hi} {
		for _, q := range []int64{y.Lo, y.Hi} {
			v, ok := f(p, q)
			if !ok {
				return Interval{}, false
			}
			b = b.join(Interval{v, v})
		}
	}
	return b, true
}
