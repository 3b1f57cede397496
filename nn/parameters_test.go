package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/tensor"
)

func names(list []nn.Parameter) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.Name
	}
	return out
}

func TestParametersAreNamedByTheirPath(t *testing.T) {
	p := nn.NewParameters(tensor.NewGraph())
	block := p.In("blocks").In("0")
	block.Weight("weight", nn.Zeros(), 2, 3)
	block.State("mean", ir.F32, nn.Zeros(), 3)
	p.Weight("bias", nn.Zeros(), 5)
	if got, want := names(p.All()), []string{"blocks.0.weight", "blocks.0.mean", "bias"}; !slices.Equal(got, want) {
		t.Errorf("all: got %v, want %v", got, want)
	}
	if got, want := names(block.Trained()), []string{"blocks.0.weight", "bias"}; !slices.Equal(got, want) {
		t.Errorf("trained: got %v, want %v", got, want)
	}
	if got := p.Count(); got != 11 {
		t.Errorf("count: got %d, want 11", got)
	}
	block.Weight("weight", nn.Zeros(), 2, 3)
	if err := p.Graph().Err(); err == nil || !strings.Contains(err.Error(), `"blocks.0.weight" is registered twice`) {
		t.Errorf("registered twice: %v", err)
	}
}

// Moments of each distribution, from 40,000 draws: the bounds are 5 standard
// errors and more, and the seed is fixed.
func TestInitHasItsMoments(t *testing.T) {
	shape := []int{100, 80, 5} // fan in 400, fan out 500
	for name, c := range map[string]struct {
		init            nn.Init
		mean, deviation float64
		limit           float64 // of |v - mean|
	}{
		"ones":            {nn.Ones(), 1, 0, 0},
		"normal":          {nn.Normal(0.5), 0, 0.5, 4},
		"uniform":         {nn.Uniform(1, 3), 2, 1 / math.Sqrt(3), 1},
		"xavier uniform":  {nn.XavierUniform(1), 0, math.Sqrt(2.0 / 900), math.Sqrt(6.0 / 900)},
		"xavier normal":   {nn.XavierNormal(2), 0, 2 * math.Sqrt(2.0/900), 1},
		"kaiming uniform": {nn.KaimingUniform(math.Sqrt2), 0, math.Sqrt(2.0 / 400), math.Sqrt(6.0 / 400)},
		"kaiming normal":  {nn.KaimingNormal(1), 0, 0.05, 1},
	} {
		t.Run(name, func(t *testing.T) {
			values := c.init.Fill(7, "w", shape)
			sum, squares, far := 0.0, 0.0, 0.0
			for _, v := range values {
				d := float64(v) - c.mean
				sum, squares, far = sum+d, squares+d*d, max(far, math.Abs(d))
			}
			n := float64(len(values))
			if bound := 0.025*c.deviation + 1e-12; math.Abs(sum/n) > bound {
				t.Errorf("mean is %v off, want below %v", sum/n, bound)
			}
			if got := math.Sqrt(squares / n); math.Abs(got-c.deviation) > 0.02*c.deviation {
				t.Errorf("deviation: got %v, want %v", got, c.deviation)
			}
			if far > c.limit*(1+1e-6) {
				t.Errorf("a value is %v off the mean, want within %v", far, c.limit)
			}
		})
	}
}

func TestInitDependsOnSeedAndNameAlone(t *testing.T) {
	draw := func(seed uint32, name string) []float32 { return nn.Normal(1).Fill(seed, name, []int{64}) }
	if !slices.Equal(draw(1, "a"), draw(1, "a")) {
		t.Error("the same seed and name give other values")
	}
	if slices.Equal(draw(1, "a"), draw(2, "a")) || slices.Equal(draw(1, "a"), draw(1, "b")) {
		t.Error("another seed or name gives the same values")
	}
}

func TestValuesGoInAndOut(t *testing.T) {
	ctx := t.Context()
	g := tensor.NewGraph()
	p := nn.NewParameters(g)
	w := p.Weight("w", nn.Normal(1), 2, 2)
	n := p.State("n", ir.U32, nn.Constant(7), 1)
	p.Weight("unused", nn.Ones(), 3)
	g.Store(w, w.MulScalar(2))
	g.Store(n, n.Add(g.Scalar(ir.U32, 1)))
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := p.Initial(3)
	if err := p.Load(ctx, f, first); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	second, err := p.Save(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range first["w"].Float32s() {
		if got := second["w"].Float32s()[i]; got != 2*v {
			t.Errorf("w[%d]: got %v, want %v", i, got, 2*v)
		}
	}
	if got := second["n"]; got.DType != ir.U32 || !slices.Equal(got.Data, []byte{8, 0, 0, 0}) {
		t.Errorf("n: got %v, want 8 as u32", got)
	}
	if _, ok := second["unused"]; ok {
		t.Error("a parameter that the graph does not use was read")
	}

	for text, values := range map[string]nn.Values{
		`parameter "w" has no value, want f32[2 2]`: {"n": first["n"]},
		`parameter "w": got f32[4], want f32[2 2]`:  {"n": first["n"], "w": nn.Float32s(make([]float32, 4), 4)},
		`parameter "n": got f32[1], want u32[1]`:    {"w": first["w"], "n": nn.Float32s([]float32{1}, 1)},
	} {
		if err := p.Load(ctx, f, values); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want %q", err, text)
		}
	}
}
