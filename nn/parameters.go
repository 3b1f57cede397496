package nn

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// Parameters is a tree of the named values of a model. Layers register what they
// own when they are made:
//
//	p := nn.NewParameters(g)
//	first := layer.NewLinear(p.In("first"), 784, 128)  // first.weight, first.bias
//	second := layer.NewLinear(p.In("second"), 128, 10)
//
// A name is the path of scopes joined by dots; it is also the name of the buffer
// in the graph and of the value in a checkpoint. Order is that of registration.
// Two graphs that register the same names can share their memory
// (tensor.Compile), as a training step and an evaluation do.
type Parameters struct {
	tree   *tree
	prefix string
}

// tree is what all scopes of a model share.
type tree struct {
	graph    *tensor.Graph
	list     []Parameter
	known    map[string]bool
	training bool
	counter  *tensor.Tensor // u32 [1]: differs in every step
	draws    int            // random decisions so far, see Draw
	compute  ir.DType       // of matrix products, Void: no rounding
}

// Parameter is a named value of a model: a buffer of its graph.
type Parameter struct {
	Name    string
	Tensor  *tensor.Tensor
	Shape   []int
	Init    Init
	Trained bool // false: state that layers keep themselves, such as running means
}

// NewParameters starts an empty tree on a graph. Layers behave as they do in
// evaluation until Train is called.
func NewParameters(g *tensor.Graph) *Parameters {
	return &Parameters{tree: &tree{graph: g, known: make(map[string]bool)}}
}

// Graph is the graph that the values belong to.
func (p *Parameters) Graph() *tensor.Graph { return p.tree.graph }

// In is the scope of this name below p.
func (p *Parameters) In(name string) *Parameters {
	return &Parameters{tree: p.tree, prefix: p.path(name)}
}

func (p *Parameters) path(name string) string {
	if p.prefix == "" {
		return name
	}
	return p.prefix + "." + name
}

// Weight registers a trained value (f32) with its initial distribution.
func (p *Parameters) Weight(name string, init Init, shape ...int) *tensor.Tensor {
	return p.add(Parameter{Name: name, Shape: shape, Init: init, Trained: true}, ir.F32)
}

// State registers a value that is kept but not trained.
func (p *Parameters) State(name string, dtype ir.DType, init Init, shape ...int) *tensor.Tensor {
	return p.add(Parameter{Name: name, Shape: shape, Init: init}, dtype)
}

func (p *Parameters) add(v Parameter, dtype ir.DType) *tensor.Tensor {
	v.Name = p.path(v.Name)
	v.Shape = slices.Clone(v.Shape)
	if p.tree.known[v.Name] {
		return p.tree.graph.Fail("parameter", "%q is registered twice", v.Name)
	}
	p.tree.known[v.Name] = true
	v.Tensor = p.tree.graph.Input(v.Name, dtype, v.Shape...)
	p.tree.list = append(p.tree.list, v)
	return v.Tensor
}

// All lists every value of the model, whatever scope p is.
func (p *Parameters) All() []Parameter { return slices.Clone(p.tree.list) }

// Trained lists the values that an optimiser changes.
func (p *Parameters) Trained() []Parameter {
	var list []Parameter
	for _, v := range p.tree.list {
		if v.Trained {
			list = append(list, v)
		}
	}
	return list
}

// Count is the number of trained scalars.
func (p *Parameters) Count() int {
	count := 0
	for _, v := range p.Trained() {
		n := lists.Product(v.Shape)
		count += n
	}
	return count
}

// Train makes layers behave as they do in training: dropout drops, batch norms
// use the batch's own statistics and keep running ones. counter (u32 [1]) must
// differ in every step; the same counter draws the same.
func (p *Parameters) Train(counter *tensor.Tensor) {
	p.tree.training, p.tree.counter = true, counter
}

// Training reports whether Train was called.
func (p *Parameters) Training() bool { return p.tree.training }

// Draw gives random bits (u32) of a shape for training: a pure function of the
// step's counter, the order of calls, and the element, so that the backward pass
// sees the same bits without storing them.
func (p *Parameters) Draw(shape ...int) *tensor.Tensor {
	t := p.tree
	if t.counter == nil {
		return t.graph.Fail("draw", "random bits without a counter: call Train first")
	}
	elements := lists.Product(shape)
	t.draws++
	site := t.graph.Scalar(ir.U32, float64(t.draws))
	seed := t.counter.Rng(site) // [1]: another stream for each step and call
	return seed.Rng(t.graph.Iota(ir.U32, t.graph.Dims(elements)[0])).Reshape(shape...)
}

// Compute makes layers round the operands of their matrix products to a dtype
// (F16 or BF16); sums and master weights stay f32. Gradients on their way
// through such an operand are rounded too, so F16 wants loss scaling.
func (p *Parameters) Compute(dtype ir.DType) { p.tree.compute = dtype }

// Operand rounds an operand of a matrix product as Compute says.
func (p *Parameters) Operand(x *tensor.Tensor) *tensor.Tensor {
	if p.tree.compute == ir.Void || p.tree.compute == x.DType() {
		return x
	}
	return x.Cast(p.tree.compute).Cast(x.DType())
}
