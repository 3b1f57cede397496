package testkit

import (
	"fmt"
	"math"

	"tgc/ir"
)

// Number is a value with what may differ between two right evaluations of it.
type Number struct {
	ir.Scalar
	// Error bounds the difference between any two evaluations: 0 means equal
	// bits, +Inf that nothing is known.
	Error float64
	// Magnitude is the sum of the absolute values of the terms that the value
	// was added up from: rounding errors are relative to this.
	Magnitude float64
	// Residual is what rounding took from a product: a sum of it may be
	// contracted to FMA, which leaves that rounding out.
	Residual float64
	// Origin tells inexact values apart: two numbers with one origin are one
	// computed value, whatever it is. 0 for exact ones.
	Origin int32
}

// Numbers is a dense row-major array of them.
type Numbers struct {
	DType ir.DType
	Shape []int
	Data  []Number
}

// Eager evaluates tensor-graph nodes one whole array at a time.
type Eager struct {
	Vars    map[string]int64
	Buffers map[int64]*Numbers // by buffer ID; packed buffers decoded

	// precision of f32: rounded, or float64 throughout.
	precision
	shapes *ir.Shapes
	memo   map[*ir.UOp]*Numbers
	wild   map[*ir.UOp]bool // nodes that an infinity or NaN went into
	made   int32            // inexact values so far
}

// NewEager makes an evaluator over some contents.
func NewEager(buffers map[int64]*Numbers, vars map[string]int64) *Eager {
	return &Eager{Vars: vars, Buffers: buffers, shapes: ir.NewShapes(ir.NewArena()), memo: make(map[*ir.UOp]*Numbers), wild: make(map[*ir.UOp]bool)}
}

// Results evaluates a SINK of ASSIGNs: the last version of each buffer.
func (e *Eager) Results(sink *ir.UOp) map[int64]*Numbers {
	out := make(map[int64]*Numbers)
	for _, u := range sink.Src {
		out[bufferOf(u)] = e.Eval(u)
	}
	return out
}

func bufferOf(u *ir.UOp) int64 {
	for u.Op == ir.OpAssign {
		u = u.Src[0]
	}
	return u.Arg.(ir.BufferArg).ID
}

// Eval computes a node and all that it depends on.
func (e *Eager) Eval(root *ir.UOp) *Numbers {
	if v, ok := e.memo[root]; ok {
		return v
	}
	for _, u := range ir.Toposort(root) {
		if u.DType == ir.Idx && u.Op != ir.OpIota || u.Op == ir.OpSink {
			continue // extents are evaluated where they stand
		}
		if _, ok := e.memo[u]; !ok {
			e.memo[u] = e.node(u)
			e.wild[u] = e.isWild(u)
		}
	}
	return e.memo[root]
}

// isWild reports that u or what it was made of is not finite.
func (e *Eager) isWild(u *ir.UOp) bool {
	for _, s := range u.Src {
		if e.wild[s] {
			return true
		}
	}
	for _, n := range e.memo[u].Data {
		if math.IsInf(n.F, 0) || math.IsNaN(n.F) {
			return true
		}
	}
	return false
}

// extent evaluates an Idx expression over VARs.
func (e *Eager) extent(u *ir.UOp) int64 {
	switch u.Op {
	case ir.OpConst:
		v, _ := u.Int()
		return v
	case ir.OpVar:
		v, ok := e.Vars[u.Arg.(ir.VarArg).Name]
		if !ok {
			panic("testkit: no value for VAR " + u.Arg.(ir.VarArg).Name)
		}
		return v
	}
	args := make([]ir.Scalar, len(u.Src))
	for i, s := range u.Src {
		args[i] = ir.IntScalar(e.extent(s))
	}
	return ir.EvalScalar(u.Op, u.DType, ir.Idx, args).I
}

func (e *Eager) extents(dims []*ir.UOp) []int {
	shape := make([]int, len(dims))
	for i, d := range dims {
		shape[i] = int(e.extent(d))
	}
	return shape
}

// value is the array of a source; an Idx scalar becomes a rank-0 array.
func (e *Eager) value(u *ir.UOp) *Numbers {
	if v, ok := e.memo[u]; ok {
		return v
	}
	return &Numbers{DType: ir.Idx, Data: []Number{exact(ir.Idx, ir.IntScalar(e.extent(u)))}}
}

