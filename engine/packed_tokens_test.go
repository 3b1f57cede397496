package engine_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime"
	"tgc/tensor"
)

// Products of every packed type with five tokens take matrix instructions on a GPU, also those of grids of
// four or eight weights and those whose codes are computed: values are those of the interpreter.
func TestPackedTokensAreProductsOnGPU(t *testing.T) {
	gpu, host := openEmulated(t)
	for _, format := range packed.All() {
		if format.IsPlain() {
			continue
		}
		for _, mode := range []nn.Numeric{nn.Exact, nn.Int8} {
			got, plans := packedTokens(t, gpu, format, mode)
			want, _ := packedTokens(t, host, format, mode)
			if !strings.Contains(plans, "MMA") {
				t.Errorf("%s, %s: no matrix instructions: %s", format.Name, mode, plans)
			}
			var square, size float64
			for i := range want {
				d := float64(got[i] - want[i])
				square, size = square+d*d, size+float64(want[i])*float64(want[i])
			}
			if !(square <= 1e-9*size) || math.IsNaN(size) {
				t.Errorf("%s, %s: off by %g of %g", format.Name, mode, square, size)
			}
		}
	}
}

// packedTokens multiplies five random rows by random weights of a type.
func packedTokens(t *testing.T, dev runtime.Device, format *packed.Format, mode nn.Numeric) (values []float32, plans string) {
	t.Helper()
	const tokens, rows, points = 5, 1024, 512
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, tokens, points).MulScalar(0.5).Contiguous()
	g.Output("y", mode.Linear(x, g.Packed("w", format.Name, rows, points)))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
	if err != nil {
		t.Fatal(format.Name, err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(5, 7))
	if err := tensor.Set(t.Context(), f, "x", randomFloats(r, tokens*points)); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), "w", packed.RandomBlocks(format, rows*points/format.BlockElems, r)); err != nil {
		t.Fatal(err)
	}
	values = run(t, f)
	for _, k := range f.Step().Compiled.Kernels {
		plans += k.Plan.String() + " | "
	}
	return values, plans
}
