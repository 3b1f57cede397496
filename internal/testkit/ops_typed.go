package testkit

import (
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// typedOps are ops on values of every dtype, one primitive each and no motif:
// what a program is made of that no layer looks like. Extents may be 0.
var typedOps = []maker{
	{"typed input", 1, typedInput},
	{"typed binary", 6, typedBinary},
	{"typed unary", 3, typedUnary},
	{"typed cast", 4, typedCast},
	{"typed compare", 2, typedCompare},
	{"typed where", 3, typedWhere},
	{"typed reduce", 5, typedReduce},
	{"typed scan", 1, typedScan},
	{"typed gather", 2, typedGather},
	{"typed scatter add", 2, typedScatterAdd},
	{"typed assign", 2, typedAssign},
	{"typed iota", 1, typedIota},
	{"reshape", 2, reshapeOp},
	{"permute", 1, permuteOp},
	{"expand", 2, expandOp},
	{"flip", 1, flipOp},
	{"typed pad", 1, typedPad},
	{"typed shrink", 2, typedShrink},
	{"typed contiguous", 1, typedContiguous},
}

// ProgramLimits are graphs of typed ops with extents of 0 to 40.
func ProgramLimits() Limits {
	return Limits{MinOps: 3, MaxOps: 24, Elements: 2_000, Empty: true, Typed: true}
}

// allDTypes are the dtypes a program computes with.
var allDTypes = []ir.DType{
	ir.F32, ir.F32, ir.F16, ir.BF16, ir.F64,
	ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64, ir.Bool,
}

// typedExtent draws 0 to 40: often 1, sometimes 0, and numbers beside those
// that split evenly.
func (b *builder) typedExtent(label string) int {
	list := []int{1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 40}
	switch b.intRange(label+" kind", 0, 11) {
	case 0:
		return 0
	case 1, 2:
		return 1
	case 3:
		return b.intRange(label, 0, 40)
	}
	return rapid.SampledFrom(list).Draw(b.t, label)
}

func (b *builder) dtype() ir.DType { return rapid.SampledFrom(allDTypes).Draw(b.t, "dtype") }

func typedInput(b *builder) *tensor.Tensor { return b.input(b.dtype(), b.shape("shape")...) }

// fixed is the shape, ok if no extent is symbolic; extents may be 0.
func fixed(t *tensor.Tensor) (shape []int, ok bool) {
	for _, dim := range t.Shape() {
		n, isConst := dim.Int()
		if !isConst {
			return nil, false
		}
		shape = append(shape, int(n))
	}
	return shape, true
}

// typed picks a value of constant shape that passes a test of its dtype.
func (b *builder) typed(rank int, want func(ir.DType) bool) (t *tensor.Tensor, shape []int) {
	ok := func(t *tensor.Tensor) bool {
		_, constant := fixed(t)
		return constant && t.Rank() >= rank && want(t.DType())
	}
	if newest := b.pool[len(b.pool)-1]; b.chance("newest") && ok(newest) {
		t = newest // else graphs fall apart into many small ones
	} else {
		t = b.pick("value", ok)
	}
	if t != nil {
		shape, _ = fixed(t)
	}
	return t, shape
}

func anyDType(ir.DType) bool { return true }

// foldsInPlace reports a dtype whose sums need no wider one.
func foldsInPlace(d ir.DType) bool { return d.IsInt() || d == ir.F32 || d == ir.F64 }

// point applies an elementwise op to tensors of one shape.
func (b *builder) point(op ir.Op, x *tensor.Tensor, more ...*tensor.Tensor) *tensor.Tensor {
	src := []*ir.UOp{x.Node()}
	for _, t := range more {
		src = append(src, t.Node())
	}
	return b.g.Wrap(b.g.Arena().Make(op, x.DType(), nil, src...))
}

var (
	floatPairs = []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpMax, ir.OpMin}
	intPairs   = []ir.Op{
		ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpMax, ir.OpMin, ir.OpFloorDiv, ir.OpFloorMod,
		ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr, ir.OpMulHi,
	}
	boolPairs   = []ir.Op{ir.OpAdd, ir.OpMul, ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpMax, ir.OpMin}
	floatSingle = []ir.Op{ir.OpNeg, ir.OpAbs, ir.OpFloor, ir.OpTrunc, ir.OpRound}
	intSingle   = []ir.Op{ir.OpNeg, ir.OpAbs, ir.OpNot, ir.OpPopc, ir.OpClz}
	boolSingle  = []ir.Op{ir.OpNot}
)

// ofClass picks a row by the class of a dtype.
func ofClass[T any](d ir.DType, float, integer, boolean T) T {
	switch {
	case d.IsFloat():
		return float
	case d == ir.Bool:
		return boolean
	}
	return integer
}

