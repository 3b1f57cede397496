package interp

import (
	"context"
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
)

// ArrayOf is a dense row-major value of the tensor evaluator.
type ArrayOf[T any] struct {
	DType ir.DType
	Shape []int
	Data  []T
}

// Array is one of plain values.
type Array = ArrayOf[ir.Scalar]

// NewArray makes a zero array.
func NewArray(dtype ir.DType, shape ...int) *Array {
	return &Array{DType: dtype, Shape: shape, Data: make([]ir.Scalar, lists.Product(shape))}
}

// Elements are what a tensor graph is computed with.
type Elements[T any] interface {
	// Exact is a value that the graph states.
	Exact(dtype ir.DType, s ir.Scalar) T
	Apply(op ir.Op, dtype, src ir.DType, args []T) T
	// Fold begins with a value, or with what the op gives of nothing.
	Fold(op ir.Op, dtype ir.DType, start ...T) Fold[T]
	// Index is a value as an index; what an unknown one leads to is Unknown.
	Index(v T) (i int64, known bool)
	Unknown(v T) T
}

// Fold takes in values one by one; Result may be asked for after each.
type Fold[T any] interface {
	Add(v T)
	Result() T
}

// TensorInputs binds what a tensor graph reads.
type TensorInputs struct {
	Buffers map[int64]*Array // by buffer ID; packed buffers hold decoded f32 values
	Vars    map[string]int64
}

// EvalTensor computes a tensor graph op by op (pipeline form 1), one whole
// array per node: the slow meaning that everything faster is compared with.
// The root is a SINK of ASSIGNs; the result maps each assigned buffer to its
// last version. Inputs are not changed.
func EvalTensor(ctx context.Context, root *ir.UOp, in TensorInputs) (result map[int64]*Array, err error) {
	e := NewTensorEval[ir.Scalar](scalars{}, in.Buffers, in.Vars)
	for _, u := range e.Nodes(root) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.Compute(u); err != nil {
			return nil, err
		}
	}
	return e.Results(root), nil
}

// scalars are plain values.
type scalars struct{}

func (scalars) Exact(_ ir.DType, s ir.Scalar) ir.Scalar { return s }
func (scalars) Index(s ir.Scalar) (int64, bool)         { return s.I, true }
func (scalars) Unknown(s ir.Scalar) ir.Scalar           { return s }

func (scalars) Apply(op ir.Op, dtype, src ir.DType, args []ir.Scalar) ir.Scalar {
	return ir.EvalScalar(op, dtype, src, args)
}

func (scalars) Fold(op ir.Op, dtype ir.DType, start ...ir.Scalar) Fold[ir.Scalar] {
	f := &scalarFold{op: op, dtype: dtype, value: ir.ReduceIdentity(op, dtype)}
	if len(start) > 0 {
		f.value = start[0]
	}
	return f
}

type scalarFold struct {
	op    ir.Op
	dtype ir.DType
	value ir.Scalar
}

func (f *scalarFold) Add(v ir.Scalar) {
	f.value = ir.EvalScalar(f.op, f.dtype, f.dtype, []ir.Scalar{f.value, v})
}

func (f *scalarFold) Result() ir.Scalar { return f.value }

// TensorEval computes a tensor graph node by node.
type TensorEval[T any] struct {
	Elements Elements[T]
	Buffers  map[int64]*ArrayOf[T] // may be longer than what the graph reads
	Vars     map[string]int64
	Values   map[*ir.UOp]*ArrayOf[T] // of the nodes that were computed

	shapes *ir.Shapes
	err    error
}

// NewTensorEval makes an evaluator over some contents.
func NewTensorEval[T any](elements Elements[T], buffers map[int64]*ArrayOf[T], vars map[string]int64) *TensorEval[T] {
	return &TensorEval[T]{Elements: elements, Buffers: buffers, Vars: vars, Values: make(map[*ir.UOp]*ArrayOf[T]), shapes: ir.NewShapes(ir.NewArena())}
}

// Nodes lists the nodes under a root that are not computed yet, sources first.
// Extents are evaluated where they stand.
func (e *TensorEval[T]) Nodes(root *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	for _, u := range ir.Toposort(root) {
		if e.Values[u] == nil && (u.DType != ir.Idx || u.Op == ir.OpIota) && u.Op != ir.OpSink {
			list = append(list, u)
		}
	}
	return list
}

