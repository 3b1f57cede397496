package interp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/tensor"
)

func random(r *rand.Rand, shape ...int) *interp.Array {
	a := interp.NewArray(ir.F32, shape...)
	for i := range a.Data {
		a.Data[i] = ir.FloatScalar(float64(float32(r.NormFloat64())))
	}
	return a
}

// TopK by ranks finds the largest elements in order, equals by index.
func TestTopK(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 2, 5)
	indices, values := nn.TopK(x, 3)
	io, vo := g.Output("i", indices), g.Output("v", values)
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	in := interp.NewArray(ir.F32, 2, 5)
	for i, v := range []float64{3, 9, 3, 1, 2, -1, -2, -1, -5, -1} {
		in.Data[i] = ir.FloatScalar(v)
	}
	out, err := interp.EvalTensor(context.Background(), sink, interp.TensorInputs{Buffers: map[int64]*interp.Array{0: in, io.ID: interp.NewArray(ir.I32, 2, 3), vo.ID: interp.NewArray(ir.F32, 2, 3)}})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range []int64{1, 0, 2, 0, 2, 4} {
		if got := out[io.ID].Data[p].I; got != want {
			t.Errorf("index %d: got %d, want %d", p, got, want)
		}
	}
	for p, want := range []float64{9, 3, 3, -1, -1, -1} {
		if got := out[vo.ID].Data[p].F; got != want {
			t.Errorf("value %d: got %v, want %v", p, got, want)
		}
	}
}

// Attention over a cache equals the formula written out.
func TestAttention(t *testing.T) {
	const heads, kv, d, ctx, length = 4, 2, 3, 6, 4
	g := tensor.NewGraph()
	q := g.Input("q", ir.F32, 1, 2, heads, d)
	k := g.Input("k", ir.F32, 1, kv, ctx, d)
	v := g.Input("v", ir.F32, 1, kv, ctx, d)
	pos := g.Input("pos", ir.I32, 1, 2)
	n := g.Var("length", 1, ctx)
	zero := g.Dims(0)[0]
	out := g.Output("o", nn.Attention(q, k.Slice(2, zero, n), v.Slice(2, zero, n), pos))
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	qa, ka, va := random(r, 1, 2, heads, d), random(r, 1, kv, ctx, d), random(r, 1, kv, ctx, d)
	pa := interp.NewArray(ir.I32, 1, 2)
	pa.Data[0], pa.Data[1] = ir.IntScalar(2), ir.IntScalar(3)
	got, err := interp.EvalTensor(context.Background(), sink, interp.TensorInputs{
		Buffers: map[int64]*interp.Array{0: qa, 1: ka, 2: va, 3: pa, out.ID: interp.NewArray(ir.F32, 1, 2, heads*d)},
		Vars:    map[string]int64{"length": length},
	})
	if err != nil {
		t.Fatal(err)
	}
	for tok := range 2 {
		for h := range heads {
			var sum float64
			want := make([]float64, d)
			for u := 0; u <= tok+2; u++ {
				var s float64
				for e := range d {
					s += qa.Data[(tok*heads+h)*d+e].F * ka.Data[(h/2*ctx+u)*d+e].F
				}
				w := math.Exp(s / math.Sqrt(d))
				sum += w
				for e := range d {
					want[e] += w * va.Data[(h/2*ctx+u)*d+e].F
				}
			}
			for e := range d {
				if g, w := got[out.ID].Data[(tok*heads+h)*d+e].F, want[e]/sum; math.Abs(g-w) > 1e-5 {
					t.Errorf("token %d head %d element %d: got %v, want %v", tok, h, e, g, w)
				}
			}
		}
	}
}
