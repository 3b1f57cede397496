package ir

import (
	"fmt"
	"math"

	"github.com/x448/float16"
)

// Builders. Idx arithmetic folds constants and drops neutral elements while it
// is built, because index expressions grow from many small steps; everything
// else is left to the rules of package rewrite.

// RoundFloat rounds v to the nearest value of a float dtype.
func RoundFloat(dtype DType, v float64) float64 {
	switch dtype {
	case F64:
		return v
	case F32:
		return float64(float32(v))
	case F16:
		return float64(float16.Fromfloat32(oddRound(v)).Float32())
	case BF16:
		return float64(roundBF16(oddRound(v)))
	case F8E4M3, F8E5M2:
		return float8s[dtype].round(v)
	}
	panic(fmt.Sprintf("ir: RoundFloat of %s", dtype))
}

// oddRound rounds to float32 with "round to odd", so that rounding once more
// to a narrower format is correct.
func oddRound(v float64) float32 {
	f := float32(v)
	if float64(f) == v || math.IsNaN(v) || math.IsInf(v, 0) {
		return f
	}
	bits := math.Float32bits(f)
	if bits&1 == 1 {
		return f
	}
	// Of the two neighbours around v, take the one with an odd last bit.
	if (float64(f) < v) == (v > 0) {
		return math.Float32frombits(bits + 1)
	}
	return math.Float32frombits(bits - 1)
}

func roundBF16(f float32) float32 {
	bits := math.Float32bits(f)
	if f != f {
		return math.Float32frombits(bits | 0x400000)
	}
	bits += 0x7fff + bits>>16&1
	return math.Float32frombits(bits &^ 0xffff)
}

// Const makes a float CONST rounded to dtype, or an integer one from a whole
// number.
func (a *Arena) Const(dtype DType, v float64) *UOp {
	if dtype.IsFloat() {
		return a.Make(OpConst, dtype, FloatArg(math.Float64bits(RoundFloat(dtype, v))))
	}
	return a.ConstInt(dtype, int64(v))
}

// ConstInt makes a CONST of any dtype from an integer; fixed-width integers
// wrap to their width.
func (a *Arena) ConstInt(dtype DType, v int64) *UOp {
	if dtype.IsFloat() {
		return a.Const(dtype, float64(v))
	}
	return a.Make(OpConst, dtype, IntArg(WrapInt(dtype, v)))
}

// WrapInt reduces v to the range of an integer dtype; U64 keeps its bits as an
// int64; Idx is unchanged; Bool is v != 0.
func WrapInt(dtype DType, v int64) int64 {
	switch dtype {
	case Bool:
		return int64(boolWord(v != 0))
	case I8:
		return int64(int8(v))
	case I16:
		return int64(int16(v))
	case I32:
		return int64(int32(v))
	case U8:
		return int64(uint8(v))
	case U16:
		return int64(uint16(v))
	case U32:
		return int64(uint32(v))
	}
	return v
}

// Index makes an Idx CONST.
func (a *Arena) Index(v int64) *UOp { return a.Make(OpConst, Idx, IntArg(v)) }

// Range makes a RANGE with this id and extent.
func (a *Arena) Range(id int, extent *UOp) *UOp { return a.Make(OpRange, Idx, RangeArg{id}, extent) }

// Var makes a VAR.
func (a *Arena) Var(v VarArg) *UOp {
	v.Multiple = max(v.Multiple, 1)
	return a.Make(OpVar, Idx, v)
}

// Unary makes an elementwise op of one source with its dtype.
func (a *Arena) Unary(op Op, x *UOp) *UOp { return a.Make(op, x.DType, nil, x) }

// Binary makes an elementwise op of two sources of one dtype; comparisons give
// Bool. Idx folds.
func (a *Arena) Binary(op Op, x, y *UOp) *UOp {
	if x.DType != y.DType {
		panic(fmt.Sprintf("ir: %s of %s and %s", op, x.DType, y.DType))
	}
	if x.DType == Idx {
		if folded := a.foldIdx(op, x, y); folded != nil {
			return folded
		}
	}
	if op == OpCmpLt || op == OpCmpEq {
		return a.Make(op, Bool, nil, x, y)
	}
	return a.Make(op, x.DType, nil, x, y)
}

// Add is x+y.
func (a *Arena) Add(x, y *UOp) *UOp { return a.Binary(OpAdd, x, y) }

// Sub is x-y. Idx writes it as x + -1*y, the one canonical form.
func (a *Arena) Sub(x, y *UOp) *UOp {
	if x.DType == Idx {
		return a.Add(x, a.Mul(y, a.Index(-1)))
	}
	return a.Binary(OpSub, x, y)
}

// Mul is x*y. A constant Idx factor stands second.
func (a *Arena) Mul(x, y *UOp) *UOp {
	if x.DType == Idx && x.Op == OpConst {
		x, y = y, x
	}
	return a.Binary(OpMul, x, y)
}

// Div is floor(x/y) of integers.
func (a *Arena) Div(x, y *UOp) *UOp { return a.Binary(OpFloorDiv, x, y) }

// Mod is x - y*floor(x/y) of integers.
func (a *Arena) Mod(x, y *UOp) *UOp { return a.Binary(OpFloorMod, x, y) }

// Lt is x < y.
func (a *Arena) Lt(x, y *UOp) *UOp { return a.Binary(OpCmpLt, x, y) }

