package interp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
)

// A sample is what the whole evaluation stores there; plain elements may be bytes; nothing is
// written. Noise errs by about as much as it says.
func TestSampleKernel(t *testing.T) {
	const rows, columns = 5, 7
	a := ir.NewArena()
	out, x := plainParam(a, 0, rows), plainParam(a, 1, rows, columns)
	n, k := a.Range(0, a.Index(rows)), a.Range(1, a.Index(columns))
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, a.Reduce(ir.OpAdd, a.Load(x, n, k), k), []*ir.UOp{n}, []*ir.UOp{n}))
	rng := rand.New(rand.NewPCG(1, 1))
	values := make([]float64, rows*columns)
	for i := range values {
		values[i] = float64(float32(rng.Float64()))
	}
	whole := []*interp.KernelBuffer{floats(make([]float64, rows)...), floats(values...)}
	if _, err := interp.EvalKernel(t.Context(), sink, whole, nil, interp.KernelOptions{Float64: true}); err != nil {
		t.Fatal(err)
	}
	bytes := []*interp.KernelBuffer{floats(make([]float64, rows)...), {DType: ir.F32, Bytes: []byte(ir.EncodeTable(ir.F32, values))}}
	points := [][]float64{{0}, {1}, {0.5}}
	got, err := interp.SampleKernel(t.Context(), sink, bytes, nil, interp.KernelOptions{Float64: true}, points)
	if err != nil || len(got) != len(points) {
		t.Fatalf("%d samples, %v", len(got), err)
	}
	for i, at := range []int64{0, rows - 1, rows / 2} {
		if s := got[i]; s.Slot != 0 || s.At != at || s.Value != whole[0].Data[at] {
			t.Errorf("sample %+v, want %v at %d", s, whole[0].Data[at], at)
		}
		if bytes[0].Data[at].F != 0 {
			t.Errorf("element %d was written", at)
		}
	}
	noisy, err := interp.SampleKernel(t.Context(), sink, bytes, nil, interp.KernelOptions{Float64: true, Noise: rng}, points)
	if err != nil {
		t.Fatal(err)
	}
	for i := range noisy {
		off := math.Abs(noisy[i].Value.F/got[i].Value.F - 1)
		if off == 0 || off > columns*interp.NoiseUnits*0x1p-24 {
			t.Errorf("noise of %g", off)
		}
	}
}

// Bits of an integer are those of an f32 also where f32 are computed in float64: a first guess of 1/x is one.
func TestSampleBits(t *testing.T) {
	a := ir.NewArena()
	out, x := plainParam(a, 0, 3), plainParam(a, 1, 3)
	n := a.Range(0, a.Index(3))
	bits := a.Make(ir.OpBitcast, ir.I32, nil, a.Load(x, n))
	guess := a.Make(ir.OpBitcast, ir.F32, nil, a.Sub(a.ConstInt(ir.I32, 0x7ef311c3), bits))
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, guess, []*ir.UOp{n}, []*ir.UOp{n}))
	values := []float64{0.3, 1, 1000}
	got, err := interp.SampleKernel(t.Context(), sink, []*interp.KernelBuffer{floats(0, 0, 0), floats(values...)}, nil, interp.KernelOptions{Float64: true}, [][]float64{{0}, {0.5}, {1}})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if off := math.Abs(got[i].Value.F*v - 1); off > 0.13 {
			t.Errorf("1/%g is %g, which is off by %g", v, got[i].Value.F, off)
		}
	}
}

// Points of elements are where the kernel stores them, also where indices are exchanged; what is
// not stored has none.
func TestPointsOf(t *testing.T) {
	const rows, columns = 5, 7
	a := ir.NewArena()
	out, x := plainParam(a, 0, columns, rows), plainParam(a, 1, rows, columns)
	n, k := a.Range(0, a.Index(rows)), a.Range(1, a.Index(columns))
	sink := a.Make(ir.OpSink, ir.Void, nil, a.Store(out, a.Load(x, n, k), []*ir.UOp{k, n}, []*ir.UOp{n, k}))
	values := make([]float64, rows*columns)
	for i := range values {
		values[i] = float64(i)
	}
	args := []*interp.KernelBuffer{floats(make([]float64, rows*columns)...), floats(values...)}
	wanted := map[int64]bool{0: true, 12: true, rows*columns - 1: true, rows * columns: true}
	points, err := interp.PointsOf(t.Context(), sink, args, nil, 0, wanted)
	if err != nil || len(points) != 3 {
		t.Fatalf("%v, %v, want 3 points", points, err)
	}
	for at, point := range points {
		got, err := interp.SampleKernel(t.Context(), sink, args, nil, interp.KernelOptions{}, [][]float64{point})
		if want := float64(at%rows*columns + at/rows); err != nil || len(got) != 1 || got[0].At != at || got[0].Value.F != want {
			t.Errorf("element %d: %+v, %v, want %v", at, got, err, want)
		}
	}
	if points, err := interp.PointsOf(t.Context(), sink, args, nil, 1, wanted); err != nil || len(points) > 0 {
		t.Errorf("%v, %v of a slot that is not stored", points, err)
	}
}
