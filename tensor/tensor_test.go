package tensor_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

func Example() {
	ctx := context.Background()
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 2, 3)
	g.Output("sum", x.MulScalar(10).Sum(1))

	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	if err := tensor.Set(ctx, f, "x", []float32{1, 2, 3, 4, 5, 6}); err != nil {
		fmt.Println(err)
		return
	}
	if err := f.Run(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	sum, err := tensor.Get[float32](ctx, f, "sum")
	fmt.Println(sum, err)
	// Output: [60 150] <nil>
}

// A graph keeps the first mistake, with op, shapes and the caller's line, and
// reports it in the end; what is built on a bad tensor does no harm.
func TestGraphKeepsFirstError(t *testing.T) {
	for name, c := range map[string]struct {
		build func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor
		want  []string
	}{
		"broadcast": {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Add(g.Input("y", ir.F32, 5)) }, []string{"add", "[2 3]", "[5]"}},
		"dtype": {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return g.Input("y", ir.U64, 3).Mul(x.Cast(ir.I32))
		}, []string{"mul", "u64[3]", "i32[2 3]"}},
		"no bits": {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.And(x) }, []string{"and", "f32[2 3]", "integers"}},
		"reshape": {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Reshape(4, 2) }, []string{"reshape", "[2 3]", "[4 2]"}},
		"hole":    {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Reshape(-1, 4) }, []string{"reshape", "-1"}},
		"permute": {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Permute(0, 0) }, []string{"permute", "[0 0]"}},
		"axis":    {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Sum(2) }, []string{"Sum: axes [2]", "[2]"}},
		"matmul":  {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x) }, []string{"matmul", "[2 3]"}},
		"linear":  {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Linear(g.Input("w", ir.F32, 4, 2)) }, []string{"linear", "[4 2]"}},
		"slice":   {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.SliceInts(1, 2, 2) }, []string{"slice", "2..4"}},
		"gather":  {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Gather(0, x) }, []string{"gather", "integers"}},
		"assign":  {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.AddScalar(1).Assign(x) }, []string{"assign", "buffer"}},
		"table":   {func(g *tensor.Graph, _ *tensor.Tensor) *tensor.Tensor { return g.Table(ir.F32, []float64{1, 2}, 3) }, []string{"table", "2 values"}},
		"where":   {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Where(x, x) }, []string{"where", "bool"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			y := c.build(g, g.Input("x", ir.F32, 2, 3))
			g.Output("y", y.Neg().Add(y).Sum()) // on a bad tensor: no panic
			if _, err := g.Sink(); err == nil {
				t.Fatal("no error")
			} else {
				for _, part := range append(c.want, "tensor_test.go:") {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
			}
		})
	}
}