// partner picks or makes a value of x's dtype that broadcasts to x's shape.
func (b *builder) partner(x *tensor.Tensor, shape []int) *tensor.Tensor {
	y := b.pick("other", func(t *tensor.Tensor) bool {
		_, ok := fixed(t)
		return ok && t.DType() == x.DType() && broadcasts(x, t)
	})
	switch b.intRange("operand", 0, 6) {
	case 0: // a new input with some extents 1, and fewer axes
		part := append([]int{}, shape...)
		for k := range part {
			if b.chance("extent 1") {
				part[k] = 1
			}
		}
		return b.input(x.DType(), part[b.intRange("dropped axes", 0, len(part)):]...)
	case 1:
		return b.g.Scalar(x.DType(), float64(b.intRange("constant", 0, ofClass(x.DType(), 3, 9, 1))))
	}
	return y
}

func typedBinary(b *builder) *tensor.Tensor {
	x, shape := b.typed(0, anyDType)
	op := rapid.SampledFrom(ofClass(x.DType(), floatPairs, intPairs, boolPairs)).Draw(b.t, "op")
	y := b.partner(x, shape)
	if b.chance("swap") {
		x, y = y, x
	}
	return pairwise(op, x, y)
}

// pairwise broadcasts and applies; MulHi has no method of its own.
func pairwise(op ir.Op, x, y *tensor.Tensor) *tensor.Tensor {
	for _, row := range tensorPairs {
		if row.op == op {
			return row.f(x, y)
		}
	}
	zero := x.Sub(x).Add(y.Sub(y)) // brings both to the common shape
	x, y = x.Add(zero), y.Add(zero)
	return x.Graph().Wrap(x.Graph().Arena().Make(op, x.DType(), nil, x.Node(), y.Node()))
}

var tensorPairs = []struct {
	op ir.Op
	f  func(x, y *tensor.Tensor) *tensor.Tensor
}{
	{ir.OpAdd, (*tensor.Tensor).Add}, {ir.OpSub, (*tensor.Tensor).Sub}, {ir.OpMul, (*tensor.Tensor).Mul},
	{ir.OpMax, (*tensor.Tensor).Maximum}, {ir.OpMin, (*tensor.Tensor).Minimum},
	{ir.OpFloorDiv, (*tensor.Tensor).FloorDiv}, {ir.OpFloorMod, (*tensor.Tensor).FloorMod},
	{ir.OpAnd, (*tensor.Tensor).And}, {ir.OpOr, (*tensor.Tensor).Or}, {ir.OpXor, (*tensor.Tensor).Xor},
	{ir.OpShl, (*tensor.Tensor).Shl}, {ir.OpShr, (*tensor.Tensor).Shr},
}

func typedUnary(b *builder) *tensor.Tensor {
	x, _ := b.typed(0, anyDType)
	ops := ofClass(x.DType(), floatSingle, intSingle, boolSingle)
	if x.DType().IsFloat() && b.chance("inexact") {
		safe := x.Abs().Add(b.g.Scalar(x.DType(), 0.5))
		op := rapid.SampledFrom([]ir.Op{ir.OpSqrt, ir.OpRecip, ir.OpRsqrt, ir.OpLog2}).Draw(b.t, "op")
		return b.point(op, safe)
	}
	return b.point(rapid.SampledFrom(ops).Draw(b.t, "op"), x)
}

// typedCast converts values, or reads the bits of an integer in another way.
func typedCast(b *builder) *tensor.Tensor {
	x, _ := b.typed(0, anyDType)
	to := b.dtype()
	if x.DType().IsInt() && to.IsInt() && to.Size() == x.DType().Size() && b.chance("bits") {
		return x.Bitcast(to)
	}
	return x.Cast(to)
}

func typedCompare(b *builder) *tensor.Tensor {
	x, shape := b.typed(0, anyDType)
	y := b.partner(x, shape)
	if x.DType() == ir.Bool || b.chance("equal") {
		return x.Eq(y)
	}
	return x.Lt(y)
}

func typedWhere(b *builder) *tensor.Tensor {
	x, shape := b.typed(0, anyDType)
	y := b.partner(x, shape)
	c := b.pick("condition", func(t *tensor.Tensor) bool { return t.DType() == ir.Bool && broadcasts(x, t) && broadcasts(y, t) })
	if c == nil || b.chance("new condition") {
		c = b.input(ir.Bool, shape...)
	}
	return c.Where(x, y)
}

// typedReduce folds some axes; floats below f32 go up first and may come back.
func typedReduce(b *builder) *tensor.Tensor {
	x, _ := b.typed(1, anyDType)
	if x == nil {
		return nil
	}
	own := x.DType()
	if own.IsFloat() && !foldsInPlace(own) {
		x = x.Cast(ir.F32)
	}
	axes := b.someAxes(x)
	var out *tensor.Tensor
	switch k := b.intRange("fold", 0, 5); {
	case k == 0:
		out = x.Max(axes...)
	case k == 1:
		out = x.Min(axes...)
	case k == 2 && own != ir.Bool && lists.Product(constants(x)) <= 64:
		out = x.Prod(axes...)
	case k == 3:
		out = x.MaxKeep(axes...)
	case own == ir.Bool:
		out = x.Max(axes...)
	case k == 4:
		out = x.SumKeep(axes...)
	default:
		out = x.Sum(axes...)
	}
	if out.DType() != own && b.chance("back") {
		return out.Cast(own)
	}
	return out
}

