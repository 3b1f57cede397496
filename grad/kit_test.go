package grad_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tgc/grad"
	_ "tgc/internal/steadyseed"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// function is a differentiable function under test: f64 inputs of these shapes,
// one result.
type function struct {
	shapes [][]int
	build  func(x []*tensor.Tensor) *tensor.Tensor
	draw   func(r *rand.Rand) float64 // an element of an input; nil: a normal number
}

// program is a function as a graph with one input more, the cotangent of the
// result, and its inputs' values.
type program struct {
	function
	inputs [][]float64
}

// sample draws inputs and a cotangent.
func (f function) sample(seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := f.draw
	if draw == nil {
		draw = func(r *rand.Rand) float64 { return r.NormFloat64() }
	}
	p := &program{function: f}
	for _, shape := range f.shapes {
		p.inputs = append(p.inputs, drawn(r, shape, draw))
	}
	result := f.result()
	p.inputs = append(p.inputs, drawn(r, result, func(r *rand.Rand) float64 { return r.NormFloat64() }))
	p.shapes = append(p.shapes[:len(p.shapes):len(p.shapes)], result)
	return p
}

func drawn(r *rand.Rand, shape []int, draw func(r *rand.Rand) float64) []float64 {
	values := make([]float64, count(shape))
	for i := range values {
		values[i] = draw(r)
	}
	return values
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// result is the shape of the function's result.
func (f function) result() []int {
	g := tensor.NewGraph()
	return extents(f.build(f.declare(g, f.shapes)))
}

func extents(t *tensor.Tensor) []int {
	shape := make([]int, t.Rank())
	for k := range shape {
		shape[k] = t.Extent(k)
	}
	return shape
}

func (f function) declare(g *tensor.Graph, shapes [][]int) []*tensor.Tensor {
	x := make([]*tensor.Tensor, len(shapes))
	for i, shape := range shapes {
		x[i] = g.Input(fmt.Sprintf("x%d", i), ir.F64, shape...)
	}
	return x
}

// objective is the sum of result*cotangent, the scalar that is differentiated.
func (p *program) objective(x []*tensor.Tensor) *tensor.Tensor {
	n := len(p.shapes) - 1
	return p.build(x[:n]).Mul(x[n]).Sum()
}

// eval computes the tensors that build makes of the inputs, in float64.
func (p *program) eval(inputs [][]float64, build func(x []*tensor.Tensor) []*tensor.Tensor) ([][]float64, error) {
	g := tensor.NewGraph()
	var ids []int64
	for i, t := range build(p.declare(g, p.shapes)) {
		if t == nil {
			return nil, fmt.Errorf("result %d is nil", i)
		}
		ids = append(ids, g.Output(fmt.Sprintf("y%d", i), t).ID)
	}
	sink, err := g.Sink()
	if err != nil {
		return nil, err
	}
	if err := ir.VerifyTensor(sink); err != nil {
		return nil, err
	}
	bound := interp.TensorInputs{Buffers: make(map[int64]*interp.Array)}
	for i, b := range g.Buffers() {
		if i < len(inputs) {
			bound.Buffers[b.ID] = arrayOf(p.shapes[i], inputs[i])
		} else {
			bound.Buffers[b.ID] = interp.NewArray(ir.F64, sizes(b.Shape)...)
		}
	}
	got, err := interp.EvalTensor(context.Background(), sink, bound)
	if err != nil {
		return nil, err
	}
	results := make([][]float64, len(ids))
	for i, id := range ids {
		for _, s := range got[id].Data {
			results[i] = append(results[i], s.F)
		}
	}
	return results, nil
}

func sizes(shape []*ir.UOp) []int {
	n := make([]int, len(shape))
	for k, d := range shape {
		v, _ := d.Int()
		n[k] = int(v)
	}
	return n
}

func arrayOf(shape []int, values []float64) *interp.Array {
	a := interp.NewArray(ir.F64, shape...)
	for i, v := range values {
		a.Data[i] = ir.FloatScalar(v)
	}
	return a
}

// gradients are those of the objective by every input but the cotangent.
func (p *program) gradients() ([][]float64, error) {
	return p.eval(p.inputs, func(x []*tensor.Tensor) []*tensor.Tensor {
		n := len(x) - 1
		results := grad.Of([]*tensor.Tensor{p.build(x[:n])}, []*tensor.Tensor{x[n]}, x[:n])
		for i, r := range results {
			if r == nil {
				results[i] = x[i].MulScalar(0)
			}
		}
		return results
	})
}

// differences are the same by central finite differences, fourth order:
// (8(f(h)-f(-h)) - (f(2h)-f(-2h))) / 12h.
func (p *program) differences() ([][]float64, error) {
	const h = 1e-3
	out := make([][]float64, len(p.inputs)-1)
	for i := range out {
		for k := range p.inputs[i] {
			var f [4]float64
			for n, step := range []float64{h, -h, 2 * h, -2 * h} {
				moved := append([][]float64(nil), p.inputs...)
				moved[i] = append([]float64(nil), p.inputs[i]...)
				moved[i][k] += step
				y, err := p.eval(moved, func(x []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{p.objective(x)} })
				if err != nil {
					return nil, err
				}
				f[n] = y[0][0]
			}
			out[i] = append(out[i], (8*(f[0]-f[1])-(f[2]-f[3]))/(12*h))
		}
	}
	return out, nil
}

// check compares the two.
func (f function) check(seed uint64) error {
	p := f.sample(seed)
	got, err := p.gradients()
	if err != nil {
		return err
	}
	want, err := p.differences()
	if err != nil {
		return err
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("gradient %d has %d elements, want %d", i, len(got[i]), len(want[i]))
		}
		for k := range want[i] {
			if !near(got[i][k], want[i][k]) {
				return fmt.Errorf("shapes %v, inputs %v: gradient %d element %d: got %v, finite differences %v", p.shapes, p.inputs, i, k, got[i][k], want[i][k])
			}
		}
	}
	return nil
}

// derivative is the function whose result is the gradient of f by input j, with
// f's cotangent as a last input: checking it checks second derivatives.
func (f function) derivative(j int) function {
	n := len(f.shapes)
	return function{
		shapes: append(f.shapes[:n:n], f.result()),
		draw:   f.draw,
		build: func(x []*tensor.Tensor) *tensor.Tensor {
			d := grad.Of([]*tensor.Tensor{f.build(x[:n])}, []*tensor.Tensor{x[n]}, x[j:j+1])[0]
			if d == nil { // no path: zero, which must be written as a tensor
				return x[j].MulScalar(0)
			}
			return d
		},
	}
}

// near allows what the differences lose: their step's fourth power and the
// rounding of float64 over the step.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*(1+math.Abs(want)) }
