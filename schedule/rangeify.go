package schedule

import (
	"fmt"

	"tgc/ir"
	"tgc/packed"
)

// R0, rangeify: movement ops become index expressions, and the graph is cut
// into values. Values are made at every REDUCE, CONTIGUOUS, COPY, ASSIGN, SCAN
// and SCATTER_ADD, and at a pointwise tensor that two consumers read or that is
// read through EXPAND or GATHER (there its multiplicity rises). Everything else
// is inlined while index expressions are built.

// rangeify turns the tensor graph into values.
func (s *scheduler) rangeify() {
	order := ir.Toposort(s.sink)
	s.shapes = ir.NewShapes(s.a)
	cut := findCuts(s.shapes, order)
	for _, u := range order {
		if s.err != nil {
			return
		}
		switch u.Op {
		case ir.OpBuffer:
			s.addVersion(u, u, -1, -1)
		case ir.OpAssign:
			s.assign(u)
		case ir.OpReduceAxes:
			s.reduceAxes(u)
		case ir.OpScan:
			s.scan(u)
		case ir.OpScatterAdd:
			s.scatterAdd(u)
		case ir.OpAfter:
			s.addReading(u)
		case ir.OpContiguous, ir.OpCopy:
			s.pointwiseValue(u, u.Src[0]).pinned = true
		default:
			if cut[u] {
				s.pointwiseValue(u, nil)
			}
		}
	}
	s.initial = len(s.values)
}

// addVersion registers the state of a buffer that the tensor node stands for.
func (s *scheduler) addVersion(node, buffer *ir.UOp, previous, writer int) *version {
	slot := len(s.versions)
	number := 0
	if previous >= 0 {
		number = s.versions[previous].number + 1
	}
	format := buffer.Arg.(ir.BufferArg).Format
	v := &version{
		buffer: buffer, number: number, previous: previous, writer: writer, under: -1,
		param: s.a.Make(ir.OpParam, buffer.DType, ir.ParamArg{Slot: slot, Format: format}, buffer.Src...),
	}
	s.versions = append(s.versions, v)
	s.versionOf[node] = slot
	return v
}

// pointwiseValue makes node a value of its own: src's element (or the node's
// own expression when src is nil) at each point.
func (s *scheduler) pointwiseValue(node, src *ir.UOp) *value {
	ranges, index := s.rangesOf(s.shapes.Of(node))
	v := s.newValue(node.DType, ranges, nil)
	if src != nil {
		v.body = s.at(src, index)
	} else {
		v.body = s.expr(node, index)
	}
	s.valueOf[node] = v
	return v
}

// reduceAxes makes the value of a REDUCE_AXES: one nested REDUCE per axis, the
// first axis outermost.
func (s *scheduler) reduceAxes(u *ir.UOp) {
	shape := s.shapes.Of(u.Src[0])
	ranges, index := s.rangesOf(s.shapes.Of(u))
	var axes []int
	for _, axis := range u.Src[1:] {
		k, _ := axis.Int()
		if !isUnit(shape[k]) {
			axes = append(axes, int(k))
		} else {
			index[k] = s.a.Index(0)
		}
	}
	closed := make([]*ir.UOp, len(axes))
	for i, k := range axes {
		closed[i] = s.newRange(shape[k])
		index[k] = closed[i]
	}
	body := s.at(u.Src[0], index)
	op := u.Arg.(ir.ReduceArg).Op
	for i := len(closed) - 1; i >= 0; i-- {
		body = s.closeReduce(s.a.Reduce(op, body, closed[i]))
	}
	s.valueOf[u] = s.newValue(u.DType, ranges, body)
}

// scan makes the value of a SCAN: x[..i..] summed over j <= i.
func (s *scheduler) scan(u *ir.UOp) {
	shape := s.shapes.Of(u)
	axis := int(u.Arg.(ir.IntArg))
	ranges, index := s.rangesOf(shape)
	v := s.newValue(u.DType, ranges, nil)
	s.valueOf[u] = v
	if isUnit(shape[axis]) {
		v.body = s.at(u.Src[0], index)
		return
	}
	end := index[axis]
	j := s.newRange(shape[axis])
	index[axis] = j
	term := s.a.Where(s.a.Lt(end, j), s.zero(u.DType), s.at(u.Src[0], index))
	v.body = s.closeReduce(s.a.Reduce(ir.OpAdd, term, j))
}

