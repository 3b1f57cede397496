package grad_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/grad"
	_ "tgc/internal/rarecollection"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

type list = []*tensor.Tensor

// Where no differentiable path exists the result is nil.
func TestNoPath(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 3)
	index := g.Input("i", ir.I32, 3)
	zero := g.Scalar(ir.F32, 0)
	for name, y := range map[string]*tensor.Tensor{
		"another input": g.Input("y", ir.F32, 3),
		"detached":      x.Mul(x).Detach(),
		"rounded":       x.Floor(),
		"an integer":    x.Cast(ir.I32).Cast(ir.F32),
		"its bits":      x.Bitcast(ir.I32).Bitcast(ir.F32),
		"a condition":   x.Lt(zero).Where(g.Scalar(ir.F32, 1), zero),
		"an index":      g.Input("table", ir.F32, 9).Gather(0, x.Cast(ir.I32).Add(index)),
		"packed values": g.Packed("w", "Q8_0", 32),
	} {
		if d := grad.Of(list{y}, nil, list{x}); len(d) != 1 || d[0] != nil {
			t.Errorf("%s: got %v, want nil", name, d)
		}
	}
	if g.Err() != nil {
		t.Error(g.Err())
	}
}

// What Of cannot do is recorded in the graph, with the caller's line.
func TestErrors(t *testing.T) {
	other := tensor.NewGraph().Input("x", ir.F32, 2)
	for name, c := range map[string]struct {
		call func(x *tensor.Tensor) list
		want string
	}{
		"cotangent's shape": {func(x *tensor.Tensor) list { return grad.Of(list{x}, list{x.Sum()}, list{x}) }, "cotangent 0 is f32[]; want f32[2]"},
		"cotangent's dtype": {func(x *tensor.Tensor) list { return grad.Of(list{x}, list{x.Cast(ir.F64)}, list{x}) }, "cotangent 0 is f64[2]"},
		"cotangents":        {func(x *tensor.Tensor) list { return grad.Of(list{x}, list{nil, nil}, list{x}) }, "2 cotangents for 1 outputs"},
		"integer input":     {func(x *tensor.Tensor) list { return grad.Of(list{x}, nil, list{x.Cast(ir.I32)}) }, "input 0 is i32[2]; want a float"},
		"integer output":    {func(x *tensor.Tensor) list { return grad.Of(list{x.Cast(ir.I32)}, nil, list{x}) }, "output 0 is i32[2]; want a float"},
		"another graph":     {func(x *tensor.Tensor) list { return grad.Of(list{x}, nil, list{x, other}) }, "input 1 is f32[2] of another graph"},
		"earlier error":     {func(x *tensor.Tensor) list { return grad.Of(list{x.Sum(7)}, nil, list{x}) }, "Sum: axes"},
	} {
		g := tensor.NewGraph()
		results := c.call(g.Input("x", ir.F32, 2))
		g.Output("y", results[0].Neg())
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "of_test.go:") {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
	if d := grad.Of(nil, nil, list{other}); d[0] != nil {
		t.Error("no outputs: want nil")
	}
}

// Adjoints of outputs that depend on each other add up, as do repeated outputs.
func TestSeveralOutputs(t *testing.T) {
	f := function{shapes: [][]int{{3}}, build: func(x list) *tensor.Tensor {
		square := x[0].Mul(x[0])
		cube := square.Mul(x[0])
		return grad.Of(list{square, cube, square}, list{nil, x[0], nil}, list{x[0]})[0]
	}}
	p := f.sample(1)
	got, err := p.eval(p.inputs, func(x list) list { return list{f.build(x)} })
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range p.inputs[0] {
		if want := 4*x + 3*x*x*x; !near(got[0][i], want) {
			t.Errorf("at %v: got %v, want %v", x, got[0][i], want)
		}
	}
}

// An intermediate result is an input like others, and paths go on through it.
func TestIntermediateInput(t *testing.T) {
	p := function{shapes: [][]int{{2}}, build: func(x list) *tensor.Tensor { return x[0] }}.sample(3)
	got, err := p.eval(p.inputs, func(x list) list {
		h := x[0].Mul(x[0])
		return grad.Of(list{h.Mul(h)}, nil, list{h, x[0]})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range p.inputs[0] {
		if !near(got[0][i], 2*x*x) || !near(got[1][i], 4*x*x*x) {
			t.Errorf("at %v: got %v and %v", x, got[0][i], got[1][i])
		}
	}
}

// Only nodes on a path are touched: what else the outputs read adds nothing.
func TestOnlyPathsAreVisited(t *testing.T) {
	nodes := func(depth int) int {
		g := tensor.NewGraph()
		x, side := g.Input("x", ir.F32, 4), g.Input("side", ir.F32, 4)
		for range depth {
			side = side.Sin().Mul(side)
		}
		y := x.Mul(side).Sum()
		before := g.Arena().Len()
		grad.Of(list{y}, nil, list{x})
		return g.Arena().Len() - before
	}
	if short, long := nodes(1), nodes(100); short != long {
		t.Errorf("%d nodes beside a side branch of 1, %d beside one of 100", short, long)
	}
}

// A chain as long as an unrolled recurrence: neither recursion nor quadratic time.
func TestLongChain(t *testing.T) {
	const depth = 20_000
	g := tensor.NewGraph()
	x := g.Input("x", ir.F64, 2)
	y := x
	for i := range depth {
		y = y.AddScalar(1 / float64(i+1)).Neg()
	}
	d := grad.Of(list{y}, nil, list{x})[0]
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	if n := len(ir.Toposort(d.Node())); n > depth+10 {
		t.Errorf("%d nodes in the gradient of %d", n, depth)
	}
}

// The same graph gives the same gradient in another process: text is compared,
// for pointers and map order differ between two builds.
func TestDeterministic(t *testing.T) {
	text := func() string {
		g := tensor.NewGraph()
		x, w := g.Input("x", ir.F32, 3, 4), g.Input("w", ir.F32, 5, 4)
		h := x.Linear(w).Softmax(1)
		y := h.Mul(h.Exp()).Add(x.Sum(1).Unsqueeze(1))
		for i, d := range grad.Of(list{y, h}, nil, list{x, w, h}) {
			g.Output(string(rune('a'+i)), d)
		}
		sink, err := g.Sink()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := ir.Print(&b, sink); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := text()
	for range 20 {
		if got := text(); got != first {
			t.Fatalf("got\n%s\nwant\n%s", got, first)
		}
	}
}

// Ties: Maximum and Minimum give half to each of equal values, Max and Min
// share evenly, Abs has derivative 0 at 0.
func TestTies(t *testing.T) {
	for name, c := range map[string]struct {
		inputs [][]float64
		build  func(x list) *tensor.Tensor
		want   [][]float64
	}{
		"maximum": {[][]float64{{1, 2, 3}, {2, 2, 2}}, func(x list) *tensor.Tensor { return x[0].Maximum(x[1]) }, [][]float64{{0, 0.5, 1}, {1, 0.5, 0}}},
		"minimum": {[][]float64{{1, 2, 3}, {2, 2, 2}}, func(x list) *tensor.Tensor { return x[0].Minimum(x[1]) }, [][]float64{{1, 0.5, 0}, {0, 0.5, 1}}},
		"max":     {[][]float64{{3, 1, 3}}, func(x list) *tensor.Tensor { return x[0].Max() }, [][]float64{{0.5, 0, 0.5}}},
		"min":     {[][]float64{{1, 1, 1}}, func(x list) *tensor.Tensor { return x[0].Min() }, [][]float64{{1. / 3, 1. / 3, 1. / 3}}},
		"abs":     {[][]float64{{-2, 0, 2}}, func(x list) *tensor.Tensor { return x[0].Abs() }, [][]float64{{-1, 0, 1}}},
		"cast":    {[][]float64{{1, 2, 3}}, func(x list) *tensor.Tensor { return x[0].Mul(x[0]).Cast(ir.F32).Cast(ir.F64) }, [][]float64{{2, 4, 6}}},
		"zeros":   {[][]float64{{2, 0, 3}}, func(x list) *tensor.Tensor { return x[0].Prod() }, [][]float64{{0, 6, 0}}},
	} {
		f := function{build: c.build}
		for range c.inputs {
			f.shapes = append(f.shapes, []int{3})
		}
		p := &program{function: f, inputs: c.inputs}
		got, err := p.eval(c.inputs, func(x list) list { return grad.Of(list{c.build(x)}, nil, x) })
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.want {
			if !slices.Equal(got[i], c.want[i]) {
				t.Errorf("%s: gradient %d is %v, want %v", name, i, got[i], c.want[i])
			}
		}
	}
}

// Symbolic sizes: the gradient holds for every one of them.
func TestSymbolicSizes(t *testing.T) {
	g := tensor.NewGraph()
	n := g.Var("n", 1, 6)
	x, w := g.Input("x", ir.F64, 6, 4), g.Input("w", ir.F64, 3, 4)
	rows := x.Slice(0, g.Dims(0)[0], n).Linear(w).Softmax(1)
	y := rows.Mul(rows).MaxKeep(1).Prod(0)
	for i, d := range grad.Of(list{y}, nil, list{x, w}) {
		g.Output(fmt.Sprint("d", i), d)
	}
	g.Output("y", y)
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.VerifyTensor(sink); err != nil {
		t.Fatal(err)
	}
	values := [][]float64{make([]float64, 24), make([]float64, 12)}
	for _, list := range values {
		for k := range list {
			list[k] = math.Sin(float64(3 * k))
		}
	}
	for size := int64(1); size <= 6; size++ {
		run := func(values [][]float64) map[int64]*interp.Array {
			in := interp.TensorInputs{Vars: map[string]int64{"n": size}, Buffers: make(map[int64]*interp.Array)}
			for _, b := range g.Buffers() {
				in.Buffers[b.ID] = interp.NewArray(b.DType, sizes(b.Shape)...)
			}
			in.Buffers[0], in.Buffers[1] = arrayOf([]int{6, 4}, values[0]), arrayOf([]int{3, 4}, values[1])
			got, err := interp.EvalTensor(t.Context(), sink, in)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		got := run(values)
		for i, list := range values {
			for k := range list {
				const h = 1e-5
				list[k] += h
				up := run(values)[4].Data[0].F
				list[k] -= 2 * h
				down := run(values)[4].Data[0].F
				list[k] += h
				if d := got[int64(2+i)].Data[k].F; math.Abs(d-(up-down)/(2*h)) > 1e-8 {
					t.Errorf("n = %d: gradient %d element %d is %v, finite differences %v", size, i, k, d, (up-down)/(2*h))
				}
			}
		}
	}
}
