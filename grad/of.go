package grad

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// Gradients are the derivatives of a scalar by inputs, in their order: see Of. One is nil
// where the scalar does not depend on the input.
func Gradients(loss *tensor.Tensor, inputs ...*tensor.Tensor) []*tensor.Tensor {
	if loss != nil && loss.Graph().Err() == nil {
		if shape, constant := loss.Shape().Ints(); !constant || lists.Product(shape) != 1 {
			loss = loss.Graph().Fail("grad", "the loss is %s, want one number: Of takes sums of others", loss)
		}
	}
	return Of([]*tensor.Tensor{loss}, nil, inputs)
}

// Of returns the vector-Jacobian products: results[j] is the derivative of the
// sum over i of sum(outputs[i]*cotangents[i]) by inputs[j], with the shape and
// dtype of inputs[j]. A nil cotangent means ones; others have their output's
// shape and dtype. results[j] is nil where no output depends on inputs[j]
// through differentiable ops: comparisons, integers, rounding, Bitcast, packed
// weights and Detach end a path.
//
// An input may be any float tensor of the graph, intermediate results included;
// paths go through it to others. A graph holds equal expressions once, so the
// derivative by a tensor is that by every tensor of the same expression.
//
// Where a function has no derivative: Abs has 0 at 0; Maximum and Minimum of
// equal values give half to each; Max and Min share evenly among equal extremes;
// Cummax and Cummin give all to the last of them.
//
// Errors (different graphs, a cotangent that does not fit) are recorded in the
// graph of the first output; the results are then bad tensors.
func Of(outputs, cotangents []*tensor.Tensor, inputs []*tensor.Tensor) []*tensor.Tensor {
	g, bad := check(outputs, cotangents, inputs)
	if bad != nil || g == nil {
		return slices.Repeat([]*tensor.Tensor{bad}, len(inputs))
	}
	r := newReverse(g, outputs, inputs)
	for i, out := range outputs {
		if r.active[out.Node()] {
			r.add(out.Node(), seed(out, cotangents, i))
		}
	}
	r.run()
	return lists.Map(inputs, func(in *tensor.Tensor) *tensor.Tensor { return r.adjoint[in.Node()] })
}

// check validates the arguments of Of. The graph is nil when there is no output.
func check(outputs, cotangents, inputs []*tensor.Tensor) (g *tensor.Graph, bad *tensor.Tensor) {
	if len(outputs) == 0 {
		return nil, nil
	}
	if g = outputs[0].Graph(); g == nil {
		g = tensor.NewGraph()
		return g, g.Fail("grad", "output 0 is nil")
	}
	if len(cotangents) > len(outputs) {
		return g, g.Fail("grad", "%d cotangents for %d outputs", len(cotangents), len(outputs))
	}
	for i, out := range outputs {
		if bad = checkFloat(g, "output", i, out); bad != nil {
			return g, bad
		}
	}
	for i, in := range inputs {
		if bad = checkFloat(g, "input", i, in); bad != nil {
			return g, bad
		}
	}
	for i, c := range cotangents {
		if c == nil {
			continue
		}
		if c.Node() == nil || c.Graph() != g || c.DType() != outputs[i].DType() || !slices.Equal(c.Shape(), outputs[i].Shape()) {
			return g, g.Fail("grad", "cotangent %d is %s; want %s of the same graph", i, c, outputs[i])
		}
	}
	return g, nil
}

// checkFloat returns a bad tensor unless t is a float tensor of g.
func checkFloat(g *tensor.Graph, role string, i int, t *tensor.Tensor) *tensor.Tensor {
	switch {
	case t.Node() == nil:
		return g.Fail("grad", "%s %d is the result of an error", role, i)
	case t.Graph() != g:
		return g.Fail("grad", "%s %d is %s of another graph", role, i, t)
	case !t.DType().IsFloat():
		return g.Fail("grad", "%s %d is %s; want a float", role, i, t)
	}
	return nil
}

