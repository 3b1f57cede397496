package programtest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Elementwise is a program that applies op to its argument buffers, 16 lanes.
func Elementwise(op ir.Op, result ir.DType, args ...ir.DType) *program.Program {
	const n = 16
	b := program.NewBuilder(op.String() + "_" + result.String())
	var in []*program.Value
	for i, d := range args {
		in = append(in, b.Buffer(i, d, "", 8, int64(n*d.Size())))
	}
	out := b.Buffer(len(args), result, "", 8, int64(n*result.Size()))
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) {
		v := lists.Map(in, func(p *program.Value) *program.Value { return b.Load(p, n, 8) })
		var r *program.Value
		switch op {
		case ir.OpCast:
			r = b.Cast(v[0], result)
		case ir.OpBitcast:
			r = b.Bitcast(v[0], result)
		default:
			r = b.Alu(op, v...)
		}
		b.Store(out, r, 8)
	})
	return b.Finish()
}

// Types are all dtypes that a program can hold.
var Types = []ir.DType{ir.Bool, ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64, ir.F8E4M3, ir.F8E5M2, ir.F16, ir.BF16, ir.F32, ir.F64}

// Signatures lists the operand types on which an op has meaning.
func Signatures(op ir.Op) (result []ir.DType, args [][]ir.DType) {
	add := func(r ir.DType, a ...ir.DType) {
		result, args = append(result, r), append(args, a)
	}
	for _, d := range Types {
		same := slices.Repeat([]ir.DType{d}, op.Info().Arity)
		switch op.Info().Type {
		case ir.TypeFree:
			for _, from := range Types {
				if op == ir.OpCast && from != d || op == ir.OpBitcast && from.Size() == d.Size() && from != ir.Bool && d != ir.Bool {
					add(d, from)
				}
			}
		case ir.TypeCompare:
			add(ir.Bool, d, d)
		case ir.TypeWhere:
			add(d, ir.Bool, d, d)
		default:
			add(d, same...)
		}
	}
	return result, args
}

// Scalar draws a value of a dtype, often an edge.
func Scalar(r *rand.Rand, d ir.DType) ir.Scalar {
	if !d.IsFloat() {
		v := int64(r.Uint64()) >> r.IntN(64)
		if r.IntN(4) == 0 {
			v = []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 127, 128, 255, 31, 32, 63, 64}[r.IntN(12)]
		}
		return ir.IntScalar(ir.WrapInt(d, v))
	}
	v := r.NormFloat64() * math.Exp2(float64(r.IntN(40)-20))
	switch r.IntN(8) {
	case 0:
		v = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, -1e300, 1e-300}[r.IntN(13)]
	case 1: // any bits
		v = ir.FloatFromBits(d, r.Uint64()>>(64-d.Bits()))
	case 2:
		v = float64(r.IntN(2000)-1000) / 8
	}
	return ir.FloatScalar(ir.RoundFloat(d, v))
}

// PutScalar stores a value of a dtype.
func PutScalar(b []byte, d ir.DType, s ir.Scalar) {
	word := uint64(s.I)
	if d.IsFloat() {
		word = ir.FloatBits(d, s.F)
	}
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], word)
	copy(b[:d.Size()], w[:])
}

// GetScalar reads a value of a dtype.
func GetScalar(b []byte, d ir.DType) ir.Scalar {
	var w [8]byte
	copy(w[:], b[:d.Size()])
	word := binary.LittleEndian.Uint64(w[:])
	if d.IsFloat() {
		return ir.FloatScalar(ir.FloatFromBits(d, word))
	}
	return ir.IntScalar(ir.WrapInt(d, int64(word)))
}

// SameScalar compares bits; NaN equals NaN.
func SameScalar(d ir.DType, a, b ir.Scalar) bool {
	if d.IsFloat() {
		return math.Float64bits(a.F) == math.Float64bits(b.F) || a.F != a.F && b.F != b.F
	}
	return a.I == b.I
}
