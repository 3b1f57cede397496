package testkit

import (
	"math"
	"math/rand/v2"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// ZooEntry is a fixed small graph whose kernels tests look at.
type ZooEntry struct {
	Name  string
	Large bool // takes a tenth of a second and more in kernel form
	Build func(seed uint64) (*Case, error)
}

// Zoo lists the fixed graphs.
func Zoo() []ZooEntry {
	rows := []struct {
		name  string
		build func(z *Fixture)
	}{
		{"softmax", zooSoftmax},
		{"layernorm", zooLayerNorm},
		{"rmsnorm matvec Q6_K", zooNormedMatvec},
		{"gate up Q4_K", zooGateUp},
		{"mlp", zooMLP},
		{"attention", zooAttention},
		{"embedding", zooEmbedding},
		{"experts", zooExperts},
		{"cache", zooCache},
		{"update", zooUpdate},
		{"decode step", DecodeStep},
	}
	var out []ZooEntry
	for _, r := range rows {
		out = append(out, ZooEntry{Name: r.name, Large: r.name == "decode step", Build: func(seed uint64) (*Case, error) { return BuildFixed(r.build, seed) }})
	}
	return out
}

// Rounded lists graphs that single rules are for, most of them in the numeric
// modes. They are no part of the zoo: rounding swallows small mistakes, so that
// mutants of what stands in front of it would survive.
func Rounded() []ZooEntry {
	entry := func(name string, build func(z *Fixture)) ZooEntry {
		return ZooEntry{Name: name, Build: func(seed uint64) (*Case, error) { return BuildFixed(build, seed) }}
	}
	return []ZooEntry{
		entry("cache of normed heads", zooNormedCache),
		entry("int8 activations Q6_K", zooInt8), entry("i16 activations Q4_K", zooDigits), entry("f16 activations Q4_0", zooHalves),
		entry("f16 product", zooHalfProduct), entry("cross entropy", zooCrossEntropy),
		entry("tokens Q8_0", zooTokens), entry("tokens Q4_1", zooOffsets), entry("convolution", zooConvolution), entry("exchanges", zooExchanges),
		entry("merged heads", zooMergedHeads),
	}
}

// zooEpsilon is large enough to matter, so that losing it is seen.
const zooEpsilon = 0.02

// Fixture is a graph in the making with contents from a fixed seed.
type Fixture struct {
	G    *tensor.Graph
	c    *Case
	ints map[string][2]int64 // bounds of integer inputs
	seed uint64
}

// BuildFixed builds a graph and fills its buffers from a seed.
func BuildFixed(build func(z *Fixture), seed uint64) (*Case, error) {
	g := tensor.NewGraph()
	c := &Case{Graph: g, Buffers: make(map[int64]*interp.KernelBuffer), Vars: make(map[string]int64)}
	z := &Fixture{G: g, c: c, ints: make(map[string][2]int64), seed: seed}
	build(z)
	rng := rand.New(rand.NewPCG(seed, 4))
	for _, info := range g.Buffers() {
		limit := z.ints[info.Name]
		if err := c.Fill(info, rng, limit[0], limit[1]); err != nil {
			return nil, err
		}
	}
	return c, g.Err()
}

func (z *Fixture) input(name string, shape ...int) *tensor.Tensor {
	return z.G.Input(name, ir.F32, shape...)
}

// integers is an i32 input in 0..hi.
func (z *Fixture) integers(name string, hi int64, shape ...int) *tensor.Tensor {
	z.ints[name] = [2]int64{0, hi}
	return z.G.Input(name, ir.I32, shape...)
}

// Activations in the numeric modes: integers in groups, digits, halves. What is
// rounded is an input, so that no other order of a sum rounds to another integer.

func zooInt8(z *Fixture) {
	z.G.Output("y", nn.Int8.Linear(z.input("x", 3, 256), z.G.Packed("w", "Q6_K", 48, 256)))
}

func zooDigits(z *Fixture) {
	z.G.Output("y", nn.Int16.Linear(z.input("x", 256), z.G.Packed("w", "Q4_K", 48, 256)))
}

// The row is longer than what a kernel stages: it is stored.
func zooHalves(z *Fixture) {
	x := z.input("x", 2, 4608)
	x = x.Sin().Exp().Mul(x.Sigmoid().Tanh())
	z.G.Output("y", nn.Half.Linear(x, z.G.Packed("w", "Q4_0", 8, 4608)))
}

// A sum in f32 of a product of halves is stored as halves.
func zooHalfProduct(z *Fixture) {
	z.G.Output("y", z.G.Input("x", ir.F16, 4, 16).MatMul(z.G.Input("w", ir.F16, 16, 8)))
}

// zooTokens has tokens enough for tiles of a CPU.
func zooTokens(z *Fixture) {
	z.G.Output("y", z.input("x", 9, 64).Tanh().Linear(z.G.Packed("w", "Q8_0", 16, 64)))
}

// zooOffsets has weights with an offset for each group.
func zooOffsets(z *Fixture) {
	z.G.Output("y", z.input("x", 9, 64).Tanh().Linear(z.G.Packed("w", "Q4_1", 16, 64)))
}

// zooConvolution is a product whose rows are positions: 16, with a sum over channels and window.
func zooConvolution(z *Fixture) {
	z.G.Output("y", z.input("x", 1, 3, 6, 6).Conv(z.input("w", 4, 3, 3, 3), nil, tensor.ConvOptions{}))
}

// zooMergedHeads stores what heads weigh as one axis.
func zooMergedHeads(z *Fixture) {
	z.G.Output("y", z.input("x", 3, 5, 7).MatMul(z.input("w", 3, 7, 8)).Transpose(0, 1).Reshape(5, 24))
}

// A network combines elements whose positions differ in a digit, one digit after the other.
func zooExchanges(z *Fixture) {
	x := z.input("x", 3, 2, 2, 2, 8)
	for _, axis := range []int{1, 2, 3, 1} {
		x = x.Maximum(x.Flip(axis)).Sub(x.MulScalar(zooEpsilon))
	}
	z.G.Output("y", x)
}

// Losses need the sum of the exponentials, their derivative the maximum too.
func zooCrossEntropy(z *Fixture) {
	x := z.input("x", 4, 16).Linear(z.input("w", 8, 16))
	loss := x.CrossEntropy(z.integers("class", 7, 4), tensor.CrossEntropyOptions{})
	z.G.Output("loss", loss)
	z.G.Output("gradient", x.Softmax(-1))
}

// zooSoftmax has rows whose scores lie farther and farther apart: of the last ones
// exponentials overflow without the largest score.
func zooSoftmax(z *Fixture) {
	rows := z.G.Iota(ir.I32, z.G.Dims(16)[0]).Reshape(16, 1).Cast(ir.F32)
	z.G.Output("y", z.input("x", 16, 20).Mul(rows.MulScalar(1.5).Exp2()).Softmax(-1))
}

func zooLayerNorm(z *Fixture) {
	z.G.Output("y", nn.LayerNorm(z.input("x", 2, 48), z.input("w", 48), z.input("b", 48), zooEpsilon))
}

func zooNormedMatvec(z *Fixture) {
	x := nn.RMSNorm(z.input("x", 1, 512), z.input("g", 512), zooEpsilon)
	z.G.Output("y", x.Linear(z.G.Packed("w", "Q6_K", 8, 512)))
}

func zooGateUp(z *Fixture) {
	x := nn.RMSNorm(z.input("x", 1, 256), z.input("g", 256), zooEpsilon)
	z.G.Output("y", x.Linear(z.G.Packed("gate", "Q4_K", 8, 256)).Silu().Mul(x.Linear(z.G.Packed("up", "Q4_K", 8, 256))))
}

func zooMLP(z *Fixture) {
	x := z.input("x", 4, 16)
	h := x.Linear(z.input("w1", 24, 16)).Add(z.input("b1", 24)).GeluTanh()
	z.G.Output("y", h.Linear(z.input("w2", 16, 24)).Add(z.input("b2", 16)).Add(x))
}

func zooAttention(z *Fixture) {
	q := z.input("q", 1, 2, 4, 8)
	k, v := z.input("k", 1, 2, 12, 8), z.input("v", 1, 2, 12, 8)
	at := z.integers("pos", 0, 1).Unsqueeze(1).Add(z.G.Iota(ir.I32, z.G.Dims(2)[0]).AddScalar(10))
	z.G.Output("y", nn.Attention(q, k, v, at)) // positions 10 and 11 of 12: the mask and the last row matter
}

func zooEmbedding(z *Fixture) {
	z.G.Output("y", z.G.Packed("w", "Q8_0", 10, 64).Gather(0, z.integers("tokens", 9, 3)))
}

func zooExperts(z *Fixture) {
	experts := nn.Experts{
		Router: z.input("router", 4, 32), Gate: z.G.Packed("gate", "Q8_0", 4, 32, 32),
		Up: z.G.Packed("up", "Q8_0", 4, 32, 32), Down: z.G.Packed("down", "Q8_0", 4, 32, 32), Used: 2,
	}
	z.G.Output("y", experts.Apply(z.input("x", 1, 1, 32)))
}

// zooCache stores two rotated rows at a position and attends to the rows so
// far.
func zooCache(z *Fixture) {
	g := z.G
	pos := z.integers("pos", 0, 1)
	known := 12 + int64(z.seed%8) // more than attention takes at once, and any number beyond
	z.ints["pos"] = [2]int64{known - 2, known - 2}
	length := g.Var("length", 1, StepContext)
	z.c.Vars["length"] = known
	at := pos.Unsqueeze(1).Add(g.Iota(ir.I32, g.Dims(2)[0]))
	rotation := nn.NewRotation(at, []float64{1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003})
	y := nn.RMSNorm(z.input("x", 1, 2, 24), z.input("g", 24), zooEpsilon)
	row := func(name string, heads int) *tensor.Tensor {
		return y.Linear(z.input(name, heads*stepHead, 24)).MulScalar(0.3).Reshape(1, 2, heads, stepHead)
	}
	zero := g.Dims(0)[0]
	keys := z.remember("kc", rotation.Apply(row("wk", stepKV), nn.PairHalves), at).Slice(2, zero, length)
	values := z.remember("vc", row("wv", stepKV), at).Slice(2, zero, length)
	g.Output("y", nn.Attention(rotation.Apply(row("wq", stepHeads), nn.PairHalves), keys, values, at))
}

// zooUpdate is the step of an optimiser: the running means of a gradient are
// stored, and a weight is changed by what was stored.
func zooUpdate(z *Fixture) {
	shape := []int{4, 64}
	w, m, v := z.input("w", shape...), z.input("m", shape...), z.input("v", shape...)
	gradient := z.input("g", shape...)
	mean := m.Assign(m.MulScalar(0.9).Add(gradient.MulScalar(0.1)))
	square := v.Assign(v.Abs().MulScalar(0.99).Add(gradient.Mul(gradient).MulScalar(0.01)))
	z.G.Keep(mean)
	z.G.Keep(square)
	z.G.Keep(w.Assign(w.Sub(mean.Div(square.Sqrt().AddScalar(zooEpsilon)))))
}

// zooNormedCache writes one row of keys, each head with a norm of its own, as
// Qwen3 does, and attends to all rows so far.
func zooNormedCache(z *Fixture) {
	g := z.G
	at := z.integers("pos", 3, 1).Unsqueeze(1)
	length := g.Var("length", 1, StepContext)
	z.c.Vars["length"] = 4
	y := nn.RMSNorm(z.input("x", 1, 1, 24), z.input("g", 24), zooEpsilon)
	row := func(name string, heads int) *tensor.Tensor {
		return y.Linear(z.input(name, heads*stepHead, 24)).MulScalar(0.3).Reshape(1, 1, heads, stepHead)
	}
	zero := g.Dims(0)[0]
	keys := z.remember("kc", nn.RMSNorm(row("wk", stepKV), z.input("gk", stepHead), zooEpsilon), at).Slice(2, zero, length)
	values := z.remember("vc", row("wv", stepKV), at).Slice(2, zero, length)
	g.Output("y", nn.Attention(row("wq", stepHeads), keys, values, at))
}

// Sizes of DecodeStep.
const (
	StepContext = 64
	stepWidth   = 256
	stepHeads   = 4
	stepKV      = 2
	stepHead    = 16
)

// DecodeStep is one layer of a language model with everything that mutants are
// aimed at: an embedding, norms, rotary embedding, a cache that is written and
// read, grouped heads, three packed formats, an output matrix.
func DecodeStep(z *Fixture) {
	g := z.G
	pos := z.integers("pos", 3, 1)
	length := g.Var("length", 1, StepContext)
	z.c.Vars["length"] = 6
	x := g.Packed("embd", "Q8_0", 7, stepWidth).Gather(0, z.integers("token", 6, 1, 1))
	at := pos.Unsqueeze(1)
	freq := lists.Make(stepHead/2, func(i int) float64 { return math.Pow(100, -2*float64(i)/stepHead) })
	rotation := nn.NewRotation(at, freq)
	y := nn.RMSNorm(x, z.input("g1", stepWidth), zooEpsilon)
	// Random weights are large: scaled results keep scores and gates in the
	// range where softmax and silu are curved.
	split := func(t *tensor.Tensor, heads int) *tensor.Tensor {
		return t.MulScalar(1.0/256).Reshape(1, 1, heads, stepHead)
	}
	q := rotation.Apply(split(y.Linear(g.Packed("wq", "Q6_K", stepHeads*stepHead, stepWidth)), stepHeads), nn.PairNeighbours)
	k := rotation.Apply(split(y.Linear(g.Packed("wk", "Q4_K", stepKV*stepHead, stepWidth)), stepKV), nn.PairNeighbours)
	v := split(y.Linear(g.Packed("wv", "Q6_K", stepKV*stepHead, stepWidth)), stepKV)
	zero := g.Dims(0)[0]
	keys := z.remember("kc", k, at).Slice(2, zero, length)
	values := z.remember("vc", v, at).Slice(2, zero, length)
	attention := nn.Attention(q, keys, values, at)
	x = x.Add(attention.Linear(z.input("wo", stepWidth, stepHeads*stepHead)).MulScalar(0.1))
	y = nn.RMSNorm(x, z.input("g2", stepWidth), zooEpsilon)
	h := y.Linear(g.Packed("gate", "Q4_K", 64, stepWidth)).MulScalar(0.01).Silu().Mul(y.Linear(g.Packed("up", "Q4_K", 64, stepWidth)))
	x = x.Add(h.Linear(g.Packed("down", "Q4_0", stepWidth, 64)).MulScalar(0.01))
	g.Output("logits", x.Linear(g.Packed("out", "Q6_K", 16, stepWidth)))
}

// remember writes rows [1, T, heads, head] of a cache [1, heads, context, head]
// at positions [1, T].
func (z *Fixture) remember(name string, row, at *tensor.Tensor) *tensor.Tensor {
	cache := z.input(name, 1, stepKV, StepContext, stepHead)
	one := z.G.Dims(1)[0]
	along := func(axis, n int) *tensor.Tensor {
		shape := []int{1, 1, 1, 1}
		shape[axis] = n
		return z.G.Iota(ir.I32, z.G.Dims(n)[0]).Reshape(shape...)
	}
	next := cache.AssignAt(row, along(0, 1), along(2, stepKV), at.ReshapeDims(one, at.Dim(1), one, one), along(3, stepHead))
	z.G.Keep(next)
	return next
}
