package kernel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/render/gpu/gputest"
	"tgc/render/ptx"
	"tgc/runtime/interp"
	"tgc/target"
)

// matrixCases are kernels with plans that use matrix instructions: how many of
// them the program has.
var matrixCases = []struct {
	name  string
	build func(b *builder) *ir.UOp
	plan  string
	count int
}{
	// Two floats: six products of terms.
	{"floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 6},
	// Weights that are bf16, or halves.
	{"bf16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.BF16, 16, 32, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 3},
	{"f16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F16, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; UNROLL r0 2; FMA", 10},
	// Integers against floats, with sums of the activations beside them; tiles
	// of rows share the split activations.
	{"factored", func(b *builder) *ir.UOp { return factoredMatmul(b, 16, 64, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; UPCAST s1 2; MMA r1; FMA", 18},
	// Bytes against bytes; an offset joins its product, which begins with the offset's own, and a sum of
	// activations is a product with 1.
	{"bytes", func(b *builder) *ir.UOp { return byteMatmul(b, 16, 32, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; MMA r1; FMA", 6},
	// Tiles of rows share the products of their offset.
	{"bytes of two tiles of rows", func(b *builder) *ir.UOp { return byteMatmul(b, 8, 32, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; MMA r1 32; FMA", 4},
	{"bytes of two copies", func(b *builder) *ir.UOp { return byteMatmul(b, 8, 16, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; UNROLL r1 4; FMA", 6},
	// The sums of activations that offsets multiply lie in a stage, over a range of
	// their own; they join their product all the same.
	{"staged sums", func(b *builder) *ir.UOp { return stagedSums(b, 16, 32, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", 2},
	// Warps that share a sum combine some of their results each for all: some of them none, all of them one, one two.
	{"warps of a sum", func(b *builder) *ir.UOp { return byteMatmul(b, 8, 16, 8, 16) },
		"GROUP r0 8; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", 3},
	{"as many warps as results", func(b *builder) *ir.UOp { return byteMatmul(b, 8, 32, 8, 16) },
		"GROUP r0 8; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; MMA r1; FMA", 4},
	{"warps with two results", func(b *builder) *ir.UOp { return byteMatmul(b, 8, 64, 4, 16) },
		"GROUP r0 4; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; LOCAL s1 2; MMA r1; FMA", 4},
	// Columns of computed values: threads fill them for a tile together, or each lane
	// computes its own.
	{"staged columns", func(b *builder) *ir.UOp { return stagedColumns(b, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL z0 32; MMA r0; FMA", 6},
	// The lanes of rows share what no column is a factor of.
	{"scales of columns", func(b *builder) *ir.UOp { return columnScales(b, 8, 16, 4, 32) },
		"GROUP r0 4; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r2; VECTOR r1 4; WARP r1 8; FMA", 1},
	{"columns of a lane", func(b *builder) *ir.UOp { return stagedColumns(b, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 6},
	{"Q6_K", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 16, 512) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", 6},
	// Fragments in panels: of rows, of columns, of both; three terms each of two
	// floats.
	{"rows in a panel", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 32, 512) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s1; MMA r1; FMA", 6},
	{"columns in a panel", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 16, 32, 512) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; MMA r1; FMA", 12},
	{"panels", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 32, 64, 512) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; UPCAST s1 2; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; FMA", 48},
	{"panels of factors", func(b *builder) *ir.UOp { return factoredMatmul(b, 16, 32, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; FMA", 12},
	{"groups of warps", func(b *builder) *ir.UOp { return factoredMatmul(b, 16, 32, 8, 32) },
		"GROUP r0 4; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; MMA r1; UNROLL r1 2; FMA", 24},
	{"panels of floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 16, 32, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; FMA", 6},
	{"panels of halves", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F16, 16, 32, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; FMA", 5},
	{"panels of bytes", func(b *builder) *ir.UOp { return byteMatmul(b, 16, 32, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r1; FMA", 2},
	// Tiles that divide neither rows nor columns nor the sum.
	{"odd floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 13, 21, 37) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 6},
	{"odd f16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F16, 29, 35, 77) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; MMA r0; UNROLL r0 2; FMA", 40},
	{"odd panels of floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 19, 37, 67) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; UNROLL r0 2; FMA", 12},
	{"odd panels of halves", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F16, 17, 33, 35) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; FMA", 5},
	// Lanes with eight neighbours of a sum: twice the instructions of floats, as many of bytes.
	{"wide floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 12},
	{"wide bf16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.BF16, 16, 32, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; UNROLL r0 2; FMA", 12},
	{"wide f16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F16, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 10},
	{"wide factors", func(b *builder) *ir.UOp { return factoredMatmul(b, 16, 64, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; UPCAST s1 2; MMA r1 32; FMA", 36},
	{"wide bytes", func(b *builder) *ir.UOp { return byteMatmul(b, 16, 32, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; MMA r1 32; FMA", 6},
	{"wide odd floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 13, 21, 75) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 12},
	// Sums of f64 take f64 as they are.
	{"doubles", func(b *builder) *ir.UOp { return doubleMatmul(b, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 1},
	{"wide doubles of warps", func(b *builder) *ir.UOp { return doubleMatmul(b, 16, 32, 64) },
		"GROUP r0 2; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 4},
	{"odd doubles", func(b *builder) *ir.UOp { return doubleMatmul(b, 13, 21, 37) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 1},
	// Integers are summed by their bytes: ten products of two of four bytes, four of one and a byte, three of
	// two bytes and one; the highest byte of what is shorter is signed.
	{"integers", func(b *builder) *ir.UOp { return intMatmul(b, ir.I32, ir.I32, ir.I32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 10},
	{"wide unsigned integers of warps", func(b *builder) *ir.UOp { return intMatmul(b, ir.U32, ir.U32, ir.U32, 16, 32, 64) },
		"GROUP r0 2; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 20},
	{"odd integers", func(b *builder) *ir.UOp { return intMatmul(b, ir.I32, ir.I32, ir.I32, 13, 21, 75) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 10},
	{"integers and bytes", func(b *builder) *ir.UOp { return intMatmul(b, ir.I8, ir.I32, ir.I32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 4},
	{"integers of two bytes", func(b *builder) *ir.UOp { return intMatmul(b, ir.I16, ir.U16, ir.I32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 4},
	{"unsigned bytes", func(b *builder) *ir.UOp { return intMatmul(b, ir.U8, ir.U8, ir.I32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; FMA", 1},
	// Copies of a sum of bytes: of two one instruction, whose points are twice as many; a third by itself.
	{"copies of digits", func(b *builder) *ir.UOp { return digitMatmul(b, 8, 16, 4, 2) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r2; UNROLL r1 2; FMA", 3},
	{"three copies of digits", func(b *builder) *ir.UOp { return digitMatmul(b, 8, 16, 4, 3) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r2; UNROLL r1 3; FMA", 6},
	{"copies of groups of digits", func(b *builder) *ir.UOp { return digitMatmul(b, 13, 37, 4, 2) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; MMA r2; UNROLL r1 2; UNROLL r0 2; FMA", 12},
	{"copies in a loop", func(b *builder) *ir.UOp { return digitMatmul(b, 8, 16, 4, 2) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r2; FMA", 3},
	{"copies of integers of two bytes", func(b *builder) *ir.UOp { return intMatmul(b, ir.I16, ir.U16, ir.I32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; UNROLL r0 2; FMA", 4},
	{"wide copies of integers", func(b *builder) *ir.UOp { return intMatmul(b, ir.I8, ir.I32, ir.I32, 8, 16, 128) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 32; UNROLL r0 2; FMA", 8},
	// Halves beside terms whose second one is times 2^-6 are one term; times 2^-11 small ones would have lost their bits.
	{"halves and terms", func(b *builder) *ir.UOp { return halfTermMatmul(b, 8, 16, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", 2},
	{"halves and terms too far apart", func(b *builder) *ir.UOp { return halfTermMatmul(b, 8, 16, 4, 2048) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", 5},
	{"odd groups of warps", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 9, 17, 133) },
		"GROUP r0 2; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 6},
}

// floatMatmul is y[t, n] = sum over k of x[t, k]*w[n, k].
func floatMatmul(b *builder, dtype ir.DType, tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, tokens, k), b.param(1, dtype, rows, k), b.param(3, ir.F32, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	weight := b.Load(w, n, r)
	if dtype != ir.F32 {
		weight = b.Cast(weight, ir.F32)
	}
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, t, r), weight), r), list(t, n), list(t, n)))
}

// doubleMatmul is the same product of f64.
func doubleMatmul(b *builder, tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F64, tokens, k), b.param(1, ir.F64, rows, k), b.param(3, ir.F64, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, t, r), b.Load(w, n, r)), r), list(t, n), list(t, n)))
}

// intMatmul is the same product of integers, summed in another dtype.
func intMatmul(b *builder, left, right, sum ir.DType, tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, left, tokens, k), b.param(1, right, rows, k), b.param(3, sum, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	as := func(u *ir.UOp) *ir.UOp {
		if u.DType == sum {
			return u
		}
		return b.Cast(u, sum)
	}
	return b.sink(b.Store(out, b.sum(b.Mul(as(b.Load(x, t, r)), as(b.Load(w, n, r))), r), list(t, n), list(t, n)))
}

// digitMatmul is a product of activations of two digits and bytes with an offset, summed over groups of copies of 16, each group with a
// scale.
func digitMatmul(b *builder, tokens, rows, groups, copies int64) *ir.UOp {
	const digit = 256
	high, low, w := b.param(0, ir.I8, tokens, groups, copies, 16), b.param(1, ir.U8, tokens, groups, copies, 16), b.param(2, ir.U8, rows, groups, copies, 16)
	scale, out := b.param(4, ir.I8, rows, groups), b.param(3, ir.I32, tokens, rows)
	t, n, g, h, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(copies), b.rng(16)
	as := func(u *ir.UOp) *ir.UOp { return b.Cast(u, ir.I32) }
	x, y, q := as(b.Load(high, t, g, h, j)), as(b.Load(low, t, g, h, j)), as(b.And(b.Load(w, n, g, h, j), b.ConstInt(ir.U8, 15)))
	upper := b.Add(b.Mul(b.sum(x, j), b.ConstInt(ir.I32, -8*digit)), b.Mul(b.sum(b.Mul(x, q), j), b.ConstInt(ir.I32, digit)))
	group := b.sum(b.Add(upper, b.sum(b.Mul(y, q), j)), h)
	return b.sink(b.Store(out, b.sum(b.Mul(as(b.Load(scale, n, g)), group), g), list(t, n), list(t, n)))
}

// stagedColumns is y[t, n] = sum over k of a stage of x[t, k]/4, times w[n, k].
func stagedColumns(b *builder, tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, tokens, k), b.param(1, ir.F32, rows, k), b.param(3, ir.F32, tokens, rows)
	t, n, r, z := b.rng(tokens), b.rng(rows), b.rng(k), b.rng(k)
	scaled := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.Mul(b.Load(x, t, z), b.f(0.25)), z)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(scaled, r), b.Load(w, n, r)), r), list(t, n), list(t, n)))
}

// columnScales is a product of bytes whose columns have a scale for each group, the largest of
// other values there: a stage beside the sums, whose reduce lanes of rows share.
func columnScales(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	x, w, out := b.param(0, ir.I8, tokens, groups, size), b.param(1, ir.I8, rows, groups, size), b.param(3, ir.F32, tokens, rows)
	values := b.param(2, ir.F32, tokens, groups, size)
	t, n, g, z, i, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(groups), b.rng(size), b.rng(size)
	scales := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.Reduce(ir.OpMax, b.Load(values, t, z, i), i), z)
	product := b.sum(b.Mul(b.Cast(b.Load(x, t, g, j), ir.I32), b.Cast(b.Load(w, n, g, j), ir.I32)), j)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(scales, g), b.Cast(product, ir.F32)), g), list(t, n), list(t, n)))
}

// byteMatmul is a product of quantised activations and weights, with a scale and
// a minimum of each group of weights, whose integers have an offset.
func byteMatmul(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size), b.param(3, ir.I32, tokens, rows)
	scale, least := b.param(2, ir.I8, rows, groups), b.param(4, ir.I8, rows, groups)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	k := b.Add(b.Mul(g, b.n(size)), j)
	v := b.Cast(b.Load(x, t, k), ir.I32)
	q := b.Cast(b.And(b.Load(w, n, k), b.ConstInt(ir.U8, 63)), ir.I32)
	inner := b.Add(b.Mul(b.sum(v, j), b.ConstInt(ir.I32, -32)), b.sum(b.Mul(v, q), j))
	product := b.sum(b.Mul(b.Cast(b.Load(scale, n, g), ir.I32), inner), g)
	total := b.Sub(product, b.sum(b.Mul(b.Cast(b.Load(least, n, g), ir.I32), b.sum(v, j)), g))
	return b.sink(b.Store(out, total, list(t, n), list(t, n)))
}

// scaledBytes is a product of bytes that is a float in the end, with an integer scale
// of each group of rows, and a float one of each of columns.
func scaledBytes(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size), b.param(3, ir.F32, tokens, rows)
	scale, length := b.param(2, ir.I8, rows, groups, 2), b.param(4, ir.F32, tokens, groups)
	t, n, g, h, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(2), b.rng(size/2)
	k := b.Add(b.Mul(g, b.n(size)), b.Add(b.Mul(h, b.n(size/2)), j))
	q := b.Cast(b.And(b.Load(w, n, k), b.ConstInt(ir.U8, 31)), ir.I32)
	group := b.sum(b.Mul(b.Cast(b.Load(scale, n, g, h), ir.I32), b.sum(b.Mul(b.Cast(b.Load(x, t, k), ir.I32), q), j)), h)
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(length, t, g), b.Cast(group, ir.F32)), g), list(t, n), list(t, n)))
}

// In panels bytes become halves as long as an f32 holds every sum exactly: 31*128*128
// times 32 does, times 64 does not.
func TestMatrixBytesAsHalves(t *testing.T) {
	plan, err := plan.Parse("UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r2; UNROLL r1 2; FMA")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size int64
		want string
	}{{32, "f16x4"}, {64, "i8x4"}} {
		b := newBuilder()
		sink := scaledBytes(b, 16, 32, 4, c.size)
		p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := program.VerifyGPU(p); err != nil {
			t.Fatalf("%v\n%s", err, show(p))
		}
		if text := program.Print(p); !strings.Contains(text, c.want+" = load") {
			t.Errorf("groups of %d: no fragment of %s\n%s", c.size, c.want, text)
		}
		compare(t, b.Arena, sink, p, plan, nil)
		emulate(t, sink, p, nil)
	}
}

// Lanes of a quad load what copies of a sum want for each other, of rows that lie 64 bytes apart. Of rows side by side all is in one line anyway.
func TestMatrixLanesExchangeUnits(t *testing.T) {
	words := func(groups, size int64) func(b *builder) *ir.UOp {
		return func(b *builder) *ir.UOp { return byteMatmul(b, 8, 16, groups, size) }
	}
	lookups := func(each int64) func(b *builder) *ir.UOp {
		return func(b *builder) *ir.UOp { return tableMatmul(b, 8, 16, 64, each) }
	}
	const tiles = "UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; UNROLL r0 4; " // two of 8 rows, and one of activations
	for _, c := range []struct {
		name     string
		sink     func(b *builder) *ir.UOp
		plan     string
		shuffles int
		loads    string
	}{
		{"words", words(8, 16), tiles + "MMA r1; FMA", 3 * 4, ""},
		{"near", words(2, 16), strings.Replace(tiles, "UNROLL r0 4", "UNROLL r0 2", 1) + "MMA r1; FMA", 0, ""},
		{"double words", words(8, 32), tiles + "MMA r1 32; FMA", 3 * 2 * 2, "u8x8"},
		{"turned halves", turnedMatmul, tiles + "MMA r1 32; FMA", 3 * 2 * 2, "u8x8"},
		{"halves of words", lookups(4), tiles + "MMA r1 32; FMA", 2*2 + 2*2, "u8x2"},
		{"bytes", lookups(8), tiles + "MMA r1 32; FMA", 2 * 2, "u8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder()
			sink := c.sink(b)
			plan, err := plan.Parse(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
			if err != nil {
				t.Fatal(err)
			}
			text := program.Print(p)
			if n := strings.Count(text, "= shufflelane "); n != c.shuffles {
				t.Errorf("%d shuffles, want %d\n%s", n, c.shuffles, show(p))
			}
			if c.loads != "" && strings.Contains(text, ":"+c.loads+" = load ") {
				t.Errorf("units of %s are still loaded\n%s", c.loads, show(p))
			}
			compare(t, b.Arena, sink, p, plan, nil)
			emulate(t, sink, p, nil)
		})
	}
}

// turnedMatmul is byteMatmul where the first halves of four groups of 32 lie side by side, and then the second ones.
func turnedMatmul(b *builder) *ir.UOp {
	const tokens, rows, groups, size = 8, 16, 8, 32
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size), b.param(3, ir.I32, tokens, rows)
	scale := b.param(2, ir.I8, rows, groups)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	four, half := b.Div(g, b.n(4)), b.Div(j, b.n(size/2))
	at := b.Add(b.Mul(four, b.n(4*size)), b.Add(b.Mul(half, b.n(2*size)), b.Add(b.Mul(b.Mod(g, b.n(4)), b.n(size/2)), b.Mod(j, b.n(size/2)))))
	q := b.Cast(b.And(b.Load(w, n, at), b.ConstInt(ir.U8, 63)), ir.I32)
	v := b.Cast(b.Load(x, t, b.Add(b.Mul(g, b.n(size)), j)), ir.I32)
	total := b.sum(b.Mul(b.Cast(b.Load(scale, n, g), ir.I32), b.sum(b.Mul(v, q), j)), g)
	return b.sink(b.Store(out, total, list(t, n), list(t, n)))
}

// tableMatmul is a product of groups of 32 bytes, of which so many weights at a time are looked up by a byte.
func tableMatmul(b *builder, tokens, rows, groups, each int64) *ir.UOp {
	const size = 32
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size/each), b.param(3, ir.I32, tokens, rows)
	scale, table := b.param(2, ir.I8, rows, groups), b.param(4, ir.I8, 256, each)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	index := b.Load(w, n, b.Add(b.Mul(g, b.n(size/each)), b.Div(j, b.n(each))))
	q := b.Cast(b.Load(table, b.Cast(index, ir.Idx), b.Mod(j, b.n(each))), ir.I32)
	v := b.Cast(b.Load(x, t, b.Add(b.Mul(g, b.n(size)), j)), ir.I32)
	total := b.sum(b.Mul(b.Cast(b.Load(scale, n, g), ir.I32), b.sum(b.Mul(v, q), j)), g)
	return b.sink(b.Store(out, total, list(t, n), list(t, n)))
}

// Joined with their product, staged sums leave no stage behind.
func TestMatrixJoinsStagedSums(t *testing.T) {
	b := newBuilder()
	sink := stagedSums(b, 16, 32, 4, 32)
	plan, err := plan.Parse("UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA")
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
	if err != nil {
		t.Fatal(err)
	}
	if text := program.Print(p); strings.Contains(text, "alloca") {
		t.Errorf("the sums of activations are still in a stage\n%s", text)
	}
}

// stagedSums is a product of bytes with an offset whose sums of activations are
// made once for all rows.
func stagedSums(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size), b.param(3, ir.I32, tokens, rows)
	scale := b.param(2, ir.I8, rows, groups)
	t, n, g, j, i, z := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size), b.rng(size), b.rng(groups)
	at := func(g, j *ir.UOp) *ir.UOp {
		return b.Cast(b.Load(x, t, b.Add(b.Mul(g, b.n(size)), j)), ir.I32)
	}
	offsets := b.Make(ir.OpStage, ir.I32, ir.StageArg{}, b.Mul(b.sum(at(z, i), i), b.ConstInt(ir.I32, -32)), z)
	q := b.Cast(b.And(b.Load(w, n, b.Add(b.Mul(g, b.n(size)), j)), b.ConstInt(ir.U8, 63)), ir.I32)
	inner := b.Add(b.sum(b.Mul(at(g, j), q), j), b.Load(offsets, g))
	return b.sink(b.Store(out, b.sum(b.Mul(b.Cast(b.Load(scale, n, g), ir.I32), inner), g), list(t, n), list(t, n)))
}

func TestMatrixPlans(t *testing.T) {
	for _, c := range matrixCases {
		t.Run(c.name, func(t *testing.T) { runMatrixPlan(t, c.build, c.plan, "mma", c.count) })
	}
}

// runMatrixPlan lowers a kernel by a plan to so many matrix instructions, and runs the program and its PTX beside the reference.
func runMatrixPlan(t *testing.T, build func(b *builder) *ir.UOp, text, instruction string, count int) {
	t.Helper()
	b := newBuilder()
	sink := build(b)
	plan, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := canonicalForm(t, sink, text); err != nil {
		t.Errorf("it lowers and has no canonical form: %v", err)
	}
	if err := program.VerifyGPU(p); err != nil {
		t.Fatalf("%v\n%s", err, show(p))
	}
	if n := strings.Count(program.Print(p), "= "+instruction+" "); n != count {
		t.Errorf("%d matrix instructions, want %d\n%s", n, count, show(p))
	}
	compare(t, b.Arena, sink, p, plan, nil)
	emulate(t, sink, p, nil)
}

// canonicalForm is that by which searches know a plan before they lower it.
func canonicalForm(t *testing.T, sink *ir.UOp, text string) (plan.Canonical, error) {
	t.Helper()
	p, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return plan.NewReader(sink, hopper(t)).Canonical(p)
}

// emulate runs a program's PTX, whose values are those of the program but for the
// order in which an instruction sums.
func emulate(t *testing.T, sink *ir.UOp, p *program.Program, vars map[string]int64) {
	t.Helper()
	k, err := ptx.Render(p, hopper(t), ptx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := makeBuffers(t, sink, vars, rand.New(rand.NewPCG(1, 2)))
	args, buffers := make([]interp.Arg, len(p.Params)), make(map[int][]byte)
	for i, param := range p.Params {
		if param.Kind == program.ParamVar {
			args[i].Int64 = vars[param.Name]
			continue
		}
		args[i].Bytes = data.bytes(param.Slot)
		buffers[param.Slot] = slices.Clone(args[i].Bytes)
	}
	if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
		t.Fatal(err)
	}
	if err := gputest.Run(p, k, k.Text, buffers, vars, 1); err != nil {
		t.Fatal(err)
	}
	for slot, b := range data.bufs {
		if b == nil || !b.written {
			continue
		}
		want, got := decode(b.dtype, data.bytes(slot)), decode(b.dtype, buffers[slot])
		for i, w := range want {
			if g := got[i]; g.I != w.I && !b.dtype.IsFloat() || b.dtype.IsFloat() && !(math.Abs(g.F-w.F) <= 2e-5*(1+math.Abs(w.F))) {
				t.Fatalf("slot %d element %d: %v, the program has %v", slot, i, g, w)
			}
		}
	}
}

// Tiles that do not fit are refused; so are targets without the instructions.
func TestMatrixRefusals(t *testing.T) {
	turing, err := target.ForGPU(75, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ plan, want string }{
		{"MMA r0", "MMA needs store axes"},
		{"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; MMA r0", "MMA needs store axes"},
		{"LOCAL s0 8; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; MMA r0", "MMA needs store axes"},
		{"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0 64", "a warp sums 16 at once, or 32"},
		{"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; STAGE s0; STAGE s1; MMA r0 32", "tiles lie there for 16"},
		// Lanes of rows, of columns and of the sum: an instruction took one of them for all.
		{"UPCAST s0 2; LOCAL s0 4; VECTOR s0 2; LOCAL s1 8; UPCAST s1 2; MMA r0", "a factor in lanes"},
		{"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; VECTOR s1 2; STAGE s0; STAGE s1; MMA r0", "a factor in lanes"},
		{"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; VECTOR r0 2", "a factor in lanes"},
	} {
		plan, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder()
		sink := floatMatmul(b, ir.F32, 16, 32, 64)
		if _, err := kernel.Lower(b.Arena, sink, plan, hopper(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.plan, err, c.want)
		}
		if _, err := canonicalForm(t, sink, c.plan); err == nil && c.want == "MMA needs store axes" {
			t.Errorf("%s: searches would lower it", c.plan)
		}
		for _, desc := range []*target.Desc{turing, target.Interp()} {
			if _, err := kernel.Lower(b.Arena, sink, plan, desc); err == nil || !strings.Contains(err.Error(), "no matrix instruction") {
				t.Errorf("%s: %s: got %v", desc.Name, c.plan, err)
			}
		}
	}
}
