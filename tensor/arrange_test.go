package tensor_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/tensor"
)

// pythonSlice is what Python's x[start:stop:step] takes of 0..n-1, by walking:
// nil bounds are the ends.
func pythonSlice(n int, start, stop *int, step int) []float32 {
	at, end := 0, n
	if step < 0 {
		at, end = n-1, -1
	}
	wrap := func(i int) int {
		if i < 0 {
			i += n
		}
		return i
	}
	if start != nil {
		at = wrap(*start)
		if step < 0 {
			at = min(at, n-1)
		} else {
			at = max(at, 0)
		}
	}
	if stop != nil {
		if end = wrap(*stop); step < 0 {
			end = max(end, -1)
		}
	}
	list := []float32{}
	for ; step > 0 && at < min(end, n) || step < 0 && at > end && at >= 0; at += step {
		list = append(list, float32(at))
	}
	return list
}

// Spans, windows and pads of 0..n-1 against loops.
func TestArrangements(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(r, "n")
		g := tensor.NewGraph()
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i)
		}
		x := tensor.FromSlice(g, values, n)

		bound := rapid.Ptr(rapid.IntRange(-9, 9), true)
		start, stop := bound.Draw(r, "start"), bound.Draw(r, "stop")
		step := rapid.SampledFrom([]int{1, 2, 3, -1, -2, -3}).Draw(r, "step")
		cut := x.Cut(span(start, stop).By(step))

		size := rapid.IntRange(1, n).Draw(r, "size")
		stride := rapid.IntRange(1, 4).Draw(r, "stride")
		windows := x.Unfold(0, size, stride)
		var wantWindows []float32
		for at := 0; at+size <= n; at += stride {
			wantWindows = append(wantWindows, values[at:at+size]...)
		}

		mode := tensor.PadMode(rapid.IntRange(0, 3).Draw(r, "mode"))
		limit := map[tensor.PadMode]int{tensor.PadReflect: n - 1, tensor.PadCircular: n}
		most, ok := limit[mode]
		if !ok {
			most = 5
		}
		before, after := rapid.IntRange(0, most).Draw(r, "before"), rapid.IntRange(0, most).Draw(r, "after")
		padded := x.PadAll([][2]int{{before, after}}, tensor.PadOptions{Mode: mode, Value: -1})
		var wantPadded []float32
		for i := -before; i < n+after; i++ {
			wantPadded = append(wantPadded, padElement(mode, i, n))
		}

		if err := tensor.Realize(r.Context(), cut, windows, padded); err != nil {
			r.Fatal(err)
		}
		for name, c := range map[string]struct {
			of   *tensor.Tensor
			want []float32
		}{
			"span": {cut, pythonSlice(n, start, stop, step)}, "windows": {windows, wantWindows}, "pad": {padded, wantPadded},
		} {
			if got, err := tensor.Data[float32](c.of); err != nil || !slices.Equal(got, c.want) {
				r.Fatalf("%s: got %v, %v, want %v", name, got, err, c.want)
			}
		}
	})
}

func span(start, stop *int) tensor.Span {
	switch {
	case start != nil && stop != nil:
		return tensor.Between(*start, *stop)
	case start != nil:
		return tensor.From(*start)
	case stop != nil:
		return tensor.Until(*stop)
	}
	return tensor.Whole()
}

// padElement is element i, outside 0..n-1 too, of 0..n-1 in a pad mode.
func padElement(mode tensor.PadMode, i, n int) float32 {
	if i >= 0 && i < n {
		return float32(i)
	}
	switch mode {
	case tensor.PadReflect:
		if i < 0 {
			return float32(-i)
		}
		return float32(2*(n-1) - i)
	case tensor.PadReplicate:
		return float32(min(max(i, 0), n-1))
	case tensor.PadCircular:
		return float32((i + n) % n)
	}
	return -1
}

// Joined, padded, rolled and gathered elements keep their bits: -0 stays -0.
func TestArrangementsKeepBits(t *testing.T) {
	g := tensor.NewGraph()
	negative := float32(math.Copysign(0, -1))
	x := tensor.FromSlice(g, []float32{negative, 1}, 2)
	index := tensor.FromSlice(g, []int32{0, 0}, 2)
	sorted, _ := x.Sort(0, false)
	for name, y := range map[string]*tensor.Tensor{
		"cat":     x.Cat(0, x),
		"pad":     x.PadAll([][2]int{{1, 1}}, tensor.PadOptions{Mode: tensor.PadReplicate}).SliceInts(0, 1, 2),
		"roll":    x.Roll([]int{2}, []int{0}),
		"gather":  x.GatherElements(0, index),
		"scatter": g.Scalar(ir.F32, 1).Expand(2).ScatterElements(0, index, x.Flip(0)),
		"sort":    sorted,
		"tril":    x.Expand(2, 2).Tril(0).Reshape(4),
	} {
		if err := y.Realize(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := tensor.Data[float32](y)
		if err != nil || math.Float32bits(got[0]) != math.Float32bits(negative) {
			t.Errorf("%s: got %v, %v; want -0 first", name, got, err)
		}
	}
}
