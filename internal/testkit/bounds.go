package testkit

import (
	"math"

	"tgc/ir"
)

// unit is the largest relative error of rounding to a float dtype once.
func unit(dtype ir.DType) float64 { return math.Ldexp(1, -dtype.MantissaBits()-1) }

// tiny is an absolute slack of transcendental functions: what is lost when
// results below the normal numbers of f32 are flushed.
const tiny = 1e-37

// precision says how f32 is computed.
type precision bool

// The precisions: rounded as the op table says, or in float64 throughout, to
// compare two forms without the noise of rounding.
const (
	rounded precision = false
	wide    precision = true
)

// of is the dtype in which a dtype is computed.
func (p precision) of(dtype ir.DType) ir.DType {
	if p == wide && dtype == ir.F32 {
		return ir.F64
	}
	return dtype
}

// sinSlack is how far two sines of one angle may be apart.
func (p precision) sinSlack() float64 {
	if p == wide {
		return 1e-14
	}
	return 4e-7
}

// apply computes an elementwise op with its error bound. The value is that of
// ir.EvalScalar on the values.
func (p precision) apply(op ir.Op, dtype, src ir.DType, args []Number) Number {
	dtype, src = p.of(dtype), p.of(src)
	scalars := make([]ir.Scalar, len(args))
	fuzzy := false
	for i, a := range args {
		scalars[i] = a.Scalar
		fuzzy = fuzzy || a.Error != 0 || a.Residual != 0 && (op == ir.OpAdd || op == ir.OpSub)
	}
	out := Number{Scalar: ir.EvalScalar(op, dtype, src, scalars)}
	switch {
	case op == ir.OpWhere:
		return choose(args)
	case op == ir.OpSin || op == ir.OpExp2 || op == ir.OpLog2 || op == ir.OpRsqrt:
		out.Error = transcendental(op, dtype, out.F, args[0], p.sinSlack())
	case !fuzzy:
	case op == ir.OpCast:
		out.Error = castError(dtype, src, out.Scalar, args[0])
	case op == ir.OpCmpLt || op == ir.OpCmpEq:
		out.Error = compareError(src, args)
	case dtype == ir.Bool:
		out.Error = logicError(op, args)
	case dtype.IsFloat():
		out.Error = floatError(op, dtype, out.F, args)
	default:
		out.Error = intError(op, dtype, out.I, args)
	}
	if dtype.IsFloat() {
		out.Magnitude = magnitude(op, out.F, args)
		out.Residual = residual(op, out.F, args)
		settle(&out, args)
	}
	return out
}

// settle decides about values that are no finite numbers: an infinity that
// came in as one stays, everything else is unknown.
func settle(n *Number, args []Number) {
	switch {
	case math.IsNaN(n.F):
		n.Error = math.Inf(1)
	case math.IsInf(n.F, 0):
		n.Error = math.Inf(1)
		for _, a := range args {
			if math.IsInf(a.F, 0) && !math.IsInf(a.Error, 0) {
				n.Error = 0
			}
		}
	case math.IsNaN(n.Error):
		n.Error = math.Inf(1)
	}
}

// residual is what rounding took from a product: a sum that contracts it does not
// round it. The larger of a number and itself is that number, so what reads it
// may contract too.
func residual(op ir.Op, v float64, args []Number) float64 {
	r := 0.0
	switch op {
	case ir.OpMul:
		r = math.Abs(math.FMA(args[0].F, args[1].F, -v)) // exact, of f64 too
	case ir.OpNeg:
		r = args[0].Residual
	case ir.OpMin, ir.OpMax:
		r = max(args[0].Residual, args[1].Residual)
	}
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return 0
	}
	return r
}

// magnitude is the sum of absolute terms of a result.
func magnitude(op ir.Op, v float64, args []Number) float64 {
	m := math.Abs(v)
	switch op {
	case ir.OpAdd, ir.OpSub:
		m = args[0].Magnitude + args[1].Magnitude
	case ir.OpMul:
		m = args[0].Magnitude * args[1].Magnitude
	case ir.OpFma:
		m = args[0].Magnitude*args[1].Magnitude + args[2].Magnitude
	case ir.OpNeg, ir.OpAbs, ir.OpCast:
		m = args[0].Magnitude
	case ir.OpFDiv:
		m = args[0].Magnitude / math.Abs(args[1].F)
	}
	if math.IsNaN(m) {
		return math.Abs(v)
	}
	return max(m, math.Abs(v))
}

// choose is WHERE: with an unsure condition either arm may come out.
func choose(args []Number) Number {
	picked, other := args[1], args[2]
	if args[0].I == 0 {
		picked, other = other, picked
	}
	if args[0].Error == 0 {
		return picked
	}
	gap := math.Abs(picked.F-other.F) + math.Abs(float64(picked.I)-float64(other.I))
	if picked.Scalar == other.Scalar {
		gap = 0
	}
	if math.IsNaN(gap) {
		gap = math.Inf(1)
	}
	picked.Error, picked.Origin = max(picked.Error, other.Error)+gap, 0
	picked.Magnitude = max(picked.Magnitude, other.Magnitude)
	return picked
}

