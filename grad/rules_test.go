package grad_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/tensor"

	"pgregory.net/rapid"
)

// apart draws numbers of absolute value 0.3 to 2.3: away from 0, where Recip
// and Abs have no derivative.
func apart(r *rand.Rand) float64 { return math.Copysign(0.3+2*r.Float64(), r.Float64()-0.5) }

// positive draws numbers of 0.3 to 2.3.
func positive(r *rand.Rand) float64 { return 0.3 + 2*r.Float64() }

// few draws -1, 0 and 1.
func few(r *rand.Rand) float64 { return float64(r.IntN(3) - 1) }

// elementwise ops at a random shape: op -> build and domain. A single argument
// sees the shape, all others broadcast.
var elementwise = map[string]struct {
	arity int
	build func(x []*tensor.Tensor) *tensor.Tensor
	draw  func(r *rand.Rand) float64
}{
	"add":   {2, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Add(x[1]) }, nil},
	"sub":   {2, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Sub(x[1]) }, nil},
	"neg":   {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Neg() }, nil},
	"mul":   {2, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[1]) }, nil},
	"fdiv":  {2, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Div(x[1]) }, apart},
	"recip": {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Recip() }, apart},
	"sqrt":  {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Sqrt() }, positive},
	"rsqrt": {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Rsqrt() }, positive},
	"exp2":  {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Exp2() }, nil},
	"log2":  {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Log2() }, positive},
	"sin":   {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Sin() }, nil},
	"abs":   {1, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Abs() }, apart},
	"max":   {2, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Maximum(x[1]) }, nil},
	"min":   {2, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Minimum(x[1]) }, nil},
	"where": {3, func(x []*tensor.Tensor) *tensor.Tensor {
		return x[0].Lt(x[0].Graph().Scalar(ir.F64, 0)).Where(x[1], x[2])
	}, apart},
	"fma": {3, func(x []*tensor.Tensor) *tensor.Tensor {
		g := x[0].Graph()
		a, b, c := x[0].Add(x[1].MulScalar(0)), x[1].Add(x[0].MulScalar(0)), x[2].Add(x[0].MulScalar(0)).Add(x[1].MulScalar(0))
		a, b = a.Add(c.MulScalar(0)), b.Add(c.MulScalar(0))
		return g.Wrap(g.Arena().Make(ir.OpFma, ir.F64, nil, a.Node(), b.Node(), c.Node()))
	}, nil},
}

