package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/target"
	"tgc/tensor"
)

// A factor of a row changes the scales of its groups, not the integers: the row is rounded without it, and
// it can leave products. A power of two makes both equal bit by bit.
func TestRoundLeavesFactorOfRow(t *testing.T) {
	g := tensor.NewGraph()
	x := tensor.FromSlice(g, lists.Make(64, func(i int) float32 { return float32(i*i%37) - 18.5 }), 1, 64)
	factor := tensor.FromSlice(g, []float32{0.25}, 1, 1)
	rest, found := x.Mul(factor).RowFactor()
	if found == nil || found.Node() != factor.Node() || rest.Node() != x.Node() {
		t.Errorf("the factor of x * factor is %v, and the rest %v", found, rest)
	}
	for name, y := range map[string]*tensor.Tensor{"a sum": x.Add(factor), "a column's": x.Mul(tensor.FromSlice(g, make([]float32, 64), 64)), "one column": factor.Mul(factor)} {
		if rest, found := y.RowFactor(); found != nil || rest != y {
			t.Errorf("%s has the factor %v", name, found)
		}
	}
	got, want := nn.Int8.Round(x.Mul(factor)), nn.Int8.Round(x).Mul(factor)
	if err := tensor.Realize(t.Context(), got, want); err != nil {
		t.Fatal(err)
	}
	a, err := tensor.Data[float32](got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tensor.Data[float32](want)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Errorf("rounded with its factor %v, before it %v", a, b)
	}
}

// On targets that multiply halves faster than bytes with scales many rows in int8 are bf16 there, and packed weights, too. Nothing
// else is, and no other target does so.
func TestManyRowsAreHalves(t *testing.T) {
	for _, c := range []struct {
		target, quant string
		mode          nn.Numeric
		rows          int
		want          bool
	}{
		{"ptx:sm_90", "Q4_K", nn.Int8, 16, true},
		{"ptx:sm_87", "Q8_0", nn.Int8, 300, true},
		{"ptx:sm_90", "Q4_K", nn.Int8, 15, false},
		{"ptx:sm_90", "Q4_K", nn.Int16, 16, false},
		{"ptx:sm_90", "Q4_K", nn.Half, 16, false},
		{"ptx:sm_90", "Q4_K", nn.Exact, 16, false},
		{"ptx:sm_75", "Q4_K", nn.Int8, 16, false},
		{"llvm:x86-64-v4", "Q4_K", nn.Int8, 16, false},
	} {
		desc, err := target.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		g.Output("y", c.mode.Linear(g.Input("x", ir.F32, c.rows, 256), g.Packed("w", c.quant, 64, 256)))
		step, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		halves := slices.ContainsFunc(step.Kernels, func(k *engine.Kernel) bool { return strings.Contains(ir.Text(k.AST), "bf16") })
		if halves != c.want {
			t.Errorf("%s: %d rows beside %s in %s are bf16: %t, want %t", c.target, c.rows, c.quant, c.mode, halves, c.want)
		}
	}
}

