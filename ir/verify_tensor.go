package ir

import (
	"fmt"
	"slices"
)

// VerifyTensor checks a tensor graph (pipeline form 1). Its contract:
//
//   - the root is a SINK of ASSIGNs;
//   - every node keeps VerifyNode and is legal in the tensor graph;
//   - shapes fit: elementwise sources have one shape or rank 0; RESHAPE keeps
//     the number of elements; EXPAND repeats extents of 1 only; axes exist and
//     are named once; PAD and SHRINK have a pair for each axis, never provably
//     negative or outside;
//   - REDUCE_AXES of floats works in f32 or wider;
//   - a packed BUFFER is u8 and read by DECODE only;
//   - ASSIGN and SCATTER_ADD have a coordinate for each axis, of rank 0 or
//     broadcastable to the values' shape;
//   - BUFFERs with one ID are one node, and each version of a buffer is
//     assigned once.
func VerifyTensor(root *UOp) error {
	if root.Op != OpSink {
		return nodeError(root, "the root of a tensor graph is a sink")
	}
	if err := verifyNodes(Toposort(root), FormTensor, "tensor graph"); err != nil {
		return err
	}
	a := NewArena()
	v := &tensorVerifier{arena: a, shapes: NewShapes(a), bounds: NewBounds(), linear: NewLinearizer(a),
		buffers: make(map[int64]*UOp), assigned: make(map[*UOp]*UOp)}
	for _, u := range Toposort(a.Import(root)) { // interned, so that extents compare by pointer
		if err := v.node(u); err != nil {
			return err
		}
		v.shapes.memo[u] = v.shapes.derive(u)
	}
	return nil
}

type tensorVerifier struct {
	arena    *Arena
	shapes   *Shapes
	bounds   *Bounds
	linear   *Linearizer
	buffers  map[int64]*UOp
	assigned map[*UOp]*UOp // version -> the ASSIGN that ends it
}

// shape is the shape of source i.
func (v *tensorVerifier) shape(u *UOp, i int) []*UOp { return v.shapes.memo[u.Src[i]] }

// node checks a node whose sources have shapes.
func (v *tensorVerifier) node(u *UOp) error {
	for _, s := range u.Src {
		if b, ok := s.Arg.(BufferArg); ok && s.Op == OpBuffer && b.Format != "" && u.Op != OpDecode {
			return nodeError(u, "reads a packed buffer; only decode does")
		}
	}
	switch u.Op {
	case OpBuffer:
		return v.buffer(u)
	case OpReshape:
		return v.reshape(u)
	case OpExpand:
		return v.expand(u)
	case OpPermute, OpFlip:
		return v.axes(u, u.Arg.(AxesArg).List(), u.Op == OpPermute)
	case OpPad, OpShrink:
		return v.box(u)
	case OpReduceAxes:
		return v.reduce(u)
	case OpScan, OpGather:
		return v.axes(u, []int{int(u.Arg.(IntArg))}, false)
	case OpScatterAdd, OpAssign:
		return v.assign(u)
	}
	if u.Op.IsElementwise() {
		return v.elementwise(u)
	}
	return nil
}

func (v *tensorVerifier) buffer(u *UOp) error {
	arg := u.Arg.(BufferArg)
	if arg.Format != "" && u.DType != U8 {
		return nodeError(u, "a packed buffer is u8, got %s", u.DType)
	}
	if other := v.buffers[arg.ID]; other != nil && other != u {
		return nodeError(u, "is also declared as %s", NodeText(other))
	}
	v.buffers[arg.ID] = u
	return nil
}

// same reports two extents that are equal for all values of the variables.
func (v *tensorVerifier) same(x, y *UOp) bool {
	return x == y || v.linear.Of(x).Equal(v.linear.Of(y))
}

func (v *tensorVerifier) sameShape(x, y []*UOp) bool { return slices.EqualFunc(x, y, v.same) }

func (v *tensorVerifier) elementwise(u *UOp) error {
	var shape []*UOp
	for i := range u.Src {
		s := v.shape(u, i)
		switch {
		case len(s) == 0:
		case shape == nil:
			shape = s
		case !v.sameShape(shape, s):
			return nodeError(u, "source %d has shape %s, want %s", i, shapeText(s), shapeText(shape))
		}
	}
	return nil
}

func (v *tensorVerifier) product(shape []*UOp) *UOp {
	n := v.arena.Index(1)
	for _, d := range shape {
		n = v.arena.Mul(n, d)
	}
	return n
}

