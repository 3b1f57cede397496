package rangeify

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/packed"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// rangeify: movement ops become index expressions, and the graph is cut
// into values. Values are made at every REDUCE, CONTIGUOUS, COPY, ASSIGN, SCAN
// and SCATTER_ADD, and at a pointwise tensor that two consumers read or that is
// read through EXPAND or GATHER (there its multiplicity rises). Everything else
// is inlined while index expressions are built.

// Rangeify turns the tensor graph into values.
func Rangeify(s *state.State) {
	b := &builder{
		State: s, shapes: newExtents(s.A, s.Bounds),
		versionOf: make(map[*ir.UOp]int), valueOf: make(map[*ir.UOp]*state.Value), atMemo: make(map[atKey]*ir.UOp), rowMemo: make(map[atKey]*ir.UOp),
	}
	b.build(ir.Toposort(s.Sink))
	s.Initial = len(s.Values)
}

// build makes values of a graph, sources first.
func (s *builder) build(order []*ir.UOp) {
	defer s.A.MakeAgainFor(s.A.MakeFor(s.Sink))
	var pairs map[*ir.UOp]bool
	if !s.Opt.Off.Has(state.UnrollPairs) {
		pairs = findPairs(s.shapes, order)
	}
	cut, readers := findCuts(s.shapes, order, s.Opt.Profile.Lanes > 1, pairs)
	stored := onlyStored(order)
	for _, u := range order {
		if s.Err != nil {
			return
		}
		s.A.MakeFor(u)
		switch u.Op {
		case ir.OpBuffer:
			s.addVersion(u, u, -1, -1)
		case ir.OpAssign:
			s.assign(u)
		case ir.OpReduceAxes:
			s.reduceAxes(u)
		case ir.OpScan:
			s.scan(u, !readers[u].stores())
		case ir.OpScatterAdd:
			s.scatterAdd(u)
		case ir.OpAfter:
			s.addReading(u)
		case ir.OpContiguous, ir.OpCopy:
			if !stored[u] {
				s.pointwiseValue(u, u.Src[0]).Pinned = true
			}
		default:
			if cut[u] {
				s.pointwiseValue(u, nil)
			}
		}
	}
}

// addVersion registers the state of a buffer that the tensor node is.
func (s *builder) addVersion(node, buffer *ir.UOp, previous, writer int) *state.Version {
	slot := len(s.Versions)
	number := 0
	if previous >= 0 {
		number = s.Versions[previous].Number + 1
	}
	format := buffer.Arg.(ir.BufferArg).Format
	v := &state.Version{
		Buffer: buffer, Number: number, Previous: previous, Writer: writer, Under: -1,
		Param: s.A.Make(ir.OpParam, buffer.DType, ir.ParamArg{Slot: slot, Format: format}, buffer.Src...),
	}
	s.A.Became(buffer, v.Param)
	s.Versions = append(s.Versions, v)
	s.versionOf[node] = slot
	return v
}

// pointwiseValue makes node a value of its own: src's element (or the node's
// own expression when src is nil) at each point.
func (s *builder) pointwiseValue(node, src *ir.UOp) *state.Value {
	ranges, index := s.RangesOf(s.shapes.Of(node))
	v := s.NewValue(node.DType, ranges, nil)
	if src != nil {
		v.Body = s.at(src, index)
	} else {
		v.Body = s.expr(node, index)
	}
	s.valueOf[node] = v
	return v
}

// reduceAxes makes the value of a REDUCE_AXES: one nested REDUCE per axis, the
// first axis outermost.
func (s *builder) reduceAxes(u *ir.UOp) {
	shape := s.shapes.Of(u.Src[0])
	ranges, index := s.RangesOf(s.shapes.Of(u))
	var axes []int
	for _, axis := range u.Src[1:] {
		k, _ := axis.Int()
		if !expr.IsUnit(shape[k]) {
			axes = append(axes, int(k))
		} else {
			index[k] = s.A.Index(0)
		}
	}
	closed := make([]*ir.UOp, len(axes))
	for i, k := range axes {
		closed[i] = s.NewRange(shape[k])
		index[k] = closed[i]
	}
	body := s.at(u.Src[0], index)
	op := u.Arg.(ir.ReduceArg).Op
	for i := len(closed) - 1; i >= 0; i-- {
		body = s.CloseReduce(s.A.Reduce(op, body, closed[i]))
	}
	s.valueOf[u] = s.NewValue(u.DType, ranges, body)
}