func constants(t *tensor.Tensor) []int { shape, _ := fixed(t); return shape }

func typedScan(b *builder) *tensor.Tensor {
	x, _ := b.typed(1, foldsInPlace)
	if x == nil {
		return nil
	}
	return x.Cumsum(b.axis(x))
}

// special replaces some contents by the ends of the range and what lies beside
// them; floats become small multiples of 1/2, which most sums keep exact.
func special(buffer *interp.KernelBuffer, rng *rand.Rand) {
	d := buffer.DType
	for i := range buffer.Data {
		switch {
		case d.IsFloat():
			buffer.Data[i].F = float64(rng.IntN(17)-8) / 2
		case d.IsInt() && rng.IntN(3) == 0:
			lo, hi := ir.ReduceIdentity(ir.OpMax, d).I, ir.ReduceIdentity(ir.OpMin, d).I
			list := []int64{lo, lo + 1, hi, hi - 1, 0, 1, 1 << (d.Bits() - 2)}
			buffer.Data[i].I = ir.WrapInt(d, list[rng.IntN(len(list))])
		}
	}
}

// indexDType is an integer type that holds -1..40, or none below 0.
func (b *builder) indexDType() ir.DType {
	return rapid.SampledFrom([]ir.DType{ir.I32, ir.I64, ir.I16, ir.I8, ir.U8, ir.U32}).Draw(b.t, "index dtype")
}

// typedGather reads slices, out of range ones included, at one to three points
// or at a table of them.
func typedGather(b *builder) *tensor.Tensor {
	x, shape := b.typed(1, anyDType)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	if shape[k] == 0 {
		return nil
	}
	points := []int{b.intRange("points", 0, 5)}
	if b.chance("table of points") {
		points = append(points, b.intRange("columns", 1, 3))
	}
	return x.Gather(k, b.inputInts(b.indexDType(), -1, int64(shape[k]), points...))
}

// typedScatterAdd adds values, several of which may meet, to a value.
func typedScatterAdd(b *builder) *tensor.Tensor {
	x, shape := b.typed(1, foldsInPlace)
	if x == nil {
		return nil
	}
	k, points := b.axis(x), b.intRange("points", 0, 6)
	part := append([]int{}, shape...)
	part[k] = points
	values := b.input(x.DType(), part...)
	src := []*ir.UOp{x.Node(), values.Node()}
	for axis := range shape {
		at := b.g.Iota(ir.I32, b.g.Dims(part[axis])[0])
		if axis == k {
			at = b.inputInts(ir.I32, -1, int64(shape[k]), points)
		}
		one := slices.Repeat([]int{1}, len(part))
		one[axis] = part[axis]
		src = append(src, at.Reshape(one...).Expand(part...).Node())
	}
	return b.g.Wrap(b.g.Arena().Make(ir.OpScatterAdd, x.DType(), nil, src...))
}

// typedAssign writes a value over part of a new buffer, maybe past its end,
// maybe reversed, and goes on with the buffer's next version. Old versions are
// what AssignPrograms reads.
func typedAssign(b *builder) *tensor.Tensor {
	x, shape := b.typed(1, anyDType)
	if x == nil {
		return nil
	}
	size := append([]int{}, shape...)
	k := b.axis(x)
	size[k] = max(size[k]+b.intRange("room", 0, 4)-1, 0)
	into := b.input(x.DType(), size...)
	coords := make([]*tensor.Tensor, len(shape))
	for axis := range shape {
		at := b.g.Iota(ir.I32, b.g.Dims(shape[axis])[0])
		if axis == k {
			at = at.AddScalar(float64(b.intRange("offset", 0, 3)))
			if b.chance("reversed") {
				at = at.Flip(0)
			}
		}
		one := slices.Repeat([]int{1}, len(shape))
		one[axis] = shape[axis]
		coords[axis] = at.Reshape(one...)
	}
	next := into.AssignAt(x, coords...)
	b.g.Keep(next)
	return next
}

func typedIota(b *builder) *tensor.Tensor {
	dtype := rapid.SampledFrom([]ir.DType{ir.I32, ir.I64, ir.U8, ir.I16, ir.F32}).Draw(b.t, "iota dtype")
	return b.g.Iota(dtype, b.g.Dims(b.typedExtent("length"))[0])
}

func typedPad(b *builder) *tensor.Tensor {
	x, _ := b.typed(1, anyDType)
	if x == nil {
		return nil
	}
	return x.Pad(b.axis(x), b.intRange("before", 0, 3), b.intRange("after", 0, 3))
}

func typedShrink(b *builder) *tensor.Tensor {
	x, shape := b.typed(1, anyDType)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	offset := b.intRange("offset", 0, shape[k])
	return x.SliceInts(k, offset, b.intRange("extent", 0, shape[k]-offset))
}

func typedContiguous(b *builder) *tensor.Tensor {
	x, _ := b.typed(0, anyDType)
	return x.Contiguous()
}
