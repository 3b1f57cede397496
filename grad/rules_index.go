package grad

import (
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// Reading and writing at integer coordinates: each is the other's adjoint.
// Coordinates have no gradient.
var indexRules = map[ir.Op]rule{
	ir.OpGather:     {"a: g added at the indices", []adjoint{gathered}},
	ir.OpScatterAdd: {"a: g; b: g read at the coordinates, 0 outside", []adjoint{pass, taken}},
	ir.OpAssign:     {"a: g where nothing was written; b: g read at the coordinates, 0 outside", []adjoint{kept, taken}},
}

// gathered adds the adjoint of every slice where it was read. An index out of
// range reads the nearest slice, so its adjoint goes there too.
func gathered(s *step) *tensor.Tensor {
	axis := int(s.node.Arg.(ir.IntArg))
	shape, rank := s.a().Shape(), s.g.Rank()
	index := clamped(s.b(), shape[axis])
	coords := make([]*tensor.Tensor, len(shape))
	for k := range shape {
		switch {
		case k < axis:
			coords[k] = onAxis(s.graph.Iota(ir.I32, shape[k]), rank, k)
		case k == axis:
			coords[k] = onAxis(index, rank, k)
		default:
			coords[k] = onAxis(s.graph.Iota(ir.I32, shape[k]), rank, k+index.Rank()-1)
		}
	}
	return scatterAdd(filled(s.graph, s.node.DType, 0, shape), s.g, coords)
}

// clamped puts indices into 0..extent-1, in a dtype that holds them all.
func clamped(index *tensor.Tensor, extent *ir.UOp) *tensor.Tensor {
	g := index.Graph()
	n, constant := extent.Int()
	switch {
	case !constant || n > math.MaxInt32:
		index = index.Cast(ir.I64)
	case index.DType().Size() < 4:
		index = index.Cast(ir.I32)
	}
	last := g.Size(g.Arena().Add(extent, g.Arena().Index(-1)), index.DType())
	return index.Maximum(g.Scalar(index.DType(), 0)).Minimum(last)
}

// onAxis gives t unit axes around it: its first axis becomes axis at of rank.
func onAxis(t *tensor.Tensor, rank, at int) *tensor.Tensor {
	dims := lists.Make(rank, func(int) *ir.UOp { return t.Graph().Arena().Index(1) })
	copy(dims[at:], t.Shape())
	return reshaped(t, dims)
}

// scatterAdd is base with values added at coordinates, one tensor per axis of
// base, each of which broadcasts to the values.
func scatterAdd(base, values *tensor.Tensor, coords []*tensor.Tensor) *tensor.Tensor {
	src := []*ir.UOp{values.Node()}
	for _, c := range coords {
		if c.Node() == nil {
			return c
		}
		src = append(src, spread(c, values.Shape()).Node())
	}
	return make1(base, ir.OpScatterAdd, nil, src...)
}

// coordsOf lists the coordinates of an ASSIGN or SCATTER_ADD.
func (s *step) coordsOf() []*tensor.Tensor {
	return lists.Make(len(s.node.Src)-2, func(k int) *tensor.Tensor { return s.src(k + 2) })
}

// taken reads the adjoint where the values went.
func taken(s *step) *tensor.Tensor {
	if s.wholeBuffer() {
		return s.g
	}
	values, shape := s.b().Shape(), s.a().Shape()
	var at, inside *tensor.Tensor
	for k, coord := range s.coordsOf() {
		c := spread(coord.Cast(ir.I64), values)
		zero, extent := s.graph.Scalar(ir.I64, 0), s.graph.Size(shape[k], ir.I64)
		valid := c.Lt(zero).Not().And(c.Lt(extent))
		c = clamped(c, shape[k])
		if at == nil {
			at, inside = c, valid
			continue
		}
		at, inside = at.Mul(extent).Add(c), inside.And(valid)
	}
	if at == nil { // a buffer without axes
		return spread(s.g, values)
	}
	flat := reshaped(s.g, []*ir.UOp{product(s.graph, shape)})
	return inside.Where(flat.Gather(0, at), s.scalar(0))
}

func product(g *tensor.Graph, shape []*ir.UOp) *ir.UOp {
	n := g.Arena().Index(1)
	for _, extent := range shape {
		n = g.Arena().Mul(n, extent)
	}
	return n
}

// kept is the adjoint of a buffer's previous version: that of the points which
// the assignment did not name.
func kept(s *step) *tensor.Tensor {
	if s.wholeBuffer() {
		return nil
	}
	one := filled(s.graph, ir.I32, 1, s.b().Shape())
	none := filled(s.graph, ir.I32, 0, s.a().Shape())
	written := scatterAdd(none, one, s.coordsOf())
	return written.Eq(s.graph.Scalar(ir.I32, 0)).Where(s.g, s.scalar(0))
}

// wholeBuffer reports an ASSIGN of every point in place, as Tensor.Assign makes
// it: coordinate k is the position along axis k.
func (s *step) wholeBuffer() bool {
	shape := s.a().Shape()
	if s.node.Op != ir.OpAssign || !slices.Equal(s.b().Shape(), shape) {
		return false
	}
	for k, coord := range s.coordsOf() {
		position := onAxis(s.graph.Iota(ir.I32, shape[k]), len(shape), k)
		if coord.Node() != position.ExpandDims(shape...).Node() {
			return false
		}
	}
	return true
}