// seed is the adjoint that output i starts with.
func seed(out *tensor.Tensor, cotangents []*tensor.Tensor, i int) *tensor.Tensor {
	if i < len(cotangents) && cotangents[i] != nil {
		return cotangents[i]
	}
	return filled(out.Graph(), out.DType(), 1, out.Shape())
}

// reverse is one walk from outputs to inputs.
type reverse struct {
	graph    *tensor.Graph
	order    []*ir.UOp                  // below the outputs, sources first
	active   map[*ir.UOp]bool           // an input reaches the node: it is on a path
	adjoint  map[*ir.UOp]*tensor.Tensor // the sum of what has arrived so far
	segments map[*ir.UOp]*segment       // what lies before checkpoints
}

// newReverse finds the nodes on paths from inputs to outputs.
func newReverse(g *tensor.Graph, outputs, inputs []*tensor.Tensor) *reverse {
	r := &reverse{graph: g, active: make(map[*ir.UOp]bool), adjoint: make(map[*ir.UOp]*tensor.Tensor), segments: make(map[*ir.UOp]*segment)}
	roots := lists.Map(outputs, (*tensor.Tensor).Node)
	for _, in := range inputs {
		r.active[in.Node()] = true
	}
	r.order = ir.Toposort(roots...)
	for _, u := range r.order {
		for i, s := range u.Src {
			if r.active[s] && differentiable(u, i) {
				r.active[u] = true
			}
		}
		inputs, _, _ := g.CustomGradient(u)
		for _, in := range inputs {
			r.active[u] = r.active[u] || r.active[in.Node()]
		}
	}
	r.findSegments()
	return r
}

// differentiable reports that gradients flow from u to its source i.
func differentiable(u *ir.UOp, i int) bool {
	by := rules[u.Op].by
	return u.DType.IsFloat() && u.Src[i].DType.IsFloat() && i < len(by) && by[i] != nil
}

// run visits the nodes on paths, results before sources, so that an adjoint is
// whole when it is handed on. The order, and with it the order of every sum,
// follows from the graph alone.
func (r *reverse) run() {
	for _, u := range slices.Backward(r.order) {
		adjoint := r.adjoint[u]
		if adjoint == nil {
			continue
		}
		if inputs, backward, ok := r.graph.CustomGradient(u); ok {
			r.custom(u, adjoint, inputs, backward)
			continue
		}
		s := &step{reverse: r, graph: r.graph, node: u, g: adjoint}
		for k, src := range u.Src {
			if !r.active[src] || !differentiable(u, k) {
				continue
			}
			if part := rules[u.Op].by[k](s); part != nil {
				r.add(src, part)
			}
		}
	}
}

// custom hands an adjoint on as WithGradient was told.
func (r *reverse) custom(u *ir.UOp, adjoint *tensor.Tensor, inputs []*tensor.Tensor, backward func(result, adjoint *tensor.Tensor, inputs []*tensor.Tensor) []*tensor.Tensor) {
	again := lists.Map(inputs, func(in *tensor.Tensor) *tensor.Tensor { return r.graph.Wrap(r.forward(u, in.Node())) })
	parts := backward(r.graph.Wrap(r.forward(u, u)), adjoint, again)
	if len(parts) != len(inputs) {
		r.graph.Fail("grad", "a custom gradient of %d inputs has %d parts", len(inputs), len(parts))
		return
	}
	for i, in := range inputs {
		if parts[i] == nil || !r.active[in.Node()] {
			continue
		}
		if parts[i].Node() != nil && (parts[i].DType() != in.DType() || !slices.Equal(parts[i].Shape(), in.Shape())) {
			r.graph.Fail("grad", "a custom gradient is %s by %s", parts[i], in)
			return
		}
		r.add(in.Node(), parts[i])
	}
}

// add accumulates what reaches a node. A rank-0 constant that stands beside
// tensors with axes collects from all their elements.
func (r *reverse) add(node *ir.UOp, part *tensor.Tensor) {
	if node.Op == ir.OpConst && part.Rank() > 0 {
		part = sumTo(part, nil)
	}
	if sum := r.adjoint[node]; sum != nil {
		part = sum.Add(part)
	}
	r.adjoint[node] = part
}
