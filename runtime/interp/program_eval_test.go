package interp

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
)

// Every elementwise op on every dtype gives what ir.EvalScalar gives.
func TestElementwiseAgainstEvalScalar(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cases := programtest.Cases()
	if len(cases) < 450 {
		t.Errorf("%d cases, want at least 450", len(cases))
	}
	for _, c := range cases {
		compiled, err := Compile(c.Program, true)
		if err != nil {
			t.Errorf("%s %s %v: %v", c.Op, c.Result, c.Args, err)
			continue
		}
		err = c.Check(r, 40, func(buffers [][]byte) error {
			args := make([]Arg, len(buffers))
			for i := range buffers {
				args[i].Bytes = buffers[i]
			}
			return compiled.Run(args, 0, 1)
		})
		if err != nil {
			t.Error(err)
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
		p, err := Compile(programtest.Elementwise(c.op, c.dtype, c.dtype), false)
		if err != nil {
			t.Fatal(err)
		}
		size := c.dtype.Size()
		in, out := make([]byte, 16*size), make([]byte, 16*size)
		worst, worstAt := 0.0, 0.0
		for range 20000 {
			for lane := range 16 {
				programtest.PutScalar(in[lane*size:], c.dtype, ir.FloatScalar(c.sample(r)))
			}
			if err := p.Run([]Arg{{Bytes: in}, {Bytes: out}}, 0, 1); err != nil {
				t.Fatal(err)
			}
			for lane := range 16 {
				x, got := programtest.GetScalar(in[lane*size:], c.dtype).F, programtest.GetScalar(out[lane*size:], c.dtype).F
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
				programtest.PutScalar(in[lane*d.Size():], d, ir.FloatScalar(ir.RoundFloat(d, c.x)))
			}
			if err := RunProgram(programtest.Elementwise(c.op, d, d), []Arg{{Bytes: in}, {Bytes: out}}, 0, 1); err != nil {
				t.Fatal(err)
			}
			if got := programtest.GetScalar(out, d); !programtest.SameScalar(d, got, ir.FloatScalar(want)) {
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

// 2^x of what is seen to be at most 0 takes fewer instructions and has the same bits: between integers, of subnormal results, and of no number.
func TestPowersOfShares(t *testing.T) {
	const n = 16
	build := func(share bool) *Compiled {
		b := program.NewBuilder("exp2")
		in, out := b.Buffer(0, ir.F32, "", 8, n*4), b.Buffer(1, ir.F32, "", 8, n*4)
		b.SetGrid(1)
		b.GridLoop(func(*program.Value) {
			v := b.Load(in, n, 8)
			if share {
				v = b.Alu(ir.OpMin, v, b.Float(v.Type, 0))
			}
			b.Store(out, b.Alu(ir.OpExp2, v), 8)
		})
		p, err := Compile(b.Finish(), false)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	plain, share := build(false), build(true)
	r := rand.New(rand.NewPCG(5, 6))
	for k := range 20000 {
		in, want, got := make([]byte, n*4), make([]byte, n*4), make([]byte, n*4)
		for lane := range n {
			x := -165 * r.Float64()
			switch {
			case k == 0:
				x = []float64{0, math.Copysign(0, -1), math.Inf(-1), math.NaN(), -1e-40, -126, -126.5, -149, -149.5, -150.5, -160, -161, -1e30, -0.5, -1.5, -2.5}[lane]
			case k%4 == 1: // where rounding to an integer is a tie
				x = math.Round(x) - 0.5
			}
			programtest.PutScalar(in[lane*4:], ir.F32, ir.FloatScalar(x))
		}
		for _, run := range []struct {
			p   *Compiled
			out []byte
		}{{plain, want}, {share, got}} {
			if err := run.p.Run([]Arg{{Bytes: in}, {Bytes: run.out}}, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		for lane := range n {
			x, w, g := programtest.GetScalar(in[lane*4:], ir.F32).F, programtest.GetScalar(want[lane*4:], ir.F32).F, programtest.GetScalar(got[lane*4:], ir.F32).F
			if math.Float64bits(w) != math.Float64bits(g) && !(math.IsNaN(w) && math.IsNaN(g)) {
				t.Fatalf("2^%g: %g, otherwise %g", x, g, w)
			}
		}
	}
}
