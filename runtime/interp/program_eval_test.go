package interp

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// elementwise is a program that applies op to its argument buffers, 16 lanes.
func elementwise(op ir.Op, result ir.DType, args ...ir.DType) *program.Program {
	const n = 16
	b := program.NewBuilder(op.String() + "_" + result.String())
	var in []*program.Value
	for i, d := range args {
		in = append(in, b.Buffer(i, d, "", 8, int64(n*d.Size())))
	}
	out := b.Buffer(len(args), result, "", 8, int64(n*result.Size()))
	b.SetGrid(1)
	b.GridLoop(func(*program.Value) {
		var v []*program.Value
		for _, p := range in {
			v = append(v, b.Load(p, n, 8))
		}
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

var allTypes = []ir.DType{ir.Bool, ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64, ir.F8E4M3, ir.F16, ir.BF16, ir.F32, ir.F64}

// signatures lists the operand types on which an op has meaning.
func signatures(op ir.Op) (result []ir.DType, args [][]ir.DType) {
	add := func(r ir.DType, a ...ir.DType) {
		result, args = append(result, r), append(args, a)
	}
	for _, d := range allTypes {
		same := make([]ir.DType, op.Info().Arity)
		for i := range same {
			same[i] = d
		}
		switch op.Info().Type {
		case ir.TypeFree:
			for _, from := range allTypes {
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

// value draws a value of a dtype, often an edge.
func value(r *rand.Rand, d ir.DType) ir.Scalar {
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

func putScalar(b []byte, d ir.DType, s ir.Scalar) {
	word := uint64(s.I)
	if d.IsFloat() {
		word = ir.FloatBits(d, s.F)
	}
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], word)
	copy(b[:d.Size()], w[:])
}

func getScalar(b []byte, d ir.DType) ir.Scalar {
	var w [8]byte
	copy(w[:], b[:d.Size()])
	word := binary.LittleEndian.Uint64(w[:])
	if d.IsFloat() {
		return ir.FloatScalar(ir.FloatFromBits(d, word))
	}
	return ir.IntScalar(ir.WrapInt(d, int64(word)))
}

func sameScalar(d ir.DType, a, b ir.Scalar) bool {
	if d.IsFloat() {
		return math.Float64bits(a.F) == math.Float64bits(b.F) || a.F != a.F && b.F != b.F
	}
	return a.I == b.I
}

// Every elementwise op on every dtype gives what ir.EvalScalar gives, bit for
// bit but for the payload of NaN; the transcendental functions have a test of
// their own.
func TestElementwiseAgainstEvalScalar(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tested := 0
	for op := ir.OpAdd; op <= ir.OpRng; op++ {
		switch op {
		case ir.OpExp2, ir.OpLog2, ir.OpSin, ir.OpRsqrt:
			continue
		}
		results, args := signatures(op)
		for i := range results {
			p := elementwise(op, results[i], args[i]...)
			if program.Verify(p) != nil {
				continue // no meaning on this dtype
			}
			tested++
			checkElementwise(t, r, p, op, results[i], args[i])
		}
	}
	if tested < 450 {
		t.Errorf("%d signatures tested, want at least 450", tested)
	}
}

func checkElementwise(t *testing.T, r *rand.Rand, p *program.Program, op ir.Op, result ir.DType, args []ir.DType) {
	t.Helper()
	c, err := Compile(p, true)
	if err != nil {
		t.Errorf("%s %s %v: %v", op, result, args, err)
		return
	}
	src := args[len(args)-1]
	bufs := make([]Arg, len(args)+1)
	for range 40 {
		scalars := make([][]ir.Scalar, 16)
		for i, d := range args {
			bufs[i].Bytes = make([]byte, 16*d.Size())
			for lane := range 16 {
				s := value(r, d)
				if (op == ir.OpShl || op == ir.OpShr) && i == 1 && lane%2 == 0 {
					s = ir.IntScalar(ir.WrapInt(d, int64(r.IntN(d.Bits()))))
				}
				scalars[lane] = append(scalars[lane], s)
				putScalar(bufs[i].Bytes[lane*d.Size():], d, s)
			}
		}
		out := make([]byte, 16*result.Size())
		bufs[len(args)].Bytes = out
		if err := c.Run(bufs, 0, 1); err != nil {
			t.Error(err)
			return
		}
		for lane := range 16 {
			got := getScalar(out[lane*result.Size():], result)
			want := ir.EvalScalar(op, result, src, scalars[lane])
			if op == ir.OpRecip || op == ir.OpFDiv {
				want = ir.FloatScalar(ir.RoundFloat(result, want.F))
			}
			if !sameScalar(result, got, want) {
				t.Errorf("%s %s of %v %v: got %v, want %v", op, result, args, scalars[lane], got, want)
				return
			}
		}
	}
}

// ulps is the distance of got from the exact value in units of the last place.
func ulps(d ir.DType, got, exact float64) float64 {
	if math.IsInf(ir.RoundFloat(d, exact), 0) {
		exact = ir.RoundFloat(d, exact)
	}
	if got != got || math.IsInf(exact, 0) {
		if got != got && exact != exact || got == exact {
			return 0
		}
		return math.Inf(1)
	}
	_, exp := math.Frexp(exact)
	least := -1074
	if d == ir.F32 {
		least = -149
	}
	return math.Abs(got-exact) / math.Ldexp(1, max(exp-1-d.MantissaBits(), least))
}

// The largest error of the expanded functions over samples of all magnitudes,
// against float64 library functions (whose own error, below 1 ULP of f64, is
// part of the f64 figures).
func TestMathAccuracy(t *testing.T) {
	cases := []struct {
		op     ir.Op
		dtype  ir.DType
		exact  func(float64) float64
		sample func(r *rand.Rand) float64
		ulp    float64
		abs    float64
	}{
		{ir.OpExp2, ir.F32, math.Exp2, func(r *rand.Rand) float64 { return r.Float64()*290 - 155 }, 2, 0},
		{ir.OpExp2, ir.F64, math.Exp2, func(r *rand.Rand) float64 { return r.Float64()*2200 - 1080 }, 2.5, 0},
		{ir.OpLog2, ir.F32, math.Log2, anyPositive(149, 278), 2, 0},
		{ir.OpLog2, ir.F64, exactLog2, anyPositive(1074, 2098), 2.5, 0},
		{ir.OpLog2, ir.F32, math.Log2, func(r *rand.Rand) float64 { return 0.7 + 0.8*r.Float64() }, 2, 0},
		{ir.OpLog2, ir.F64, exactLog2, func(r *rand.Rand) float64 { return 0.7 + 0.8*r.Float64() }, 2.5, 0},
		{ir.OpSin, ir.F32, math.Sin, func(r *rand.Rand) float64 { return (r.Float64()*2 - 1) * 1e5 }, 0, 2e-7},
		{ir.OpSin, ir.F32, math.Sin, func(r *rand.Rand) float64 { return r.Float64()*8 - 4 }, 0, 1.3e-7},
		{ir.OpSin, ir.F64, math.Sin, func(r *rand.Rand) float64 { return (r.Float64()*2 - 1) * 1e5 }, 0, 1e-15},
		{ir.OpRsqrt, ir.F32, func(x float64) float64 { return 1 / math.Sqrt(x) }, anyPositive(149, 278), 1.5, 0},
	}
	for _, c := range cases {
		r := rand.New(rand.NewPCG(3, 4))
		p, err := Compile(elementwise(c.op, c.dtype, c.dtype), false)
		if err != nil {
			t.Fatal(err)
		}
		size := c.dtype.Size()
		in, out := make([]byte, 16*size), make([]byte, 16*size)
		worst, worstAt := 0.0, 0.0
		for range 20000 {
			for lane := range 16 {
				putScalar(in[lane*size:], c.dtype, ir.FloatScalar(c.sample(r)))
			}
			if err := p.Run([]Arg{{Bytes: in}, {Bytes: out}}, 0, 1); err != nil {
				t.Fatal(err)
			}
			for lane := range 16 {
				x, got := getScalar(in[lane*size:], c.dtype).F, getScalar(out[lane*size:], c.dtype).F
				err := ulps(c.dtype, got, c.exact(x))
				if c.abs > 0 {
					err = math.Abs(got - c.exact(x))
				}
				if err > worst {
					worst, worstAt = err, x
				}
			}
		}
		limit := max(c.ulp, c.abs)
		t.Logf("%s %s: largest error %.3g (limit %.3g) at %g", c.op, c.dtype, worst, limit, worstAt)
		if worst > limit {
			t.Errorf("%s %s: error %g at %g, want at most %g", c.op, c.dtype, worst, worstAt, limit)
		}
	}
}

// exactLog2 avoids the cancellation of math.Log2 near 1.
func exactLog2(x float64) float64 {
	if x > 0.5 && x < 2 {
		return math.Log1p(x-1) / math.Ln2
	}
	return math.Log2(x)
}

func anyPositive(lowest, span int) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		return math.Ldexp(0.5+r.Float64()/2, r.IntN(span)-lowest)
	}
}

func TestMathSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	negZero := math.Copysign(0, -1)
	for _, c := range []struct {
		op      ir.Op
		x, want float64
	}{
		{ir.OpExp2, inf, inf}, {ir.OpExp2, -inf, 0}, {ir.OpExp2, nan, nan}, {ir.OpExp2, 0, 1}, {ir.OpExp2, negZero, 1},
		{ir.OpExp2, 3000, inf}, {ir.OpExp2, -3000, 0}, {ir.OpExp2, 10, 1024}, {ir.OpExp2, -126, 0x1p-126}, {ir.OpExp2, -140, 0x1p-140},
		{ir.OpLog2, inf, inf}, {ir.OpLog2, -inf, nan}, {ir.OpLog2, nan, nan}, {ir.OpLog2, 0, -inf}, {ir.OpLog2, negZero, -inf},
		{ir.OpLog2, -1, nan}, {ir.OpLog2, 1, 0}, {ir.OpLog2, 8, 3}, {ir.OpLog2, 0x1p-140, -140}, {ir.OpLog2, 0x1p-126, -126},
		{ir.OpSin, 0, 0}, {ir.OpSin, inf, nan}, {ir.OpSin, nan, nan},
		{ir.OpRsqrt, 4, 0.5}, {ir.OpRsqrt, 0, inf}, {ir.OpRsqrt, negZero, -inf}, {ir.OpRsqrt, inf, 0}, {ir.OpRsqrt, -1, nan},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16} {
			want := ir.RoundFloat(d, c.want)
			if ir.RoundFloat(d, c.x) == 0 && c.x != 0 {
				continue
			}
			in, out := make([]byte, 16*d.Size()), make([]byte, 16*d.Size())
			for lane := range 16 {
				putScalar(in[lane*d.Size():], d, ir.FloatScalar(ir.RoundFloat(d, c.x)))
			}
			if err := RunProgram(elementwise(c.op, d, d), []Arg{{Bytes: in}, {Bytes: out}}, 0, 1); err != nil {
				t.Fatal(err)
			}
			if got := getScalar(out, d); !sameScalar(d, got, ir.FloatScalar(want)) {
				t.Errorf("%s %s(%g) = %g, want %g", c.op, d, c.x, got.F, want)
			}
		}
	}
}

// A bad access is an error that names kernel, instruction, buffer and offset.
func TestFaults(t *testing.T) {
	build := func(f func(b *program.Builder, x *program.Value)) *program.Program {
		b := program.NewBuilder("faulty")
		x := b.Buffer(0, ir.F32, "x", 16, 64)
		b.SetGrid(1)
		b.GridLoop(func(*program.Value) { f(b, x) })
		return b.Finish()
	}
	for _, c := range []struct {
		p    *program.Program
		want []string
	}{
		{build(func(b *program.Builder, x *program.Value) {
			b.Store(b.PtrAdd(x, b.Index(13)), b.Zero(program.Vector(ir.F32, 4)), 4)
		}), []string{"kernel faulty", "store", "slot 0", "offset 52", "outside of its 64 bytes"}},
		{build(func(b *program.Builder, x *program.Value) { b.Load(b.PtrAdd(x, b.Index(1)), 4, 16) }),
			[]string{"load", "not aligned to 16"}},
		{build(func(b *program.Builder, x *program.Value) { b.Load(x, 4, 32) }), []string{"the start is aligned to 16"}},
		{build(func(b *program.Builder, x *program.Value) { b.Gather(x, b.IntLanes(ir.I32, 0, -1), 4) }),
			[]string{"gather", "offset -4"}},
	} {
		err := RunProgram(c.p, []Arg{{Bytes: make([]byte, 64)}}, 0, 1)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}

// matvecProgram is y[u] = sum over k of w[u*n+k]*x[k], 16 lanes: the shape of
// a weight-reading kernel, 5 vector and 4 scalar instructions an iteration.
func matvecProgram(rows, n int64) *program.Program {
	b := program.NewBuilder("matvec")
	w := b.Buffer(0, ir.F32, "w", 64, rows*n*4)
	x := b.Buffer(1, ir.F32, "x", 64, n*4)
	y := b.Buffer(2, ir.F32, "y", 64, rows*4)
	b.SetGrid(rows)
	b.GridLoop(func(unit *program.Value) {
		row := b.PtrAdd(w, b.Mul(unit, b.Index(n)))
		sums := b.For(b.Index(0), b.Index(n), b.Index(16), []*program.Value{b.Zero(program.Vector(ir.F32, 16))},
			func(k *program.Value, acc []*program.Value) []*program.Value {
				wv, xv := b.Load(b.PtrAdd(row, k), 16, 4), b.Load(b.PtrAdd(x, k), 16, 64)
				return []*program.Value{b.Add(acc[0], b.Mul(b.Add(wv, xv), b.Sub(xv, wv)))}
			})
		b.Store(b.PtrAdd(y, unit), b.FoldLanes(ir.OpAdd, sums[0]), 4)
	})
	return b.Finish()
}

// BenchmarkInstr reports the time of one instruction, 16 lanes of f32.
func BenchmarkInstr(b *testing.B) {
	const rows, n, instrs = 16, 1024, 9 // an iteration of 16 elements: 2 ptradd, 2 load, 4 alu, 1 carried copy
	c, err := Compile(matvecProgram(rows, n), false)
	if err != nil {
		b.Fatal(err)
	}
	args := []Arg{{Bytes: newBytes(rows * n * 4)}, {Bytes: newBytes(n * 4)}, {Bytes: newBytes(rows * 4)}}
	for b.Loop() {
		if err := c.Run(args, 0, rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*n/16*instrs), "ns/instr")
}