// scatterAdd makes the value of a SCATTER_ADD: the base plus every point whose
// coordinates name this element, in row-major order of the points.
func (s *scheduler) scatterAdd(u *ir.UOp) {
	a := s.a
	ranges, index := s.rangesOf(s.shapes.Of(u))
	points := s.shapes.Of(u.Src[1])
	closed, point := s.rangesOf(points)
	hit := a.ConstInt(ir.Bool, 1)
	for k, coord := range u.Src[2:] {
		same := a.Eq(s.coordinate(coord, point), index[k])
		if k == 0 {
			hit = same
		} else {
			hit = a.And(hit, same)
		}
	}
	body := a.Where(hit, s.at(u.Src[1], point), s.zero(u.DType))
	for i := len(closed) - 1; i >= 0; i-- {
		body = s.closeReduce(a.Reduce(ir.OpAdd, body, closed[i]))
	}
	if base := s.at(u.Src[0], index); base != s.zero(u.DType) { // a sum is never -0
		body = a.Add(base, body)
	}
	s.valueOf[u] = s.newValue(u.DType, ranges, body)
}

// assign makes the value that writes the next version of a buffer. When the
// right side reads the buffer at other points than it writes, it is stored in
// a temporary first.
func (s *scheduler) assign(u *ir.UOp) {
	source := u.Src[1]
	previous := s.versionOf[u.Src[0]]
	shape := s.shapes.Of(source)
	ranges, index := s.rangesOf(shape)
	coords := make([]*ir.UOp, len(u.Src)-2)
	for k, coord := range u.Src[2:] {
		coords[k] = s.coordinate(coord, s.broadcast(s.shapes.Of(coord), index))
	}
	buffer := s.versions[previous].buffer
	body := s.at(source, index)
	v := s.newValue(buffer.DType, ranges, body)
	v.index = coords
	if !s.inPlace(v, previous) {
		temporary := s.newValue(body.DType, ranges, body)
		temporary.pinned = true
		fresh := make([]*ir.UOp, len(ranges))
		with := make(map[*ir.UOp]*ir.UOp, len(ranges))
		for i, r := range ranges {
			fresh[i] = s.newRange(r.Src[0])
			with[r] = fresh[i]
		}
		v.ranges, v.body = fresh, s.a.Load(temporary.node, fresh...)
		for k := range coords {
			coords[k] = s.a.Substitute(coords[k], with)
		}
	}
	next := s.addVersion(u, buffer, previous, v.id)
	v.target = s.versionOf[u]
	s.mutable[buffer] = true
	v.name = next.String()
}

// broadcast aligns a full index with a coordinate tensor's shape from the
// right: axes of extent 1 read 0.
func (s *scheduler) broadcast(shape, index []*ir.UOp) []*ir.UOp {
	out := make([]*ir.UOp, len(shape))
	for i := range shape {
		out[i] = s.a.Index(0)
		if j := i + len(index) - len(shape); !isUnit(shape[i]) && j >= 0 {
			out[i] = index[j]
		}
	}
	return out
}

// coordinate is an integer tensor's element as an Idx expression.
func (s *scheduler) coordinate(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	return s.simplify(s.a.Cast(s.at(u, index), ir.Idx))
}

func (s *scheduler) zero(dtype ir.DType) *ir.UOp { return s.a.Const(dtype, 0) }

// at is the element of tensor u at a full index, as an expression. Tensors that
// are values are read, others are inlined.
func (s *scheduler) at(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	if v, ok := s.valueOf[u]; ok {
		return s.a.Load(v.node, dropUnits(s.shapes.Of(u), index)...)
	}
	return s.expr(u, index)
}

// atKey identifies a tensor element: the index tuple as one interned node.
type atKey struct{ tensor, index *ir.UOp }

// expr builds the expression of an element of u, whether or not u is a value.
func (s *scheduler) expr(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	key := atKey{u, s.a.Make(ir.OpSink, ir.Void, nil, index...)}
	if e, ok := s.atMemo[key]; ok {
		return e
	}
	e := s.buildExpr(u, index)
	s.atMemo[key] = e
	return e
}

func (s *scheduler) buildExpr(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	a := s.a
	switch u.Op {
	case ir.OpConst, ir.OpVar:
		return u
	case ir.OpTable:
		return a.Load(u, index...)
	case ir.OpBuffer, ir.OpAssign:
		return a.Load(s.versions[s.versionOf[u]].param, index...)
	case ir.OpIota:
		return a.Cast(index[0], u.DType)
	case ir.OpDecode:
		return s.decode(u, index)
	case ir.OpDetach:
		return s.at(u.Src[0], index)
	case ir.OpAfter:
		return s.readAgain(u, index)
	case ir.OpGather:
		return s.gather(u, index)
	}
	if u.Op.IsMovement() {
		return s.movement(u, index)
	}
	if u.Op.IsElementwise() {
		src := make([]*ir.UOp, len(u.Src))
		for i, x := range u.Src {
			shape := s.shapes.Of(x)
			src[i] = s.at(x, s.broadcast(shape, index))
		}
		return s.simplifyNode(a.Make(u.Op, u.DType, u.Arg, src...))
	}
	s.fail("rangeify: %s has no expression", u.Op)
	return a.ConstInt(u.DType, 0)
}