// Eq is x == y.
func (a *Arena) Eq(x, y *UOp) *UOp { return a.Binary(OpCmpEq, x, y) }

// And is the bitwise (on Bool the logical) and.
func (a *Arena) And(x, y *UOp) *UOp { return a.Binary(OpAnd, x, y) }

// Where selects x where cond holds, else y; cond CONST folds.
func (a *Arena) Where(cond, x, y *UOp) *UOp {
	if v, ok := cond.Int(); ok {
		if v != 0 {
			return x
		}
		return y
	}
	return a.Make(OpWhere, x.DType, nil, cond, x, y)
}

// Cast converts x to dtype (x itself when it has it).
func (a *Arena) Cast(x *UOp, dtype DType) *UOp {
	if x.DType == dtype {
		return x
	}
	return a.Make(OpCast, dtype, nil, x)
}

// Load reads an element of a PARAM, TABLE, STAGE or VALUE.
func (a *Arena) Load(buf *UOp, index ...*UOp) *UOp {
	return a.Make(OpLoad, buf.DType, nil, append([]*UOp{buf}, index...)...)
}

// Store writes value at index for every point of the ranges (loop order).
func (a *Arena) Store(param, value *UOp, index, ranges []*UOp) *UOp {
	src := append([]*UOp{param, value}, index...)
	return a.Make(OpStore, Void, IntArg(len(index)), append(src, ranges...)...)
}

// Reduce folds value with a plain op over one RANGE.
func (a *Arena) Reduce(op Op, value, over *UOp) *UOp {
	return a.Make(OpReduce, value.DType, ReduceArg{Op: op, N: 1}, value, over)
}

// TupleReduce folds several values with a combine lambda over one RANGE.
func (a *Arena) TupleReduce(values []*UOp, over *UOp, identity, combine []*UOp) *UOp {
	n := len(values)
	src := make([]*UOp, 0, 3*n+1)
	src = append(append(src, values...), over)
	src = append(append(src, identity...), combine...)
	return a.Make(OpReduce, values[0].DType, ReduceArg{N: n}, src...)
}

// Proj is component i of a tuple REDUCE.
func (a *Arena) Proj(tuple *UOp, i int) *UOp {
	return a.Make(OpProj, tuple.Src[i].DType, IntArg(i), tuple)
}

// ReduceRange returns the RANGE that a REDUCE folds over.
func (u *UOp) ReduceRange() *UOp { return u.Src[u.Arg.(ReduceArg).N] }

// ReduceValues returns the folded values of a REDUCE.
func (u *UOp) ReduceValues() []*UOp { return u.Src[:u.Arg.(ReduceArg).N] }

// ReduceIdentities returns the identities of a tuple REDUCE, one a component.
func (u *UOp) ReduceIdentities() []*UOp {
	n := u.Arg.(ReduceArg).N
	return u.Src[n+1 : 2*n+1]
}

// ReduceCombine returns the combine steps of a tuple REDUCE, one a component:
// ARG i is component i of the accumulator, ARG n+i that of the element.
func (u *UOp) ReduceCombine() []*UOp { return u.Src[2*u.Arg.(ReduceArg).N+1:] }

// foldIdx folds constants and neutral elements of Idx arithmetic; nil when
// nothing folds.
func (a *Arena) foldIdx(op Op, x, y *UOp) *UOp {
	xv, xc := x.Int()
	yv, yc := y.Int()
	if xc && yc {
		if v, ok := foldIdxConst(op, xv, yv); ok {
			if op == OpCmpLt || op == OpCmpEq {
				return a.ConstInt(Bool, v)
			}
			return a.Index(v)
		}
		return nil
	}
	switch {
	case op == OpAdd && xc && xv == 0:
		return y
	case op == OpAdd && yc && yv == 0, op == OpMul && yc && yv == 1, op == OpFloorDiv && yc && yv == 1:
		return x
	case op == OpMul && xc && xv == 1:
		return y
	case op == OpMul && (xc && xv == 0 || yc && yv == 0), op == OpFloorMod && yc && yv == 1, op == OpFloorDiv && xc && xv == 0, op == OpFloorMod && xc && xv == 0:
		return a.Index(0)
	case (op == OpMin || op == OpMax) && x == y:
		return x
	}
	return nil
}

// foldIdxConst evaluates Idx arithmetic on constants; ok is false on overflow
// or an op that does not fold.
func foldIdxConst(op Op, x, y int64) (v int64, ok bool) {
	switch op {
	case OpAdd:
		v = x + y
		return v, (v > x) == (y > 0)
	case OpMul:
		if x == 0 || y == 0 {
			return 0, true
		}
		v = x * y
		return v, v/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	case OpFloorDiv:
		return FloorDiv(x, y), true
	case OpFloorMod:
		return FloorMod(x, y), true
	case OpMin:
		return min(x, y), true
	case OpMax:
		return max(x, y), true
	case OpCmpLt:
		return int64(boolWord(x < y)), true
	case OpCmpEq:
		return int64(boolWord(x == y)), true
	}
	return 0, false
}

// FloorDiv is floor(x/y); 0 when y is 0.
func FloorDiv(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

// FloorMod is x - y*floor(x/y), with the sign of y; 0 when y is 0.
func FloorMod(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	return x - y*FloorDiv(x, y)
}