// run computes one output on the interpreter.
func run(t *testing.T, build func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor, shape []int, values []float32) []float32 {
	t.Helper()
	ctx := t.Context()
	g := tensor.NewGraph()
	g.Output("y", build(g, g.Input("x", ir.F32, shape...)).Cast(ir.F32))
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(ctx, f, "x", values); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	y, err := tensor.Get[float32](ctx, f, "y")
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func TestOps(t *testing.T) {
	six := []float32{1, -2, 3, 4, 5, -6}
	for name, c := range map[string]struct {
		build func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor
		want  []float32
	}{
		"sum of rows":  {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Sum(1) }, []float32{2, 3}},
		"max of all":   {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Max() }, []float32{5}},
		"min, columns": {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Min(0) }, []float32{1, -2, -6}},
		"product":      {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Prod(1) }, []float32{-6, -120}},
		"transpose":    {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1) }, []float32{1, 4, -2, 5, 3, -6}},
		"flip":         {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Flip(1) }, []float32{3, -2, 1, -6, 5, 4}},
		"pad":          {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Pad(0, 0, 1) }, []float32{1, -2, 3, 4, 5, -6, 0, 0, 0}},
		"cat":          {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Cat(1, x.SliceInts(1, 1, 1)) }, []float32{1, -2, 3, -2, 4, 5, -6, 5}},
		"slice":        {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.SliceInts(1, 1, 2) }, []float32{-2, 3, 5, -6}},
		"cumsum":       {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Cumsum(1) }, []float32{1, -1, 2, 4, 9, 3}},
		"argmax":       {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Argmax(1) }, []float32{2, 1}},
		"relu":         {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Maximum(g.Scalar(ir.F32, 0)) }, []float32{1, 0, 3, 4, 5, 0}},
		"where": {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Lt(g.Scalar(ir.F32, 0)).Where(x.Neg(), x)
		}, []float32{1, 2, 3, 4, 5, 6}},
		"matmul": {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x.Transpose(0, 1)) }, []float32{14, -24, -24, 77}},
		"gather": {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Gather(1, g.Table(ir.I32, []float64{2, 0, 9}, 3))
		}, []float32{3, 1, 3, -6, 4, -6}},
		"iota":    {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Add(g.Iota(ir.F32, g.Dims(3)[0])) }, []float32{1, -1, 5, 4, 6, -4}},
		"floor":   {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(0.5).Floor() }, []float32{0, -1, 1, 2, 2, -3}},
		"bitcast": {func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return x.Bitcast(ir.U32).Bitcast(ir.F32) }, six},
		"assign": {func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return g.Input("b", ir.F32, 2, 3).Assign(x).MulScalar(2)
		}, []float32{2, -4, 6, 8, 10, -12}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := run(t, c.build, []int{2, 3}, six); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestFunctionsOfFloats(t *testing.T) {
	values := []float32{-4, -1, -0.25, 0, 0.25, 1, 3, 8}
	for name, c := range map[string]struct {
		build func(x *tensor.Tensor) *tensor.Tensor
		want  func(x float64) float64
	}{
		"exp":     {(*tensor.Tensor).Exp, math.Exp},
		"sin":     {(*tensor.Tensor).Sin, math.Sin},
		"cos":     {(*tensor.Tensor).Cos, math.Cos},
		"tanh":    {(*tensor.Tensor).Tanh, math.Tanh},
		"sigmoid": {(*tensor.Tensor).Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		"silu":    {(*tensor.Tensor).Silu, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
		"gelu": {(*tensor.Tensor).GeluTanh, func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}},
		"log of squares": {func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(x).AddScalar(1).Log() }, func(x float64) float64 { return math.Log(x*x + 1) }},
		"softmax":        {func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(0) }, softmaxOf(values)},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return c.build(x) }, []int{len(values)}, values)
			for i, v := range values {
				if want := c.want(float64(v)); math.Abs(float64(got[i])-want) > 3e-6*max(1, math.Abs(want)) {
					t.Errorf("at %v: got %v, want %v", v, got[i], want)
				}
			}
		})
	}
}

func softmaxOf(values []float32) func(float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Exp(float64(v))
	}
	return func(x float64) float64 { return math.Exp(x) / sum }
}

// Shapes and extents print as people write them.
func TestShapesPrint(t *testing.T) {
	g := tensor.NewGraph()
	n := g.Var("n", 1, 8)
	x := g.InputDims("x", ir.F32, n, g.Dims(3)[0])
	y := g.Input("y", ir.F32, 2, 3)
	for got, want := range map[string]string{
		fmt.Sprint(y.Shape(), y.Dim(1), y.Shape()[0]): "[2 3] 3 2",
		fmt.Sprint(x.Shape(), x.Dim(0)):               "[n 3] n",
		fmt.Sprint(g.Arena().Mul(n, g.Dims(3)[0])):    "mul(n 3)",
		fmt.Sprint(y.Node(), x):                       "buffer f32 f32[n 3]",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if sizes, ok := y.Shape().Ints(); !ok || len(sizes) != 2 || sizes[1] != 3 {
		t.Errorf("%v, %v", sizes, ok)
	}
	if _, ok := x.Shape().Ints(); ok {
		t.Error("a symbolic shape has numbers")
	}
}