// Results are the last versions of the buffers that a SINK of ASSIGNs writes.
func (e *TensorEval[T]) Results(sink *ir.UOp) map[int64]*ArrayOf[T] {
	out := make(map[int64]*ArrayOf[T])
	for _, u := range sink.Src {
		b := u
		for b.Op == ir.OpAssign {
			b = b.Src[0]
		}
		out[b.Arg.(ir.BufferArg).ID] = e.Values[u]
	}
	return out
}

func (e *TensorEval[T]) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("interp: "+format, args...)
	}
}

// extent evaluates an Idx expression over VARs.
func (e *TensorEval[T]) extent(u *ir.UOp) int64 {
	switch u.Op {
	case ir.OpConst:
		v, _ := u.Int()
		return v
	case ir.OpVar:
		name := u.Arg.(ir.VarArg).Name
		v, ok := e.Vars[name]
		if !ok {
			e.fail("no value for variable %s", name)
		}
		return v
	}
	args := lists.Map(u.Src, func(s *ir.UOp) ir.Scalar { return ir.IntScalar(e.extent(s)) })
	return ir.EvalScalar(u.Op, u.DType, ir.Idx, args).I
}

func (e *TensorEval[T]) extents(dims []*ir.UOp) []int {
	return lists.Map(dims, func(d *ir.UOp) int { return int(e.extent(d)) })
}

// value is the array of a source; Idx scalars become rank-0 arrays.
func (e *TensorEval[T]) value(u *ir.UOp) *ArrayOf[T] {
	if v, ok := e.Values[u]; ok {
		return v
	}
	return &ArrayOf[T]{DType: ir.Idx, Data: []T{e.Elements.Exact(ir.Idx, ir.IntScalar(e.extent(u)))}}
}

// Compute computes a node whose sources are computed.
func (e *TensorEval[T]) Compute(u *ir.UOp) error {
	out := &ArrayOf[T]{DType: u.DType, Shape: e.extents(e.shapes.Of(u))}
	if e.err != nil {
		return e.err
	}
	n := lists.Product(out.Shape)
	switch u.Op {
	case ir.OpBuffer:
		id := u.Arg.(ir.BufferArg).ID
		if b := e.Buffers[id]; b != nil && len(b.Data) >= n {
			out.Data = b.Data[:n]
		} else {
			e.fail("buffer %d of %d elements is not bound", id, n)
		}
	case ir.OpReshape, ir.OpDecode, ir.OpCopy, ir.OpContiguous, ir.OpStageRow, ir.OpDetach, ir.OpAfter:
		out.Data = e.value(u.Src[0]).Data
	default:
		out.Data = make([]T, n)
		e.fill(u, out)
	}
	e.Values[u] = out
	return e.err
}

func (e *TensorEval[T]) fill(u *ir.UOp, out *ArrayOf[T]) {
	exact := func(of func(i int) ir.Scalar) {
		for i := range out.Data {
			out.Data[i] = e.Elements.Exact(u.DType, of(i))
		}
	}
	switch {
	case u.Op.IsMovement():
		e.move(u, out)
	case u.Op.IsElementwise():
		e.elementwise(u, out)
	case u.Op == ir.OpConst:
		exact(func(int) ir.Scalar { s, _ := u.Scalar(); return s })
	case u.Op == ir.OpTable:
		exact(func(i int) ir.Scalar { return ir.DecodeTable(u.DType, u.Arg.(ir.TableArg).Data, i) })
	case u.Op == ir.OpIota:
		exact(func(i int) ir.Scalar { return ir.ConstOf(u.DType, int64(i)) })
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
		e.fail("%s has no meaning in the tensor graph", u.Op)
	}
}

// at is element p of an array; a scalar has one for all.
func (a *ArrayOf[T]) at(p int) T {
	if len(a.Shape) == 0 {
		return a.Data[0]
	}
	return a.Data[p]
}

func (e *TensorEval[T]) elementwise(u *ir.UOp, out *ArrayOf[T]) {
	args := make([]T, len(u.Src))
	sources := lists.Map(u.Src, e.value)
	src := sources[len(sources)-1].DType
	for p := range out.Data {
		for i, s := range sources {
			args[i] = s.at(p)
		}
		out.Data[p] = e.Elements.Apply(u.Op, u.DType, src, args)
	}
}

