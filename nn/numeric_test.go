package nn_test

import (
	"slices"
	"testing"

	"tgc/internal/lists"
	"tgc/nn"
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
