package ir

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sampleKernel is a matvec over a packed weight with a tuple reduce and a
// stage beside it: every kind of arg of kernel form.
func sampleKernel(a *Arena) *UOp {
	n, k, t := a.Range(0, a.Index(64)), a.Range(1, a.Index(32)), a.Range(2, a.Var(VarArg{Name: "pos", Lo: 1, Hi: 100, Multiple: 1}))
	w := a.Make(OpParam, U8, ParamArg{Slot: 1, Format: "Q8_0", Constant: true}, a.Index(64), a.Index(32))
	x := a.Make(OpParam, F32, ParamArg{Constant: true}, a.Index(32))
	out := a.Make(OpParam, F32, ParamArg{Slot: 2}, a.Index(64))
	table := a.Make(OpTable, I8, TableArg{"\x01\x02\xff"}, a.Index(3))
	d := a.Cast(a.Make(OpField, F16, FieldArg{"Q8_0", "d"}, w, n, a.Div(k, a.Index(32)), a.Index(0)), F32)
	q := a.Cast(a.Make(OpField, I8, FieldArg{"Q8_0", "qs"}, w, n, a.Index(0), k), F32)
	stage := a.Make(OpStage, F32, StageArg{SpaceShared}, a.Load(x, k), k)
	sum := a.Reduce(OpAdd, a.Mul(a.Mul(d, q), a.Load(stage, k)), k)
	arg := func(i int) *UOp { return a.Make(OpArg, F32, IntArg(i)) }
	pair := a.TupleReduce([]*UOp{a.Cast(t, F32), a.Const(F32, 1)}, t,
		[]*UOp{a.Const(F32, math.Inf(-1)), a.Const(F32, 0)},
		[]*UOp{a.Binary(OpMax, arg(0), arg(2)), a.Add(arg(1), arg(3))})
	value := a.Add(sum, a.Mul(a.Proj(pair, 1), a.Cast(a.Load(table, a.Mod(n, a.Index(3))), F32)))
	return a.Make(OpSink, Void, nil, a.Store(out, value, []*UOp{n}, []*UOp{n}))
}

func TestTextRoundTrip(t *testing.T) {
	a := NewArena()
	axes := a.Make(OpPermute, F32, Axes(1, 0), a.Make(OpBuffer, F32, BufferArg{ID: 3}, a.Index(2), a.Index(5)))
	odd := a.Make(OpConst, F32, FloatArg(math.Float64bits(math.NaN())^7))
	for _, root := range []*UOp{
		sampleKernel(a), axes, odd, a.Const(F16, math.NaN()), a.Const(F32, math.Copysign(0, -1)), a.Const(F64, 0.1), a.Const(BF16, math.Inf(-1)),
		a.ConstInt(U64, -1), a.ConstInt(Bool, 1), a.Const(F32, 1e-45), a.Make(OpVar, Idx, VarArg{"strange name", -3, 9, 2, true}),
		a.Make(OpPermute, F32, Axes(), a.Make(OpBuffer, F32, BufferArg{ID: -1, Format: "Q4_K"})),
	} {
		text := Text(root)
		back, err := Parse(a, text)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
		} else if back != root {
			t.Errorf("reads back as another graph:\n%s\n%s", text, Text(back))
		}
	}
}

func TestTextRoundTripRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &exprGen{NewArena(), t, map[*UOp]Scalar{}}
		root := g.expr(rapid.SampledFrom([]DType{Idx, I8, U64, I32}).Draw(t, "dtype"), 5)
		if back, err := Parse(g.a, Text(root)); err == nil && back != root {
			t.Fatalf("reads back as another graph:\n%s", Text(root))
		} else if err != nil && !strings.Contains(err.Error(), "does not compute on") {
			t.Fatal(err)
		}
	})
}

func FuzzParse(f *testing.F) {
	a := NewArena()
	f.Add(Text(sampleKernel(a)))
	f.Add("%0 = const f32 [nan(7ff8000000000003)]\n")
	f.Add("%a = var idx [n -1..9 multiple 2 device]\n%b = range idx [1] %a # loop\n%c = add idx %b -3\n")
	f.Add("%0 = buffer u8 [3 Q6_K] 4 256\n%1 = decode f32 %0\n%2 = reduce_axes f32 [add] %1 1\n%3 = contiguous f32 %2\n")
	f.Fuzz(func(t *testing.T, text string) {
		a := NewArena()
		root, err := Parse(a, text)
		if err != nil {
			return
		}
		again, err := Parse(a, Text(root))
		if err != nil || again != root {
			t.Fatalf("print and parse gave %v, %v:\n%s", again, err, Text(root))
		}
		_ = VerifyTensor(root)
		_ = VerifyKernel(root)
		NewBounds().Of(root)
		CanonicalHash(root)
	})
}
