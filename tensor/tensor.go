package tensor

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
)

// Tensor is a node of a graph: a value with a shape and a dtype that is
// computed when a result needs it. Tensors are immutable.
type Tensor struct {
	graph *Graph
	node  *ir.UOp // nil after an error
}

// Node is the tensor's node, nil after an error.
func (t *Tensor) Node() *ir.UOp {
	if t == nil {
		return nil
	}
	return t.node
}

// Graph is the graph that the tensor belongs to; a nil tensor has none.
func (t *Tensor) Graph() *Graph {
	if t == nil {
		return nil
	}
	return t.graph
}

// DType is the element type; Void after an error.
func (t *Tensor) DType() ir.DType {
	if !t.ok() {
		return ir.Void
	}
	return t.node.DType
}

// Rank is the number of axes.
func (t *Tensor) Rank() int { return len(t.shape()) }

// Dim is the extent of an axis; negative axes count from the end.
func (t *Tensor) Dim(axis int) *ir.UOp {
	shape := t.shape()
	k, ok := normalAxis(axis, len(shape))
	switch {
	case !t.ok():
		return t.bad().graph.arena.Index(1)
	case !ok:
		t.graph.fail("", "axis %d of shape %s", axis, shapeText(shape))
		return t.graph.arena.Index(1)
	}
	return shape[k]
}

// Extent is the constant extent of an axis, an error when it is symbolic.
func (t *Tensor) Extent(axis int) int {
	dim := t.Dim(axis)
	n, ok := dim.Int()
	if !ok {
		t.graph.fail("", "axis %d of shape %s is symbolic", axis, shapeText(t.shape()))
		return 1
	}
	return int(n)
}

// Shape is the list of extents.
func (t *Tensor) Shape() Shape { return append(Shape(nil), t.shape()...) }

// Shape is a list of extents: numbers, or expressions over symbolic sizes. It prints as
// [2 3] or [n 3].
type Shape []*ir.UOp

// String is the extents between brackets.
func (s Shape) String() string { return shapeText(s) }

// Ints are the extents; ok is false where one is symbolic.
func (s Shape) Ints() (extents []int, ok bool) {
	extents = make([]int, len(s))
	for i, dim := range s {
		n, constant := dim.Int()
		if !constant {
			return nil, false
		}
		extents[i] = int(n)
	}
	return extents, true
}

// String describes the tensor for people: dtype and shape.
func (t *Tensor) String() string {
	if !t.ok() {
		return "tensor(error)"
	}
	return t.node.DType.String() + shapeText(t.shape())
}

func (t *Tensor) ok() bool { return t != nil && t.node != nil }

func (t *Tensor) shape() []*ir.UOp {
	if !t.ok() {
		return nil
	}
	return t.graph.shapes.Of(t.node)
}

// make adds a node with this tensor first among its sources.
func (t *Tensor) make(op ir.Op, dtype ir.DType, arg ir.Arg, src ...*ir.UOp) *Tensor {
	all := append([]*ir.UOp{t.node}, src...)
	return t.graph.wrap(t.graph.arena.Make(op, dtype, arg, all...))
}

// bad is the result of an op on a bad tensor. Where the graph has no error yet an operand
// is nil or failed in a graph of its own, which is an error of the call. What is called on
// a nil tensor has a graph of its own, too, to hold the error.
func (t *Tensor) bad() *Tensor {
	if t == nil || t.graph == nil {
		return NewGraph().fail("", "the tensor is nil")
	}
	if t.graph.err == nil {
		return t.graph.fail("", "an operand is nil, or failed in another graph")
	}
	return &Tensor{graph: t.graph}
}

// failure is the error of a bad tensor that a call wants values of.
func (t *Tensor) failure(call string) error {
	if t == nil || t.graph == nil {
		return fmt.Errorf("tensor: %s: the tensor is nil", call)
	}
	return t.graph.err
}

// optional is the one of options that a call was given, or the zero value.
func optional[T any](t *Tensor, options []T) (o T) {
	if len(options) > 1 && t.ok() {
		t.graph.fail("", "%d options, want at most one", len(options))
	}
	if len(options) > 0 {
		o = options[0]
	}
	return o
}

func normalAxis(axis, rank int) (int, bool) {
	if axis < 0 {
		axis += rank
	}
	return axis, axis >= 0 && axis < rank
}

func shapeText(shape []*ir.UOp) string {
	return "[" + strings.Join(lists.Map(shape, (*ir.UOp).String), " ") + "]"
}