func TestElementwiseRules(t *testing.T) {
	for name, op := range elementwise {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := function{build: op.build, draw: op.draw}
				full := rapid.SliceOfN(rapid.IntRange(1, 3), 0, 2).Draw(t, "shape")
				for range op.arity {
					shape := append([]int(nil), full...)
					for k := range shape {
						if rapid.IntRange(0, 3).Draw(t, "broadcast") == 0 {
							shape[k] = 1
						}
					}
					f.shapes = append(f.shapes, shape)
				}
				if err := f.check(rapid.Uint64().Draw(t, "contents")); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// second checks a function and its derivatives by every input.
func second(t *testing.T, f function) {
	t.Helper()
	if err := f.check(1); err != nil {
		t.Fatal(err)
	}
	for j := range f.shapes {
		if err := f.derivative(j).check(2); err != nil {
			t.Fatalf("second derivative by %d: %v", j, err)
		}
	}
}

// Second derivatives of every elementwise op.
func TestElementwiseTwice(t *testing.T) {
	for name, op := range elementwise {
		t.Run(name, func(t *testing.T) {
			f := function{build: op.build, draw: op.draw}
			for range op.arity {
				f.shapes = append(f.shapes, []int{3})
			}
			second(t, f)
		})
	}
}

// structural lists ops that move, fold or copy elements.
var structural = map[string]function{
	"copy": {shapes: [][]int{{3}}, build: func(x []*tensor.Tensor) *tensor.Tensor {
		square, g := x[0].Mul(x[0]), x[0].Graph()
		return g.Wrap(g.Arena().Make(ir.OpCopy, ir.F64, ir.IntArg(0), square.Node())).Mul(x[0])
	}},
	"checkpoint":                 {shapes: [][]int{{3}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return grad.Checkpoint(x[0].Mul(x[0])).Mul(x[0]) }},
	"reshape":                    {shapes: [][]int{{2, 6}, {3, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Reshape(3, 4).Mul(x[1]) }},
	"permute":                    {shapes: [][]int{{2, 3, 4}, {4, 2, 3}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Permute(2, 0, 1).Mul(x[1]) }},
	"expand":                     {shapes: [][]int{{2, 1, 3}, {2, 4, 3}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Expand(2, 4, 3).Mul(x[1]) }},
	"pad":                        {shapes: [][]int{{2, 3}, {2, 6}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Pad(1, 1, 2).Mul(x[1]) }},
	"shrink":                     {shapes: [][]int{{2, 5}, {2, 3}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].SliceInts(1, 1, 3).Mul(x[1]) }},
	"flip":                       {shapes: [][]int{{2, 3}, {2, 3}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Flip(0, 1).Mul(x[1]) }},
	"contiguous":                 {shapes: [][]int{{3}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Contiguous().Mul(x[0]) }},
	"sum":                        {shapes: [][]int{{2, 3, 2}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Sum(0, 2) }},
	"amax":                       {shapes: [][]int{{3, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Max(1) }},
	"amin":                       {shapes: [][]int{{3, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Min(0) }},
	"prod":                       {shapes: [][]int{{3, 2, 2}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Prod(0, 2) }},
	"prod of many":               {shapes: [][]int{{2, 19}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Prod(1) }},
	"cumsum":                     {shapes: [][]int{{3, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Cumsum(1) }},
	"cumprod":                    {shapes: [][]int{{2, 19}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Cumprod(1) }},
	"cumprod of columns":         {shapes: [][]int{{5, 2, 2}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Cumprod(0).Mul(x[0]) }},
	"zeros in a running product": {shapes: [][]int{{2, 7}}, draw: few, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Cumprod(1) }},
	"logcumsumexp":               {shapes: [][]int{{2, 18}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].LogCumSumExp(1) }},
	"cummax":                     {shapes: [][]int{{2, 18}}, build: func(x []*tensor.Tensor) *tensor.Tensor { y, _ := x[0].Mul(x[0]).Cummax(1); return y.Mul(y) }},
	"cummin":                     {shapes: [][]int{{6, 2}}, build: func(x []*tensor.Tensor) *tensor.Tensor { y, _ := x[0].Mul(x[0]).Cummin(0); return y.Mul(y) }},
	"unfold":                     {shapes: [][]int{{2, 11, 2}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Unfold(1, 5, 2) }},
	"unfold by one":              {shapes: [][]int{{2, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Unfold(1, 3, 1).Square() }},
	"unfold apart":               {shapes: [][]int{{7}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Unfold(0, 2, 3) }},
	"sort":                       {shapes: [][]int{{2, 5}, {2, 5}}, build: func(x []*tensor.Tensor) *tensor.Tensor { y, _ := x[0].Sort(1, true); return y.Mul(y).Mul(x[1]) }},
	"top":                        {shapes: [][]int{{5, 2}, {3, 2}}, build: func(x []*tensor.Tensor) *tensor.Tensor { y, _ := x[0].TopK(3, 0, true); return y.Mul(y).Mul(x[1]) }},
	"matmul":                     {shapes: [][]int{{2, 3}, {3, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }},
	"softmax":                    {shapes: [][]int{{2, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(1) }},
	"gather": {shapes: [][]int{{3, 4}}, build: func(x []*tensor.Tensor) *tensor.Tensor {
		index := x[0].Graph().Table(ir.I32, []float64{2, 0, 2, 9, -1, 1}, 2, 3)
		return x[0].Mul(x[0]).Gather(1, index)
	}},
	"gather of rows": {shapes: [][]int{{4, 3}}, build: func(x []*tensor.Tensor) *tensor.Tensor {
		return x[0].Mul(x[0]).Gather(0, x[0].Graph().Table(ir.I32, []float64{3, 0, 3}, 3))
	}},
	"zeros in a product": {shapes: [][]int{{2, 4}}, draw: few, build: func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Prod(1) }},
}

// First and second derivatives of structural ops.
func TestStructuralRules(t *testing.T) {
	for name, f := range structural {
		t.Run(name, func(t *testing.T) { second(t, f) })
	}
}

// scatterAdd makes the op itself: no tensor method gives all its coordinates.
func scatterAdd(base, values *tensor.Tensor, coords ...*tensor.Tensor) *tensor.Tensor {
	g := base.Graph()
	src := []*ir.UOp{base.Node(), values.Node()}
	for _, c := range coords {
		src = append(src, c.Node())
	}
	return g.Wrap(g.Arena().Make(ir.OpScatterAdd, base.DType(), nil, src...))
}

func indices(x *tensor.Tensor, values ...float64) *tensor.Tensor {
	return x.Graph().Table(ir.I32, values, len(values))
}

// writing ops: some coordinates are out of range, in SCATTER_ADD some twice.
var writing = map[string]function{
	"scatter_add": {shapes: [][]int{{3, 4}, {5}}, build: func(x list) *tensor.Tensor {
		rows, columns := indices(x[0], 0, 2, 2, 7, 1), indices(x[0], 3, 1, 1, 0, -1)
		return scatterAdd(x[0].Mul(x[0]), x[1].Mul(x[1]), rows, columns)
	}},
	"scatter_add at one point": {shapes: [][]int{{3}, {4}}, build: func(x list) *tensor.Tensor {
		return scatterAdd(x[0].Mul(x[0]), x[1].Mul(x[1]), x[0].Graph().Scalar(ir.I32, 1))
	}},
	"assign": {shapes: [][]int{{3, 4}, {4}}, build: func(x list) *tensor.Tensor {
		next := x[0].AssignAt(x[1].Mul(x[1]), indices(x[0], 0, 2, 2, 7), indices(x[0], 3, 1, 0, 0))
		return next.Mul(next)
	}},
	"assign to all": {shapes: [][]int{{2, 3}, {2, 3}}, build: func(x list) *tensor.Tensor {
		next := x[0].Assign(x[1].Mul(x[1]))
		return next.Mul(next).Mul(x[1])
	}},
}

// First and second derivatives of writing ops.
func TestWritingRules(t *testing.T) {
	for name, f := range writing {
		t.Run(name, func(t *testing.T) { second(t, f) })
	}
}

// Every rule is compared with finite differences by some test above; that of
// CAST with the derivative itself (TestTies): rounding has no smooth differences.
func TestEveryRuleIsSampled(t *testing.T) {
	seen := map[ir.Op]bool{ir.OpCast: true}
	visit := func(f function) {
		g := tensor.NewGraph()
		for _, u := range ir.Toposort(f.build(f.declare(g, f.shapes)).Node()) {
			seen[u.Op] = true
		}
	}
	for _, op := range elementwise {
		f := function{build: op.build}
		for range op.arity {
			f.shapes = append(f.shapes, []int{2})
		}
		visit(f)
	}
	for _, table := range []map[string]function{structural, writing} {
		for _, f := range table {
			visit(f)
		}
	}
	for op := ir.OpConst; int(op) < ir.NumOps; op++ {
		if grad.HasRule(op) && !seen[op] {
			t.Errorf("the rule of %s is sampled by no test", op)
		}
	}
}