// span evaluates a monotone function at the ends of an argument's interval.
func span(v float64, arg Number, f func(float64) float64) float64 {
	if arg.Error == 0 {
		return 0
	}
	return max(math.Abs(f(arg.F+arg.Error)-v), math.Abs(f(arg.F-arg.Error)-v))
}

// transcendental bounds the functions that are only good to 2 ULP; 8 units
// allow two evaluations to err on opposite sides.
func transcendental(op ir.Op, dtype ir.DType, v float64, arg Number, sinSlack float64) float64 {
	own := 8*unit(dtype)*math.Abs(v) + tiny
	switch op {
	case ir.OpSin:
		return arg.Error + sinSlack
	case ir.OpExp2:
		return span(v, arg, math.Exp2)*(1+1e-6) + own
	case ir.OpLog2:
		return span(v, arg, log2)*(1+1e-6) + own
	}
	return span(v, arg, func(x float64) float64 { return 1 / math.Sqrt(x) })*(1+1e-6) + own
}

// log2 is the one of the op table.
func log2(x float64) float64 {
	return ir.EvalScalar(ir.OpLog2, ir.F64, ir.F64, []ir.Scalar{{F: x}}).F
}

func castError(dtype, src ir.DType, v ir.Scalar, arg Number) float64 {
	switch {
	case src.IsFloat() && dtype == ir.Bool:
		return unsure(math.Abs(arg.F) <= arg.Error)
	case src.IsFloat():
		return span(toFloat(dtype, v), arg, func(x float64) float64 {
			return toFloat(dtype, ir.EvalScalar(ir.OpCast, dtype, src, []ir.Scalar{{F: x}}))
		})
	case dtype.IsFloat():
		return arg.Error + 2*unit(dtype)*(math.Abs(v.F)+arg.Error)
	case dtype == ir.Bool:
		return 1
	}
	return fits(dtype, v.I, arg.Error)
}

func toFloat(dtype ir.DType, v ir.Scalar) float64 {
	if dtype.IsFloat() {
		return v.F
	}
	return float64(v.I)
}

func unsure(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func compareError(src ir.DType, args []Number) float64 {
	if args[0].Origin != 0 && args[0].Origin == args[1].Origin {
		return 0
	}
	gap := math.Abs(toFloat(src, args[0].Scalar) - toFloat(src, args[1].Scalar))
	return unsure(!(gap > args[0].Error+args[1].Error))
}

// logicError knows that a sure false decides AND and a sure true OR.
func logicError(op ir.Op, args []Number) float64 {
	for _, a := range args {
		decides := (op == ir.OpAnd || op == ir.OpMul) && a.I == 0 || (op == ir.OpOr || op == ir.OpAdd) && a.I == 1
		if decides && a.Error == 0 {
			return 0
		}
	}
	return 1
}

// fits is the error of an integer unless it may wrap.
func fits(dtype ir.DType, v int64, err float64) float64 {
	lo, hi := dtype.IntRange()
	if float64(v)-err < float64(lo) || float64(v)+err > float64(hi) {
		return math.Inf(1)
	}
	return err
}

func intError(op ir.Op, dtype ir.DType, v int64, args []Number) float64 {
	switch op {
	case ir.OpAdd, ir.OpSub:
		return fits(dtype, v, args[0].Error+args[1].Error)
	case ir.OpNeg, ir.OpAbs:
		return fits(dtype, v, args[0].Error)
	case ir.OpMin, ir.OpMax:
		return max(args[0].Error, args[1].Error)
	}
	return math.Inf(1)
}

// floatError propagates errors through arithmetic and adds that of rounding.
func floatError(op ir.Op, dtype ir.DType, v float64, args []Number) float64 {
	x := args[0]
	y := x
	if len(args) > 1 {
		y = args[1]
	}
	err := 0.0
	switch op {
	case ir.OpNeg, ir.OpAbs:
		return x.Error
	case ir.OpMin, ir.OpMax:
		return max(x.Error, y.Error)
	case ir.OpAdd, ir.OpSub:
		err = x.Error + y.Error + x.Residual + y.Residual
	case ir.OpMul:
		err = mulError(x, y)
	case ir.OpFma:
		err = mulError(x, y) + args[2].Error
	case ir.OpFDiv:
		err = divError(x, y)
	case ir.OpRecip:
		err = divError(Number{Scalar: ir.FloatScalar(1)}, x)
	case ir.OpSqrt:
		err = span(v, x, math.Sqrt)
	case ir.OpFloor:
		return span(v, x, math.Floor)
	case ir.OpTrunc:
		return span(v, x, math.Trunc)
	case ir.OpRound:
		return span(v, x, math.RoundToEven)
	default:
		return math.Inf(1)
	}
	return err + 2*unit(dtype)*(math.Abs(v)+err)
}

func mulError(x, y Number) float64 {
	err := x.Error * y.Error
	if y.Error > 0 {
		err += math.Abs(x.F) * y.Error
	}
	if x.Error > 0 {
		err += math.Abs(y.F) * x.Error
	}
	return err
}

func divError(x, y Number) float64 {
	room := math.Abs(y.F) - y.Error
	if room <= 0 {
		return math.Inf(1)
	}
	return (math.Abs(x.F/y.F)*y.Error + x.Error) / room
}
