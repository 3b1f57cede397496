package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// windowCase is attention of some queries to the last rows of a cache.
type windowCase struct{ heads, shared, size, tokens, window, context, length int }

// check compares attention that reads the last rows of the cache with one in float64
// that looks at each row. What lies past the length is no number.
func (c windowCase) check(t *testing.T, options interp.Options) {
	r := rand.New(rand.NewPCG(3, uint64(c.length)))
	normal := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		return out
	}
	q := normal(c.tokens * c.heads * c.size)
	keys, values := normal(c.shared*c.context*c.size), normal(c.shared*c.context*c.size)
	for h := range c.shared {
		for i := (h*c.context + c.length) * c.size; i < (h+1)*c.context*c.size; i++ {
			keys[i], values[i] = float32(math.NaN()), float32(math.NaN())
		}
	}
	sinks := normal(c.heads)
	g := tensor.NewGraph()
	length := g.Var("length", 1, int64(c.context))
	positions := g.Iota(ir.I32, g.Dims(c.tokens)[0]).Unsqueeze(0).Add(g.Size(length, ir.I32)).AddScalar(-float64(c.tokens))
	most := c.window + c.tokens - 1
	rows := positions.SliceInts(1, 0, 1).Reshape(1).AddScalar(float64(1-c.window)).Clamp(0, float64(c.context-most))
	rows = rows.Add(g.Iota(ir.I32, g.Arena().Binary(ir.OpMin, length, g.Dims(most)[0])))
	visible := func(x []float32) *tensor.Tensor {
		return tensor.FromSlice(g, x, 1, c.shared, c.context, c.size).Gather(2, rows)
	}
	o := nn.AttentionOptions{Window: c.window, Rows: rows, SoftCap: 3, Sinks: tensor.FromSlice(g, sinks, c.heads)}
	g.Output("y", o.Apply(tensor.FromSlice(g, q, 1, c.tokens, c.heads, c.size), visible(keys), visible(values), positions))
	run, err := tensor.Compile(t.Context(), g, interp.New(options), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Run(t.Context(), map[string]int64{"length": int64(c.length)}); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Get[float32](t.Context(), run, "y")
	if err != nil {
		t.Fatal(err)
	}
	for n := range c.tokens {
		for h := range c.heads {
			for e, want := range c.query(n, h, q, keys, values, sinks) {
				if x := float64(got[(n*c.heads+h)*c.size+e]); !(math.Abs(x-want) <= 1e-5) {
					t.Fatalf("%+v: query %d head %d element %d is %g, want %g", c, n, h, e, x, want)
				}
			}
		}
	}
}

// query is the result of one query and head.
func (c windowCase) query(n, h int, q, keys, values, sinks []float32) []float64 {
	out, total := make([]float64, c.size), math.Exp(float64(sinks[h]))
	position := c.length - c.tokens + n
	for row := max(position-c.window+1, 0); row <= position; row++ {
		at, score := (h/(c.heads/c.shared)*c.context+row)*c.size, 0.
		for e := range c.size {
			score += float64(q[(n*c.heads+h)*c.size+e]) * float64(keys[at+e])
		}
		weight := math.Exp(3 * math.Tanh(score/math.Sqrt(float64(c.size))/3))
		total += weight
		for e := range c.size {
			out[e] += weight * float64(values[at+e])
		}
	}
	for e := range out {
		out[e] /= total
	}
	return out
}

// Attention reads no rows but those of the window, with the cache shorter than the window,
// as long, and longer.
func TestWindow(t *testing.T) {
	gpu, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []windowCase{
		{4, 2, 16, 1, 6, 64, 1}, {4, 2, 16, 1, 6, 64, 6}, {4, 2, 16, 1, 6, 64, 41}, {3, 1, 12, 1, 20, 64, 64},
		{5, 1, 32, 8, 6, 64, 8}, {5, 1, 32, 8, 6, 64, 40}, {2, 2, 16, 5, 3, 32, 32},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			c.check(t, interp.Options{})
			c.check(t, interp.Options{Target: gpu, Debug: true})
		})
	}
}
