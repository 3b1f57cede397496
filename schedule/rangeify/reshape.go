package rangeify

import (
	"slices"
	"strings"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule/expr"
)

// dimProduct is a product of extents: a constant times symbolic atoms.
type dimProduct struct {
	constant int64
	atoms    []*ir.UOp // sorted by structure
}

func (p dimProduct) times(extent *ir.UOp) dimProduct {
	if v, ok := extent.Int(); ok {
		p.constant *= v
		return p
	}
	if extent.Op == ir.OpMul {
		return p.times(extent.Src[0]).times(extent.Src[1])
	}
	atoms := append(slices.Clone(p.atoms), extent)
	slices.SortStableFunc(atoms, func(x, y *ir.UOp) int {
		switch {
		case x.Hash() < y.Hash():
			return -1
		case x.Hash() > y.Hash():
			return 1
		}
		return 0
	})
	p.atoms = atoms
	return p
}

func (p dimProduct) equal(q dimProduct) bool {
	return p.constant == q.constant && slices.Equal(p.atoms, q.atoms)
}

// lacks reports that p needs more factors to reach q.
func (p dimProduct) lacks(q dimProduct) bool {
	if len(p.atoms) != len(q.atoms) {
		return len(p.atoms) < len(q.atoms)
	}
	return p.constant < q.constant
}

// reshapeIndex translates an index into shape to into one into shape from.
// Axes are taken in groups of equal product, so that a reshape that keeps an
// axis keeps its index; inside a group the row-major position is taken apart.
// Symbolic extents must match exactly within a group.
func (s *builder) reshapeIndex(from, to, index []*ir.UOp) []*ir.UOp {
	a := s.A
	zero := a.Index(0)
	out := make([]*ir.UOp, len(from))
	if slices.ContainsFunc(from, func(extent *ir.UOp) bool { return extent.IsInt(0) }) {
		for k := range out { // no element is read, whatever its place
			out[k] = zero
		}
		return out
	}
	i, j := 0, 0
	for {
		for i < len(from) && expr.IsUnit(from[i]) {
			out[i] = zero
			i++
		}
		for j < len(to) && expr.IsUnit(to[j]) {
			j++
		}
		if i == len(from) || j == len(to) {
			break
		}
		i0, j0 := i, j
		p := dimProduct{constant: 1}.times(from[i])
		q := dimProduct{constant: 1}.times(to[j])
		i, j = i+1, j+1
		for !p.equal(q) {
			switch {
			case p.lacks(q) && i < len(from):
				p = p.times(from[i])
				i++
			case j < len(to):
				q = q.times(to[j])
				j++
			case i < len(from):
				p = p.times(from[i])
				i++
			default:
				s.Fail("reshape of %s to %s: extents do not match", shapeText(from), shapeText(to))
				for k := range out {
					out[k] = zero
				}
				return out
			}
		}
		s.splitFlat(from[i0:i], s.flatten(to[j0:j], index[j0:j]), out[i0:i])
	}
	for ; i < len(from); i++ {
		out[i] = zero
	}
	return out
}

// shapeText prints a shape in errors.
func shapeText(shape []*ir.UOp) string {
	parts := lists.Map(shape, expr.ExtentText)
	return "[" + strings.Join(parts, ",") + "]"
}

// flatten is the row-major position of index in shape.
func (s *builder) flatten(shape, index []*ir.UOp) *ir.UOp {
	flat := s.A.Index(0)
	for k, extent := range shape {
		flat = s.A.Add(s.A.Mul(flat, extent), index[k])
	}
	return flat
}

// splitFlat takes a row-major position apart into out.
func (s *builder) splitFlat(shape []*ir.UOp, flat *ir.UOp, out []*ir.UOp) {
	a := s.A
	first := true // the outermost axis needs no modulus
	for k := range shape {
		stride := a.Index(1)
		for _, extent := range shape[k+1:] {
			stride = a.Mul(stride, extent)
		}
		switch {
		case expr.IsUnit(shape[k]):
			out[k] = a.Index(0)
			continue
		case first:
			out[k] = a.Div(flat, stride)
		default:
			out[k] = a.Mod(a.Div(flat, stride), shape[k])
		}
		out[k] = s.Simplify(out[k])
		first = false
	}
}