// scan makes the value of a SCAN: x[..i..] summed over j <= i. Lanes of a CPU run along its
// results: what computes with it would take it without them.
func (s *builder) scan(u *ir.UOp, computes bool) {
	shape := s.shapes.Of(u)
	axis := int(u.Arg.(ir.IntArg))
	ranges, index := s.RangesOf(shape)
	v := s.NewValue(u.DType, ranges, nil)
	s.valueOf[u] = v
	if expr.IsUnit(shape[axis]) {
		v.Body = s.at(u.Src[0], index)
		return
	}
	end := index[axis]
	j := s.NewRange(shape[axis])
	v.Pinned = computes && s.Opt.Profile.Lanes > 1
	index[axis] = j
	term := s.A.Where(s.A.Lt(end, j), s.Zero(u.DType), s.at(u.Src[0], index))
	v.Body = s.CloseReduce(s.A.Reduce(ir.OpAdd, term, j))
}

// scatterAdd makes the value of a SCATTER_ADD: the base plus every point whose
// coordinates name this element, in row-major order of the points.
func (s *builder) scatterAdd(u *ir.UOp) {
	a := s.A
	ranges, index := s.RangesOf(s.shapes.Of(u))
	points := s.shapes.Of(u.Src[1])
	closed, point := s.RangesOf(points)
	hit := a.ConstInt(ir.Bool, 1)
	for k, coord := range u.Src[2:] {
		same := a.Eq(s.coordinate(coord, point), index[k])
		if k == 0 {
			hit = same
		} else {
			hit = a.And(hit, same)
		}
	}
	body := a.Where(hit, s.at(u.Src[1], point), s.Zero(u.DType))
	for i := len(closed) - 1; i >= 0; i-- {
		body = s.CloseReduce(a.Reduce(ir.OpAdd, body, closed[i]))
	}
	if base := s.at(u.Src[0], index); base != s.Zero(u.DType) { // a sum is never -0
		body = a.Add(base, body)
	}
	s.valueOf[u] = s.NewValue(u.DType, ranges, body)
}

// assign makes the value that writes the next version of a buffer. When the
// right side reads the buffer at other points than it writes, it is stored in
// a temporary first.
func (s *builder) assign(u *ir.UOp) {
	source := u.Src[1]
	previous := s.versionOf[u.Src[0]]
	shape := s.shapes.Of(source)
	ranges, index := s.RangesOf(shape)
	coords := make([]*ir.UOp, len(u.Src)-2)
	for k, coord := range u.Src[2:] {
		coords[k] = s.coordinate(coord, s.broadcast(s.shapes.Of(coord), index))
	}
	buffer := s.Versions[previous].Buffer
	body := s.at(source, index)
	v := s.NewValue(buffer.DType, ranges, body)
	v.Index = coords
	if !s.InPlace(v, previous) {
		temporary := s.NewValue(body.DType, ranges, body)
		temporary.Pinned = true
		fresh := make([]*ir.UOp, len(ranges))
		with := make(map[*ir.UOp]*ir.UOp, len(ranges))
		for i, r := range ranges {
			fresh[i] = s.NewRange(r.Src[0])
			with[r] = fresh[i]
		}
		v.Ranges, v.Body = fresh, s.A.Load(temporary.Node, fresh...)
		for k := range coords {
			coords[k] = s.A.Substitute(coords[k], with)
		}
	}
	next := s.addVersion(u, buffer, previous, v.ID)
	v.Target = s.versionOf[u]
	s.Mutable[buffer] = true
	v.Name = next.String()
}

// broadcast aligns a full index with a coordinate tensor's shape from the
// right: axes of extent 1 read 0.
func (s *builder) broadcast(shape, index []*ir.UOp) []*ir.UOp {
	out := make([]*ir.UOp, len(shape))
	for i := range shape {
		out[i] = s.A.Index(0)
		if j := i + len(index) - len(shape); !expr.IsUnit(shape[i]) && j >= 0 {
			out[i] = index[j]
		}
	}
	return out
}

// coordinate is an integer tensor's element as an Idx expression.
func (s *builder) coordinate(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	return s.Simplify(s.A.Cast(s.at(u, index), ir.Idx))
}

// at is the element of tensor u at a full index, as an expression. Tensors that
// are values are read, others are inlined.
func (s *builder) at(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	if v, ok := s.valueOf[u]; ok {
		return s.A.Load(v.Node, expr.DropUnits(s.shapes.Of(u), index)...)
	}
	return s.expr(u, index)
}

// expr builds the expression of an element of u, whether or not u is a value.
func (s *builder) expr(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	key := atKey{u, s.A.Make(ir.OpSink, ir.Void, nil, index...)}
	if e, ok := s.atMemo[key]; ok {
		return e
	}
	before := s.A.MakeFor(u)
	e := s.buildExpr(u, index)
	s.A.MakeAgainFor(before)
	s.atMemo[key] = e
	return e
}

