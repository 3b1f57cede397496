package lower

import (
	"math"
	"slices"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// isStatic reports an expression over constants and vector ranges that is not
// a mere constant.
func (l *expressions) isStatic(u *ir.UOp) bool {
	if s, ok := l.pure[u]; ok {
		return s
	}
	s := false
	switch {
	case u.Op == ir.OpRange:
		s = l.vector.Has(l.free.Index.Of(u))
	case u.Op.IsElementwise() && !isTranscendental(u.Op) && u.Op != ir.OpRng:
		s = !slices.ContainsFunc(u.Src, func(x *ir.UOp) bool { return x.Op != ir.OpConst && !l.isStatic(x) })
	}
	l.pure[u] = s
	return s
}

// evalStatic computes a static node at a point; lane coordinates must be
// numbers in at.
func (l *expressions) evalStatic(u *ir.UOp, at coords) ir.Scalar {
	if s, ok := u.Scalar(); ok {
		return s
	}
	if u.Op == ir.OpRange {
		return ir.IntScalar(int64(at[l.free.Index.Of(u)]))
	}
	args := lists.Map(u.Src, func(s *ir.UOp) ir.Scalar { return l.evalStatic(s, at) })
	return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
}

// laneSubAxes are the lane ranges that a node depends on at these coordinates.
func (l *expressions) laneSubAxes(u *ir.UOp, at coords) []int {
	return lists.Filter(l.free.Of(u).Meet(l.vector).List(), func(i int) bool { return at[i] == laneCoord })
}

// staticLanes evaluates a static node in every lane over sub-axes.
func (l *expressions) staticLanes(u *ir.UOp, at coords, subAxes []int) []ir.Scalar {
	out := make([]ir.Scalar, l.laneCount(subAxes))
	point := append(coords(nil), at...)
	for lane := range out {
		l.setLane(point, subAxes, lane)
		out[lane] = l.evalStatic(u, point)
	}
	return out
}

// staticParts are the largest nodes under u that lanes have numbers for: where these are the same, u is.
func (l *expressions) staticParts(u *ir.UOp, at coords) (parts []*ir.UOp) {
	ir.Walk(func(x *ir.UOp) []*ir.UOp {
		switch {
		case len(l.laneSubAxes(x, at)) == 0:
			return nil
		case l.isStatic(x):
			parts = append(parts, x)
			return nil
		}
		return x.Src
	}, u)
	return parts
}

// staticUniform reports the value of a static node that is the same in all lanes.
func (l *expressions) staticUniform(u *ir.UOp, at coords) (ir.Scalar, bool) {
	values := l.staticLanes(u, at, l.laneSubAxes(u, at))
	for _, v := range values[1:] {
		if v != values[0] {
			return v, false
		}
	}
	return values[0], true
}

// known is an integer that is one number at these coordinates.
func (l *expressions) known(u *ir.UOp, at coords) (int64, bool) {
	if n, ok := u.Int(); ok {
		return n, true
	}
	if !l.isStatic(u) {
		return 0, false
	}
	v, uniform := l.staticUniform(u, at)
	return v.I, uniform
}

func (l *expressions) staticValue(u *ir.UOp, at coords) val {
	subAxes := l.laneSubAxes(u, at)
	values := l.staticLanes(u, at, subAxes)
	d := storedType(u.DType)
	if v, uniform := l.staticUniform(u, at); uniform {
		if d.IsFloat() {
			c := l.b.Float(program.Scalar(d), v.F)
			if !math.IsNaN(v.F) {
				l.floats[c] = v.F
			}
			return l.scalarVal(c)
		}
		return l.scalarVal(l.b.Int(program.Scalar(d), v.I))
	}
	out := val{subAxes: subAxes, depth: l.scopes.top()}
	if d.IsFloat() {
		floats := lists.Map(values, func(v ir.Scalar) float64 { return v.F })
		out.v = l.b.FloatLanes(d, floats...)
		return out
	}
	ints := lists.Map(values, func(v ir.Scalar) int64 { return v.I })
	out.v = l.b.IntLanes(d, ints...)
	return out
}

func isTranscendental(op ir.Op) bool {
	return op == ir.OpExp2 || op == ir.OpLog2 || op == ir.OpSin || op == ir.OpRsqrt
}
