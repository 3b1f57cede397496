package microbench

import (
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// The price of a kernel of a GPU is its time by the target's numbers: bytes where memory
// decides, multiply-adds where they do, and more where a few blocks have all the work.
func TestPriceOnGPU(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	price := func(build func(g *tensor.Graph) *tensor.Tensor) float64 {
		g := tensor.NewGraph()
		g.Output("y", build(g))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return priceOf(c).Price - float64(len(c.Launches))*launchTime(desc)
	}
	const n = 1 << 24
	moved := price(func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, n).MulScalar(2) })
	if want := 2 * 4 * n * float64(desc.Cost.ByteCache) / 1e9; moved != want {
		t.Errorf("%g us for %d elements, want %g", moved, n, want)
	}
	product := price(func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("x", ir.F16, 1024, 4096).Cast(ir.F32).Linear(g.Input("w", ir.F32, 1024, 4096))
	})
	if least := 2 * 1024 * 1024 * 4096 * float64(desc.Cost.Op) / 1e9; product < least/8 || product > 8*least {
		t.Errorf("%g us for a product of %g", product, least)
	}
	many := price(func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 1024, 1024).Softmax(-1) })
	few := price(func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 4, 1024).Softmax(-1) })
	if few*256 < 8*many {
		t.Errorf("%g us for 4 rows, %g for 1024", few, many)
	}
}