// decode is element k of a row of a packed buffer; leading axes flatten.
func (s *scheduler) decode(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	buffer := u.Src[0]
	format := buffer.Arg.(ir.BufferArg).Format
	decoder, ok := s.opt.Decoders(format)
	if !ok {
		s.fail("rangeify: decode: unknown packed format %q", format)
		return s.zero(u.DType)
	}
	last := len(index) - 1
	if !s.wholeBlocks(decoder, buffer.Src[last]) {
		s.fail("rangeify: decode of buffer%d: rows of %s elements are not whole blocks of %s", buffer.Arg.(ir.BufferArg).ID, extentText(buffer.Src[last]), format)
		return s.zero(u.DType)
	}
	row := s.simplify(s.flatten(buffer.Src[:last], index[:last]))
	return s.simplify(decoder.Decode(s.a, s.versions[s.versionOf[buffer]].param, row, index[last]))
}

// wholeBlocks reports that a row of a packed buffer is made of whole blocks, as
// far as its decoder knows their size.
func (s *scheduler) wholeBlocks(decoder Decoder, extent *ir.UOp) bool {
	f, ok := decoder.(*packed.Format)
	if !ok {
		return true
	}
	b := s.bounds.Of(extent)
	return b.Lo >= 0 && b.DivisibleBy(int64(f.BlockElems))
}

// gather reads the slice that the index tensor names, clamped into range.
func (s *scheduler) gather(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	axis := int(u.Arg.(ir.IntArg))
	x, names := u.Src[0], u.Src[1]
	rank := len(s.shapes.Of(names))
	name := s.coordinate(names, index[axis:axis+rank])
	extent := s.shapes.Of(x)[axis]
	last := s.a.Add(extent, s.a.Index(-1))
	name = s.simplify(s.a.Binary(ir.OpMin, s.a.Binary(ir.OpMax, name, s.a.Index(0)), last))
	full := append([]*ir.UOp(nil), index[:axis]...)
	full = append(append(full, name), index[axis+rank:]...)
	return s.at(x, full)
}

// movement translates the index of a movement op to its source's.
func (s *scheduler) movement(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	a, x := s.a, u.Src[0]
	from := s.shapes.Of(x)
	out := make([]*ir.UOp, len(from))
	switch u.Op {
	case ir.OpReshape:
		out = s.reshapeIndex(from, s.shapes.Of(u), index)
	case ir.OpPermute:
		for k, axis := range u.Arg.(ir.AxesArg).List() {
			out[axis] = index[k]
		}
	case ir.OpExpand:
		out = s.broadcast(from, index)
	case ir.OpFlip:
		copy(out, index)
		for _, axis := range u.Arg.(ir.AxesArg).List() {
			out[axis] = s.simplify(a.Sub(a.Add(from[axis], a.Index(-1)), index[axis]))
		}
	case ir.OpShrink:
		for k := range from {
			out[k] = s.simplify(a.Add(index[k], u.Src[1+2*k]))
		}
	case ir.OpPad:
		return s.pad(u, from, index)
	default:
		panic(fmt.Sprintf("schedule: movement op %s", u.Op))
	}
	return s.at(x, out)
}

// pad reads the source inside the box and zero around it; comparisons that the
// padding cannot break are left out.
func (s *scheduler) pad(u *ir.UOp, from, index []*ir.UOp) *ir.UOp {
	a := s.a
	out := make([]*ir.UOp, len(from))
	var inside *ir.UOp
	both := func(c *ir.UOp) {
		c = s.simplify(c)
		if inside == nil {
			inside = c
		} else if !c.IsInt(1) {
			inside = a.And(inside, c)
		}
	}
	for k := range from {
		before, after := u.Src[1+2*k], u.Src[2+2*k]
		out[k] = s.simplify(a.Sub(index[k], before))
		if !before.IsInt(0) {
			both(a.Lt(a.Add(before, a.Index(-1)), index[k]))
		}
		if !after.IsInt(0) {
			both(a.Lt(index[k], a.Add(before, from[k])))
		}
		if isUnit(from[k]) {
			out[k] = a.Index(0)
		}
	}
	value := s.at(u.Src[0], out)
	if inside == nil || inside.IsInt(1) {
		return value
	}
	return s.simplifyNode(a.Where(inside, value, s.zero(u.DType)))
}