// On targets that multiply many rows faster as they are than as two digits, i16 has the kernels of exact.
func TestManyRowsOfDigitsAreExact(t *testing.T) {
	for _, c := range []struct {
		target string
		mode   nn.Numeric
		rows   int
		want   bool
	}{
		{"ptx:sm_90a", nn.Int16, 256, true},
		{"ptx:sm_90a", nn.Int16, 255, false},
		{"ptx:sm_90a", nn.Int8, 256, false},
		{"ptx:sm_90a", nn.Half, 256, false},
		{"ptx:sm_90", nn.Int16, 256, false},
		{"ptx:sm_100a", nn.Int16, 256, false},
		{"llvm:x86-64-v4", nn.Int16, 256, false},
	} {
		desc, err := target.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		kernels := func(mode nn.Numeric) (texts []string) {
			g := tensor.NewGraph()
			g.Output("y", mode.Linear(g.Input("x", ir.F32, c.rows, 256), g.Packed("w", "Q4_K", 64, 256)))
			step, err := g.Compile(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range step.Kernels {
				texts = append(texts, ir.Text(k.AST))
			}
			return texts
		}
		if got := slices.Equal(kernels(c.mode), kernels(nn.Exact)); got != c.want {
			t.Errorf("%s: %d rows in %s are exact: %t, want %t", c.target, c.rows, c.mode, got, c.want)
		}
	}
}

// Beside weights of 16 bits activations of many rows become what the weights are, in int8, or f16, in f16 and for weights of f16,
// where they saturate. Few rows, and those beside weights of bf16 in f16, keep what they are.
func TestLinearBesideFloats(t *testing.T) {
	const fine, huge = 1 + 1./1024 + 1./4096, 1e6
	for _, c := range []struct {
		mode    nn.Numeric
		weights ir.DType
		rows    int
		want    []float64 // of fine and of huge
	}{
		{nn.Int8, ir.BF16, 16, []float64{1, ir.RoundFloat(ir.BF16, huge)}},
		{nn.Int8, ir.F16, 16, []float64{1 + 1./1024, 65504}},
		{nn.Half, ir.F16, 16, []float64{1 + 1./1024, 65504}},
		{nn.Half, ir.BF16, 16, []float64{fine, huge}},
		{nn.Int16, ir.BF16, 16, []float64{fine, huge}},
		{nn.Exact, ir.F16, 16, []float64{fine, huge}},
		{nn.Int8, ir.F32, 16, []float64{fine, huge}},
		{nn.Int8, ir.BF16, 1, []float64{fine, huge}},
		{nn.Int8, ir.F16, 15, []float64{fine, huge}},
	} {
		for k, x := range []float64{fine, huge} {
			g := tensor.NewGraph()
			w := tensor.FromSlice(g, []float32{1, 0}, 1, 2).Cast(c.weights).Cast(ir.F32)
			rows := tensor.FromSlice(g, slices.Repeat([]float32{float32(x), 3}, c.rows), c.rows, 2)
			got, err := tensor.Data[float32](c.mode.Linear(rows, w))
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(float64(got[0])-c.want[k]) > 1e-6*c.want[k] {
				t.Errorf("%s: %g in %d rows beside weights of %s is %g, want %g", c.mode, x, c.rows, c.weights, got[0], c.want[k])
			}
		}
	}
}

// In int8 attention of many queries multiplies halves on targets that have them, of numbers no larger than they hold; no other does.
func TestAttentionOfManyQueriesIsOfHalves(t *testing.T) {
	for _, c := range []struct {
		target  string
		mode    nn.Numeric
		queries int
		want    bool
	}{
		{"ptx:sm_90", nn.Int8, 16, true},
		{"ptx:sm_90", nn.Int8, 15, false},
		{"ptx:sm_90", nn.Exact, 16, false},
		{"ptx:sm_75", nn.Int8, 16, false},
		{"llvm:x86-64-v4", nn.Int8, 16, false},
	} {
		desc, err := target.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		cache := func(name string) *tensor.Tensor { return g.Input(name, ir.F32, 1, 2, 64, 32) }
		q, positions := g.Input("q", ir.F32, 1, c.queries, 4, 32), g.Input("positions", ir.I32, 1, c.queries)
		g.Output("y", nn.AttentionOptions{Numeric: c.mode}.Apply(q, cache("k"), cache("v"), positions))
		step, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(lists.Map(step.Kernels, func(k *engine.Kernel) string { return ir.Text(k.AST) }), "\n")
		if halves := strings.Contains(text, "cast f16"); halves != c.want || halves && !strings.Contains(text, "65504") {
			t.Errorf("%s: %d queries in %s are of halves: %t, want %t, of numbers that they hold\n%s", c.target, c.queries, c.mode, halves, c.want, text)
		}
	}
}

// Integers times the scales of their groups are within half a step of what was rounded, for rows of any length.
func TestInt8Groups(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows, k := rapid.IntRange(1, 3).Draw(rt, "rows"), rapid.IntRange(1, 70).Draw(rt, "k")
		size := rapid.Float32Range(1e-6, 1e6).Draw(rt, "size")
		values := lists.Make(rows*k, func(i int) float32 { return size * float32((i*i*31+i*7)%201-100) / 100 })
		g := tensor.NewGraph()
		numbers, scales := nn.Int8Groups(tensor.FromSlice(g, values, rows, k))
		back := nn.ScaleGroups(numbers, scales)
		if numbers.DType() != ir.I8 || back.DType() != ir.F32 {
			rt.Fatalf("integers of %s, back as %s", numbers.DType(), back.DType())
		}
		got, err := tensor.Data[float32](back)
		if err != nil {
			rt.Fatal(err)
		}
		group := nn.GroupSize(k)
		if k%group != 0 || group > 32 || group < 32 && k%(2*group) == 0 {
			rt.Fatalf("groups of %d in %d", group, k)
		}
		for at := 0; at < len(values); at += group {
			most := 0.
			for _, v := range values[at : at+group] {
				most = max(most, math.Abs(float64(v)))
			}
			for i, v := range values[at : at+group] {
				if off := math.Abs(float64(got[at+i]) - float64(v)); !(off <= most/127*0.5001+1e-30) {
					rt.Fatalf("%v became %v in a group of %d up to %v", v, got[at+i], group, most)
				}
			}
		}
	})
}
