package tensor_test

import (
	"math"
	"slices"
	"testing"

	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// draws are one tensor of each kind.
func draws(g *tensor.Graph) map[string]*tensor.Tensor {
	r := g.Random(7)
	weights := tensor.FromSlice(g, []float32{1, 0, 3, 0.5, 0, 2, 2, 0}, 2, 4)
	return map[string]*tensor.Tensor{
		"bits":        r.Bits(300),
		"uniform":     r.Uniform(-3, 5.1, 20, 15),
		"normal":      r.Normal(1, 0.3, 3000),
		"integers":    r.Integers(-5, 17, 300),
		"bernoulli":   r.Bernoulli(0.3, 300),
		"of":          r.BernoulliOf(g.Linspace(ir.F32, 0, 1, 300)),
		"multinomial": r.Multinomial(weights, 200),
		"distinct":    r.MultinomialDistinct(weights, 2),
		"permutation": r.Permutation(100),
		"shuffle":     r.Shuffle(g.Arange(ir.F32, 0, 12, 1).Reshape(4, 3), 0),
	}
}

// A seed gives the same numbers to the bit on every device, alone or with others.
func TestRandomIsTheSameEverywhere(t *testing.T) {
	want := make(map[string][]byte)
	everyDevice(t, func(t *testing.T, dev runtime.Device) {
		all := draws(tensor.NewGraph().On(dev))
		if err := tensor.Realize(t.Context(), all["uniform"], all["normal"], all["multinomial"]); err != nil {
			t.Fatal(err)
		}
		for name, x := range all {
			if err := x.Realize(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := x.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			if want[name] == nil {
				want[name] = got
			}
			if !slices.Equal(got, want[name]) {
				t.Errorf("%s differs", name)
			}
		}
	})
}

// Numbers are what their definitions say of the hash, computed here in float64.
func TestRandomByDefinition(t *testing.T) {
	g := tensor.NewGraph()
	r := g.Random(7)
	bits, uniform := realised[uint32](t, r.Bits(1000)), realised[float32](t, r.Uniform(0, 1, 1000))
	normal, integers := realised[float32](t, r.Normal(0, 1, 1000)), realised[int32](t, r.Integers(-5, 17, 1000))
	word := func(call, i int) uint32 { return ir.Threefry(ir.Threefry(7, uint32(call)), uint32(i)) }
	for i := range bits {
		if bits[i] != word(1, i) {
			t.Fatalf("bits %d: %x", i, bits[i])
		}
		if want := float64(word(2, i)>>8) / (1 << 24); float64(uniform[i]) != want {
			t.Fatalf("uniform %d: %v, want %v", i, uniform[i], want)
		}
		w := word(3, i)
		want := math.Sqrt2 * math.Erfinv(1-2*(float64(w&math.MaxInt32)+0.5)/(1<<32))
		if w>>31 == 0 {
			want = -want
		}
		if math.Abs(float64(normal[i])-want) > 1e-6*max(1, math.Abs(want)) {
			t.Fatalf("normal %d: %v, want %v", i, normal[i], want)
		}
		if want := int32(uint64(word(4, i))*22>>32) - 5; integers[i] != want {
			t.Fatalf("integer %d: %d, want %d", i, integers[i], want)
		}
	}
}

// chiSquare is the statistic of counts against probabilities, less its mean, in standard
// deviations.
func chiSquare(counts, p []float64) float64 {
	n, sum, cells := 0.0, 0.0, -1.0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		if p[i] > 0 {
			sum += (c - n*p[i]) * (c - n*p[i]) / (n * p[i])
			cells++
		} else if c > 0 {
			return math.Inf(1)
		}
	}
	return (sum - cells) / math.Sqrt(2*cells)
}

// Distributions are what they should be, by counts in cells and by moments of a hundred
// thousand numbers: within four standard deviations.
func TestRandomDistributions(t *testing.T) {
	const n, cells = 100_000, 50
	g := tensor.NewGraph()
	r := g.Random(3)
	count := func(name string, p []float64, cell func(i int) int) {
		t.Helper()
		counts := make([]float64, len(p))
		for i := range n {
			counts[cell(i)]++
		}
		if off := chiSquare(counts, p); !(math.Abs(off) < 4) {
			t.Errorf("%s: chi square is off by %.1f deviations: %v", name, off, counts)
		}
	}
	even := slices.Repeat([]float64{1.0 / cells}, cells)
	uniform := realised[float32](t, r.Uniform(0, 1, n))
	count("uniform", even, func(i int) int { return int(uniform[i] * cells) })
	normal := realised[float32](t, r.Normal(0, 1, n))
	count("normal", even, func(i int) int {
		return min(int(cells*math.Erfc(-float64(normal[i])/math.Sqrt2)/2), cells-1)
	})
	integers := realised[int32](t, r.Integers(100, 100+cells, n))
	count("integers", even, func(i int) int { return int(integers[i] - 100) })
	coins := realised[bool](t, r.Bernoulli(0.3, n))
	count("bernoulli", []float64{0.7, 0.3}, func(i int) int { return map[bool]int{true: 1}[coins[i]] })
	weights := tensor.FromSlice(g, []float32{1, 0, 3, 4}, 4)
	drawn := realised[int32](t, r.Multinomial(weights, n))
	count("multinomial", []float64{1. / 8, 0, 3. / 8, 4. / 8}, func(i int) int { return int(drawn[i]) })
	pairs := realised[int32](t, r.MultinomialDistinct(weights.Expand(n, 4), 2))
	// The pair 0, 2 comes with 1/8 * 3/7, and so on.
	p := make([]float64, 16)
	for i, a := range []float64{1, 0, 3, 4} {
		for j, b := range []float64{1, 0, 3, 4} {
			if i != j {
				p[4*i+j] = a / 8 * b / (8 - a)
			}
		}
	}
	count("distinct", p, func(i int) int { return int(4*pairs[2*i] + pairs[2*i+1]) })
	// Neighbours, and the same places of two calls, do not depend on each other.
	again := realised[float32](t, r.Uniform(0, 1, n))
	for name, other := range map[string]func(i int) float32{"neighbours": func(i int) float32 { return uniform[(i+1)%n] }, "calls": func(i int) float32 { return again[i] }} {
		sum := 0.0
		for i := range uniform {
			sum += (float64(uniform[i]) - 0.5) * (float64(other(i)) - 0.5) * 12
		}
		if math.Abs(sum) > 4*math.Sqrt(n) {
			t.Errorf("%s correlate: %v of %v", name, sum, math.Sqrt(n))
		}
	}
}

// A permutation has each number once; a key that a run changes gives other numbers.
func TestPermutationsAndKeys(t *testing.T) {
	ctx, g := t.Context(), tensor.NewGraph()
	key := g.State("key", ir.U32, 1)
	g.Output("order", g.RandomFrom(key).Permutation(50))
	g.Store(key, key.AddScalar(1))
	f, err := g.Function(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before []int32
	for range 3 {
		if err := f.Run(ctx, nil); err != nil {
			t.Fatal(err)
		}
		order, err := tensor.Get[int32](ctx, f, "order")
		if err != nil || slices.Equal(order, before) {
			t.Errorf("%v, %v after %v", order, err, before)
		}
		before = slices.Clone(order)
		slices.Sort(order)
		for i, v := range order {
			if int(v) != i {
				t.Fatalf("no permutation: %v", before)
			}
		}
	}
}

func TestNewerErrors(t *testing.T) {
	type T = tensor.Tensor
	for want, build := range map[string]func(g *tensor.Graph, x *T) *T{ // x is f32[2 3]
		"Integers: from 3 to below 3":           func(g *tensor.Graph, _ *T) *T { return g.Random(1).Integers(3, 3, 2) },
		"Multinomial: 2 of weights i32[4]":      func(g *tensor.Graph, _ *T) *T { return g.Random(1).Multinomial(g.Zeros(ir.I32, 4), 2) },
		"MultinomialDistinct: 4 different ones": func(g *tensor.Graph, x *T) *T { return g.Random(1).MultinomialDistinct(x, 4) },
		"RandomFrom: key f32[2 3]":              func(g *tensor.Graph, x *T) *T { return g.RandomFrom(x).Bits(2) },
		"Arange: from 0 to 1 in steps of 0":     func(g *tensor.Graph, _ *T) *T { return g.Arange(ir.F32, 0, 1, 0) },
		"Linspace: 3 elements of i32":           func(g *tensor.Graph, _ *T) *T { return g.Linspace(ir.I32, 0, 1, 3) },
		"Meshgrid: f32[2 3], want vectors":      func(_ *tensor.Graph, x *T) *T { return tensor.Meshgrid(x)[0] },
		"Quantile: 1.5 of axis 0":               func(_ *tensor.Graph, x *T) *T { return x.Quantile(1.5, 0) },
		"Bincount: 3 bins of f32[2 3]":          func(_ *tensor.Graph, x *T) *T { return x.Bincount(3) },
		"Tensordot: axes [0] of f32[2 3] with":  func(_ *tensor.Graph, x *T) *T { return x.Tensordot(x, []int{0}, []int{1}) },
		"Cross: f32[2 3] and f32[2 3] along":    func(_ *tensor.Graph, x *T) *T { return x.Cross(x, 0) },
		"CDist: f32[2 3] and f32[2 3], p 0":     func(_ *tensor.Graph, x *T) *T { return x.CDist(x, 0) },
		"AdaptiveMaxPool: f32[2 3] to [0]":      func(_ *tensor.Graph, x *T) *T { return x.AdaptiveMaxPool(0) },
		"SearchSorted: f32[2 3] in f32[3 2]":    func(_ *tensor.Graph, x *T) *T { return x.Transpose(0, 1).SearchSorted(x, false) },
		"MaskedSelect: f32[2 3] where f32[2 3]": func(_ *tensor.Graph, x *T) *T { v, _ := x.MaskedSelect(x, 2); return v },
		"MSELoss: 2 options, want at most one":  func(_ *tensor.Graph, x *T) *T { return x.MSELoss(x, tensor.ReduceSum, tensor.ReduceSum) },
		"Full: elements of void":                func(g *tensor.Graph, _ *T) *T { return g.Full(ir.Void, 0, 2) },
	} {
		g := tensor.NewGraph()
		build(g, g.Input("x", ir.F32, 2, 3))
		wantError(t, want, g.Err(), want)
	}
}