func (s *builder) buildExpr(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	a := s.A
	switch u.Op {
	case ir.OpConst, ir.OpVar:
		return u
	case ir.OpTable:
		return a.Load(u, index...)
	case ir.OpBuffer, ir.OpAssign:
		return a.Load(s.Versions[s.versionOf[u]].Param, index...)
	case ir.OpIota:
		return a.Cast(index[0], u.DType)
	case ir.OpDecode:
		return s.decode(u, index)
	case ir.OpDetach, ir.OpContiguous, ir.OpCopy:
		return s.at(u.Src[0], index)
	case ir.OpAfter:
		return s.readAgain(u, index)
	case ir.OpStageRow:
		return s.stageRow(u, index)
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
		return s.SimplifyNode(a.Make(u.Op, u.DType, u.Arg, src...))
	}
	s.Fail("rangeify: %s has no expression", u.Op)
	return a.ConstInt(u.DType, 0)
}

// stageRow reads an element of a row that its reader makes as a stage. Reads of one row read one
// stage: networks compare each element with several.
func (s *builder) stageRow(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	last := len(index) - 1
	along := func(x *ir.UOp) []*ir.UOp { return append(slices.Clone(index[:last]), x) }
	key := atKey{u, s.A.Make(ir.OpSink, ir.Void, nil, along(s.A.Index(0))...)}
	stage, ok := s.rowMemo[key]
	if !ok {
		r := s.NewRange(s.shapes.Of(u)[last])
		body := s.at(u.Src[0], along(r))
		stage = s.CloseStage(s.A.Make(ir.OpStage, u.DType, ir.StageArg{}, body, r))
		s.rowMemo[key] = stage
	}
	return s.A.Load(stage, index[last])
}

// decode is element k of a row of a packed buffer; leading axes flatten.
func (s *builder) decode(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	buffer := u.Src[0]
	format := buffer.Arg.(ir.BufferArg).Format
	decoder, ok := s.Opt.Decoders(format)
	if !ok {
		s.Fail("rangeify: decode: unknown packed format %q", format)
		return s.Zero(u.DType)
	}
	last := len(index) - 1
	if !s.wholeBlocks(decoder, buffer.Src[last]) {
		s.Fail("rangeify: decode of buffer%d: rows of %s elements are not whole blocks of %s", buffer.Arg.(ir.BufferArg).ID, expr.ExtentText(buffer.Src[last]), format)
		return s.Zero(u.DType)
	}
	row := s.Simplify(s.flatten(buffer.Src[:last], index[:last]))
	return s.Simplify(decoder.Decode(s.A, s.Versions[s.versionOf[buffer]].Param, row, index[last]))
}

// wholeBlocks reports that a row of a packed buffer is made of whole blocks, as
// far as its decoder knows their size.
func (s *builder) wholeBlocks(decoder state.Decoder, extent *ir.UOp) bool {
	f, ok := decoder.(*packed.Format)
	if !ok {
		return true
	}
	b := s.Bounds.Of(extent)
	return b.Lo >= 0 && b.DivisibleBy(int64(f.BlockElems))
}

// gather reads the slice that the index tensor names, clamped into range.
func (s *builder) gather(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	axis := int(u.Arg.(ir.IntArg))
	x, names := u.Src[0], u.Src[1]
	rank := len(s.shapes.Of(names))
	name := s.coordinate(names, index[axis:axis+rank])
	extent := s.shapes.Of(x)[axis]
	last := s.A.Add(extent, s.A.Index(-1))
	name = s.Simplify(s.A.Binary(ir.OpMin, s.A.Binary(ir.OpMax, name, s.A.Index(0)), last))
	full := append([]*ir.UOp(nil), index[:axis]...)
	full = append(append(full, name), index[axis+rank:]...)
	return s.at(x, full)
}

// movement translates the index of a movement op to its source's.
func (s *builder) movement(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	a, x := s.A, u.Src[0]
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
			out[axis] = s.Simplify(a.Sub(a.Add(from[axis], a.Index(-1)), index[axis]))
		}
	case ir.OpShrink:
		for k := range from {
			out[k] = s.Simplify(a.Add(index[k], u.Src[1+2*k]))
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
func (s *builder) pad(u *ir.UOp, from, index []*ir.UOp) *ir.UOp {
	a := s.A
	out := make([]*ir.UOp, len(from))
	var inside *ir.UOp
	both := func(c *ir.UOp) {
		c = s.Simplify(c)
		if inside == nil {
			inside = c
		} else if !c.IsInt(1) {
			inside = a.And(inside, c)
		}
	}
	for k := range from {
		before, after := u.Src[1+2*k], u.Src[2+2*k]
		out[k] = s.Simplify(a.Sub(index[k], before))
		if !before.IsInt(0) {
			both(a.Lt(a.Add(before, a.Index(-1)), index[k]))
		}
		if !after.IsInt(0) {
			both(a.Lt(index[k], a.Add(before, from[k])))
		}
		if expr.IsUnit(from[k]) {
			out[k] = a.Index(0)
		}
	}
	value := s.at(u.Src[0], out)
	if inside == nil || inside.IsInt(1) {
		return value
	}
	return s.SimplifyNode(a.Where(inside, value, s.Zero(u.DType)))
}