// move fills a movement op point by point from its source coordinates.
func (e *TensorEval[T]) move(u *ir.UOp, out *ArrayOf[T]) {
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

func (e *TensorEval[T]) reduce(u *ir.UOp, out *ArrayOf[T]) {
	from, op := e.value(u.Src[0]), u.Arg.(ir.ReduceArg).Op
	folds := lists.Make(len(out.Data), func(int) Fold[T] { return e.Elements.Fold(op, u.DType) })
	at, into := make([]int, len(from.Shape)), make([]int, len(from.Shape))
	for p := range from.Data {
		copy(into, at)
		for _, axis := range u.Src[1:] {
			into[e.extent(axis)] = 0
		}
		q, _ := flat(out.Shape, into)
		folds[q].Add(from.Data[p])
		advance(from.Shape, at)
	}
	for p := range folds {
		out.Data[p] = folds[p].Result()
	}
}

func (e *TensorEval[T]) scan(u *ir.UOp, out *ArrayOf[T]) {
	from, axis := e.value(u.Src[0]), int(u.Arg.(ir.IntArg))
	step, n := lists.Product(out.Shape[axis+1:]), out.Shape[axis]
	for first := range out.Data {
		if first/step%n != 0 {
			continue
		}
		sum := e.Elements.Fold(ir.OpAdd, u.DType, from.Data[first])
		out.Data[first] = sum.Result()
		for p := first + step; p < first+n*step; p += step {
			sum.Add(from.Data[p])
			out.Data[p] = sum.Result()
		}
	}
}

func (e *TensorEval[T]) gather(u *ir.UOp, out *ArrayOf[T]) {
	from, index, axis := e.value(u.Src[0]), e.value(u.Src[1]), int(u.Arg.(ir.IntArg))
	inner, points := lists.Product(from.Shape[axis+1:]), len(index.Data)
	for p := range out.Data {
		outer, rest := p/(points*inner), p%(points*inner)
		i, known := e.Elements.Index(index.Data[rest/inner])
		if from.Shape[axis] == 0 || !known {
			out.Data[p] = e.Elements.Unknown(out.Data[p])
			continue
		}
		i = min(max(i, 0), int64(from.Shape[axis]-1))
		out.Data[p] = from.Data[(outer*from.Shape[axis]+int(i))*inner+rest%inner]
	}
}

// eachTarget calls f with the values that an ASSIGN or SCATTER_ADD writes, where
// each goes, and whether that is inside and known.
func (e *TensorEval[T]) eachTarget(u *ir.UOp, out *ArrayOf[T], f func(v T, at int, inside, known bool)) {
	at := make([]int, len(out.Shape))
	for p, v := range e.value(u.Src[1]).Data {
		known := true
		for k, s := range u.Src[2:] {
			i, ok := e.Elements.Index(e.value(s).at(p))
			at[k] = int(i)
			known = known && ok
		}
		q, inside := flat(out.Shape, at)
		f(v, q, inside, known)
	}
}

func (e *TensorEval[T]) assign(u *ir.UOp, out *ArrayOf[T]) {
	copy(out.Data, e.value(u.Src[0]).Data)
	lost := false
	e.eachTarget(u, out, func(v T, at int, inside, known bool) {
		lost = lost || !known
		if inside {
			out.Data[at] = v
		}
	})
	for i := range out.Data {
		if lost {
			out.Data[i] = e.Elements.Unknown(out.Data[i])
		}
	}
}

// scatterAdd sums what meets at each point.
func (e *TensorEval[T]) scatterAdd(u *ir.UOp, out *ArrayOf[T]) {
	sums := make([]Fold[T], len(out.Data))
	for p, n := range e.value(u.Src[0]).Data {
		sums[p] = e.Elements.Fold(ir.OpAdd, u.DType, n)
	}
	e.eachTarget(u, out, func(v T, at int, inside, known bool) {
		switch {
		case !known:
			for _, sum := range sums {
				sum.Add(e.Elements.Unknown(v))
			}
		case inside:
			sums[at].Add(v)
		}
	})
	for p := range sums {
		out.Data[p] = sums[p].Result()
	}
}
