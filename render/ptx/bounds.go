package ptx

import (
	"math"
	"math/bits"

	"tgc/ir"
	"tgc/ir/program"
)

// Intervals of integer values, so that 64-bit indices whose values fit are
// computed in 32 bits and divided without corrections for signs.

// interval is lo..hi, both included, of every lane of a value.
type interval struct{ lo, hi int64 }

var unknown = interval{math.MinInt64, math.MaxInt64}

func (b interval) fits32() bool { return b.lo >= math.MinInt32 && b.hi <= math.MaxInt32 }

func (b interval) known() bool { return b.lo != math.MinInt64 || b.hi != math.MaxInt64 }

func (b interval) join(c interval) interval { return interval{min(b.lo, c.lo), max(b.hi, c.hi)} }

// boundsOf walks a program once. What a loop carries is unknown.
func boundsOf(p *program.Program) map[*program.Value]interval {
	a := &boundsAnalysis{program: p, of: make(map[*program.Value]interval)}
	for i := range p.Params {
		q := &p.Params[i]
		if q.Kind == program.ParamVar {
			a.of[q.Value] = unknown
			if q.Lo != 0 || q.Hi != 0 {
				a.of[q.Value] = interval{q.Lo, q.Hi}
			}
		}
	}
	a.block(p.Body)
	return a.of
}

type boundsAnalysis struct {
	program *program.Program
	of      map[*program.Value]interval
}

// rangeOf is all that a dtype can hold.
func rangeOf(d ir.DType) interval {
	if d == ir.U64 || d.IsFloat() {
		return unknown
	}
	lo, hi := d.IntRange()
	return interval{lo, hi}
}

func (a *boundsAnalysis) get(v *program.Value) interval {
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
		yes, no := yielded(in.Body), yielded(in.Else)
		for i, r := range in.Results {
			a.of[r] = a.get(yes[i]).join(a.get(no[i]))
		}
		return
	case program.GridLoop:
		a.of[in.Body.Args[0]] = interval{0, max(a.program.Units()-1, 0)}
		a.block(in.Body)
		return
	}
	if in.Result == nil || in.Result.Type.Ptr || in.Result.Type.Elem.IsFloat() {
		return
	}
	limit := rangeOf(in.Result.Type.Elem)
	b := a.result(in)
	if b.lo < limit.lo || b.hi > limit.hi || b.lo > b.hi {
		b = limit // it may wrap
	}
	a.of[in.Result] = b
}

func yielded(b *program.Block) []*program.Value { return b.Instrs[len(b.Instrs)-1].Args }

func (a *boundsAnalysis) loop(in *program.Instr) {
	lo, hi, step := a.get(in.Args[0]), a.get(in.Args[1]), a.get(in.Args[2])
	// The index register holds one step past the last index before it ends.
	index := interval{lo.lo, max(hi.hi-1, lo.hi)}
	if past, ok := add(index.hi, step.hi); !ok || past > math.MaxInt32 || !lo.fits32() || !hi.fits32() {
		index = unknown
	}
	a.of[in.Body.Args[0]] = index
	a.block(in.Body)
}

func (a *boundsAnalysis) result(in *program.Instr) interval {
	all := rangeOf(in.Result.Type.Elem)
	switch in.Op {
	case program.Const:
		if in.Result.Type.Elem == ir.U64 {
			return all
		}
		return interval{in.Int, in.Int}
	case program.ConstLanes:
		if in.Result.Type.Elem == ir.U64 {
			return all
		}
		b := interval{in.Ints[0], in.Ints[0]}
		for _, n := range in.Ints {
			b = b.join(interval{n, n})
		}
		return b
	case program.Iota:
		return interval{0, int64(in.Result.Type.Lanes - 1)}
	case program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat:
		b := a.get(in.Args[0])
		for _, v := range in.Args[1:] {
			b = b.join(a.get(v))
		}
		return b
	case program.ThreadIndex:
		if len(a.program.Block) == 0 {
			return interval{0, 0}
		}
		return interval{0, a.program.Block[in.Lane] - 1}
	case program.Guarded:
		return all
	case program.Alu:
		return a.alu(in, all)
	}
	return all
}

func (a *boundsAnalysis) alu(in *program.Instr, all interval) interval {
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
		case in.Ir == ir.OpNeg && x.lo > math.MinInt64:
			return interval{-x.hi, -x.lo}
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
func binaryBounds(op ir.Op, x, y interval) (interval, bool) {
	switch op {
	case ir.OpAdd:
		lo, ok1 := add(x.lo, y.lo)
		hi, ok2 := add(x.hi, y.hi)
		return interval{lo, hi}, ok1 && ok2
	case ir.OpSub:
		if y.lo == math.MinInt64 {
			return interval{}, false
		}
		return binaryBounds(ir.OpAdd, x, interval{-y.hi, -y.lo})
	case ir.OpMul:
		return corners(x, y, mul)
	case ir.OpMin:
		return interval{min(x.lo, y.lo), min(x.hi, y.hi)}, true
	case ir.OpMax:
		return interval{max(x.lo, y.lo), max(x.hi, y.hi)}, true
	case ir.OpFloorDiv:
		if y.lo < 1 || !x.known() {
			return interval{}, false
		}
		return corners(x, y, func(p, q int64) (int64, bool) { return ir.FloorDiv(p, q), true })
	case ir.OpFloorMod:
		if y.lo < 1 {
			return interval{}, false
		}
		if x.lo >= 0 {
			return interval{0, min(x.hi, y.hi-1)}, true
		}
		return interval{0, y.hi - 1}, true
	case ir.OpAnd:
		switch {
		case x.lo >= 0 && y.lo >= 0:
			return interval{0, min(x.hi, y.hi)}, true
		case y.lo >= 0:
			return interval{0, y.hi}, true
		case x.lo >= 0:
			return interval{0, x.hi}, true
		}
	case ir.OpOr, ir.OpXor:
		if x.lo >= 0 && y.lo >= 0 {
			return interval{0, int64(1)<<bits.Len64(uint64(x.hi|y.hi)) - 1}, true
		}
	case ir.OpShr:
		if y.lo == y.hi && y.lo >= 0 && y.lo < 63 {
			return interval{x.lo >> y.lo, x.hi >> y.lo}, true
		}
	case ir.OpShl:
		if y.lo == y.hi && y.lo >= 0 && y.lo < 32 {
			return binaryBounds(ir.OpMul, x, interval{1 << y.lo, 1 << y.lo})
		}
	}
	return interval{}, false
}

func corners(x, y interval, f func(p, q int64) (int64, bool)) (interval, bool) {
	b := interval{math.MaxInt64, math.MinInt64}
	for _, p := range []int64{x.lo, x.hi} {
		for _, q := range []int64{y.lo, y.hi} {
			v, ok := f(p, q)
			if !ok {
				return interval{}, false
			}
			b = b.join(interval{v, v})
		}
	}
	return b, true
}

func add(x, y int64) (int64, bool) {
	s := x + y
	return s, (s > x) == (y > 0)
}

func mul(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}