// exact is a number that is the same in every evaluation.
func exact(dtype ir.DType, s ir.Scalar) Number {
	n := Number{Scalar: s}
	if dtype.IsFloat() {
		n.Magnitude = math.Abs(s.F)
	}
	return n
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func (e *Eager) node(u *ir.UOp) *Numbers {
	out := &Numbers{DType: u.DType, Shape: e.extents(e.shapes.Of(u))}
	switch {
	case u.Op == ir.OpBuffer:
		id := u.Arg.(ir.BufferArg).ID
		b := e.Buffers[id]
		if b == nil || len(b.Data) < product(out.Shape) {
			panic(fmt.Sprintf("testkit: buffer %d of %v is not bound", id, out.Shape))
		}
		out.Data = b.Data[:product(out.Shape)]
		return out
	case u.Op == ir.OpReshape, u.Op == ir.OpDecode, u.Op == ir.OpCopy, u.Op == ir.OpContiguous, u.Op == ir.OpDetach, u.Op == ir.OpAfter:
		out.Data = e.value(u.Src[0]).Data
		return out
	}
	out.Data = make([]Number, product(out.Shape))
	switch {
	case u.Op.IsMovement():
		e.move(u, out)
	case u.Op.IsElementwise():
		e.elementwise(u, out)
	case u.Op == ir.OpConst:
		s, _ := u.Scalar()
		out.Data[0] = exact(u.DType, s)
	case u.Op == ir.OpTable:
		for i := range out.Data {
			out.Data[i] = exact(u.DType, ir.DecodeTable(u.DType, u.Arg.(ir.TableArg).Data, i))
		}
	case u.Op == ir.OpIota:
		for i := range out.Data {
			out.Data[i] = exact(u.DType, ir.ConstOf(u.DType, int64(i)))
		}
	case u.Op == ir.OpReduceAxes:
		e.reduce(u, out)
	case u.Op == ir.OpScan:
		e.scan(u, out)
	case u.Op == ir.OpGather:
		e.gather(u, out)
	case u.Op == ir.OpAssign:
		e.assign(u, out)
	case u.Op == ir.OpScatterAdd:
		e.scatterAdd(u, out)
	default:
		panic(fmt.Sprintf("testkit: %s has no eager meaning", u.Op))
	}
	return out
}

func (e *Eager) elementwise(u *ir.UOp, out *Numbers) {
	args := make([]Number, len(u.Src))
	sources := make([]*Numbers, len(u.Src))
	for i, s := range u.Src {
		sources[i] = e.value(s)
	}
	src := sources[len(sources)-1].DType
	for p := range out.Data {
		for i, s := range sources {
			if len(s.Shape) == 0 {
				args[i] = s.Data[0]
			} else {
				args[i] = s.Data[p]
			}
		}
		out.Data[p] = e.named(e.apply(u.Op, u.DType, src, args))
	}
}

// named gives an inexact value that was just computed an origin.
func (e *Eager) named(n Number) Number {
	if n.Error != 0 && n.Origin == 0 {
		e.made++
		n.Origin = e.made
	}
	return n
}

// move fills a movement op point by point from its source coordinates.
func (e *Eager) move(u *ir.UOp, out *Numbers) {
	from := e.value(u.Src[0])
	arg := e.extents(u.Src[1:])
	at, source := make([]int, len(out.Shape)), make([]int, len(from.Shape))
	for p := range out.Data {
		switch u.Op {
		case ir.OpPermute:
			for k, axis := range u.Arg.(ir.AxesArg).List() {
				source[axis] = at[k]
			}
		case ir.OpFlip:
			copy(source, at)
			for _, axis := range u.Arg.(ir.AxesArg).List() {
				source[axis] = out.Shape[axis] - 1 - at[axis]
			}
		case ir.OpExpand:
			for k := range at {
				source[k] = min(at[k], from.Shape[k]-1)
			}
		case ir.OpPad:
			for k := range at {
				source[k] = at[k] - arg[2*k]
			}
		case ir.OpShrink:
			for k := range at {
				source[k] = at[k] + arg[2*k]
			}
		}
		if q, inside := flat(from.Shape, source); inside {
			out.Data[p] = from.Data[q]
		}
		advance(out.Shape, at)
	}
}

// flat is the row-major position of a point, and whether it lies inside.
func flat(shape, at []int) (n int, inside bool) {
	for k := range shape {
		if at[k] < 0 || at[k] >= shape[k] {
			return 0, false
		}
		n = n*shape[k] + at[k]
	}
	return n, true
}

func advance(shape, at []int) {
	for k := len(at) - 1; k >= 0; k-- {
		at[k]++
		if at[k] < shape[k] {
			return
		}
		at[k] = 0
	}
}

func (e *Eager) reduce(u *ir.UOp, out *Numbers) {
	from, op := e.value(u.Src[0]), u.Arg.(ir.ReduceArg).Op
	sums := make([]fold, len(out.Data))
	for p := range sums {
		sums[p] = e.fold(op, u.DType)
	}
	at, into := make([]int, len(from.Shape)), make([]int, len(from.Shape))
	for p := range from.Data {
		copy(into, at)
		for _, axis := range u.Src[1:] {
			into[e.extent(axis)] = 0
		}
		q, _ := flat(out.Shape, into)
		sums[q].add(from.Data[p])
		advance(from.Shape, at)
	}
	for p := range sums {
		out.Data[p] = e.named(sums[p].result())
		if sums[p].count == 0 && e.wild[u.Src[0]] {
			// The rules assume finite factors: one that moves out of an empty
			// sum, 1/0 of an empty softmax, meets the sum's 0.
			out.Data[p].Error = math.Inf(1)
		}
	}
}

func (e *Eager) scan(u *ir.UOp, out *Numbers) {
	from, axis := e.value(u.Src[0]), int(u.Arg.(ir.IntArg))
	step := product(out.Shape[axis+1:])
	for p := range out.Data {
		sum := e.fold(ir.OpAdd, u.DType)
		for q := p - p/step%out.Shape[axis]*step; q <= p; q += step {
			sum.add(from.Data[q])
		}
		out.Data[p] = e.named(sum.result())
	}
}

func (e *Eager) gather(u *ir.UOp, out *Numbers) {
	from, index, axis := e.value(u.Src[0]), e.value(u.Src[1]), int(u.Arg.(ir.IntArg))
	inner, points := product(from.Shape[axis+1:]), len(index.Data)
	for p := range out.Data {
		outer, rest := p/(points*inner), p%(points*inner)
		at := index.Data[rest/inner]
		if from.Shape[axis] == 0 || at.Error != 0 {
			out.Data[p].Error = math.Inf(1)
			continue
		}
		i := min(max(at.I, 0), int64(from.Shape[axis]-1))
		out.Data[p] = from.Data[(outer*from.Shape[axis]+int(i))*inner+rest%inner]
	}
}

func (e *Eager) assign(u *ir.UOp, out *Numbers) {
	copy(out.Data, e.value(u.Src[0]).Data)
	at := make([]int, len(out.Shape))
	for p, v := range e.value(u.Src[1]).Data {
		known := true
		for k, s := range u.Src[2:] {
			c := e.value(s)
			n := c.Data[0]
			if len(c.Shape) > 0 {
				n = c.Data[p]
			}
			at[k] = int(n.I)
			known = known && n.Error == 0
		}
		if !known {
			for i := range out.Data {
				out.Data[i].Error = math.Inf(1)
			}
			return
		}
		if q, inside := flat(out.Shape, at); inside {
			out.Data[q] = v
		}
	}
}

// scatterAdd sums what meets at each point, in any order.
func (e *Eager) scatterAdd(u *ir.UOp, out *Numbers) {
	sums := make([]fold, len(out.Data))
	for p, n := range e.value(u.Src[0]).Data {
		sums[p] = e.fold(ir.OpAdd, u.DType)
		sums[p].add(n)
	}
	at := make([]int, len(out.Shape))
	for p, v := range e.value(u.Src[1]).Data {
		known := true
		for k, s := range u.Src[2:] {
			c := e.value(s)
			n := c.Data[0]
			if len(c.Shape) > 0 {
				n = c.Data[p]
			}
			at[k] = int(n.I)
			known = known && n.Error == 0
		}
		if q, inside := flat(out.Shape, at); inside && known {
			sums[q].add(v)
		} else if !known {
			v.Error = math.Inf(1)
			for q := range sums {
				sums[q].add(v)
			}
		}
	}
	for p := range sums {
		out.Data[p] = e.named(sums[p].result())
	}
}

// AtExtents cuts the buffers that a graph names to their shapes under vars.
func AtExtents(sink *ir.UOp, buffers map[int64]*Numbers, vars map[string]int64) map[int64]*Numbers {
	e := NewEager(buffers, vars)
	out := make(map[int64]*Numbers)
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpBuffer {
			out[u.Arg.(ir.BufferArg).ID] = e.Eval(u)
		}
	}
	return out
}