func (v *tensorVerifier) reshape(u *UOp) error {
	from, to := v.shape(u, 0), u.Src[1:]
	if !v.same(v.product(from), v.product(to)) {
		return nodeError(u, "from %s to %s: want as many elements", shapeText(from), shapeText(to))
	}
	return nil
}

func (v *tensorVerifier) expand(u *UOp) error {
	from, to := v.shape(u, 0), u.Src[1:]
	ok := len(from) == len(to)
	for i := 0; ok && i < len(from); i++ {
		ok = from[i].IsInt(1) || v.same(from[i], to[i])
	}
	if !ok {
		return nodeError(u, "from %s to %s: want the same rank, other extents only where there was 1", shapeText(from), shapeText(to))
	}
	return nil
}

// axes checks that axes exist and occur once; all of them where the list must
// be a permutation.
func (v *tensorVerifier) axes(u *UOp, axes []int, all bool) error {
	rank := len(v.shape(u, 0))
	seen := make(map[int]bool)
	for _, axis := range axes {
		if axis < 0 || axis >= rank || seen[axis] {
			return nodeError(u, "axis %d of a tensor of rank %d", axis, rank)
		}
		seen[axis] = true
	}
	if all && len(axes) != rank {
		return nodeError(u, "permutes %d axes of a tensor of rank %d", len(axes), rank)
	}
	return nil
}

func (v *tensorVerifier) reduce(u *UOp) error {
	if u.DType.IsFloat() && u.DType.Size() < 4 {
		return nodeError(u, "folds %s; cast to f32 first", u.DType)
	}
	axes := make([]int, len(u.Src)-1)
	for i, s := range u.Src[1:] {
		axis, _ := s.Int()
		axes[i] = int(min(max(axis, -1), maxID))
	}
	return v.axes(u, axes, false)
}

// box checks the pairs of PAD and SHRINK.
func (v *tensorVerifier) box(u *UOp) error {
	from := v.shape(u, 0)
	if len(u.Src) != 1+2*len(from) {
		return nodeError(u, "has %d sources, want %d: a pair for each of %d axes", len(u.Src), 1+2*len(from), len(from))
	}
	for k := range from {
		x, y := u.Src[1+2*k], u.Src[2+2*k]
		if v.bounds.Of(x).Hi < 0 || v.bounds.Of(y).Hi < 0 {
			return nodeError(u, "axis %d: (%s, %s) is negative", k, NodeText(x), NodeText(y))
		}
		if u.Op == OpShrink {
			beyond, ok := v.linear.Of(v.arena.Add(x, y)).Plus(v.linear.Of(from[k]), -1)
			if ok && v.bounds.OfForm(beyond).Lo > 0 {
				return nodeError(u, "axis %d: offset + extent is past %s", k, shapeText(from[k:k+1]))
			}
		}
	}
	return nil
}

// assign checks ASSIGN and SCATTER_ADD: target, values, coordinates.
func (v *tensorVerifier) assign(u *UOp) error {
	target, values := v.shape(u, 0), v.shape(u, 1)
	if len(u.Src)-2 != len(target) {
		return nodeError(u, "has %d coordinates, want %d", len(u.Src)-2, len(target))
	}
	for i := 2; i < len(u.Src); i++ {
		if s := v.shape(u, i); !v.broadcasts(s, values) {
			return nodeError(u, "coordinate %d has shape %s, which does not broadcast to %s", i-2, shapeText(s), shapeText(values))
		}
	}
	if u.Op == OpAssign {
		if other := v.assigned[u.Src[0]]; other != nil && other != u {
			return nodeError(u, "this version of the buffer is also assigned by %s", NodeText(other))
		}
		v.assigned[u.Src[0]] = u
	}
	return nil
}

// broadcasts reports that s fits to after adding outer axes and repeating
// extents of 1.
func (v *tensorVerifier) broadcasts(s, to []*UOp) bool {
	if len(s) > len(to) {
		return false
	}
	tail := to[len(to)-len(s):]
	for i := range s {
		if !s[i].IsInt(1) && !v.same(s[i], tail[i]) {
			return false
		}
	}
	return true
}

func shapeText(shape []*UOp) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		switch {
		case d.Op == OpConst:
			parts[i] = constText(d)
		case d.Op == OpVar:
			parts[i] = d.Arg.(VarArg).Name
		default:
			parts[i] = d.Op.String()
		}
	}
	return fmt.Sprint(parts)
}
