package interp

import (
	"context"
	"fmt"

	"tgc/ir"
)

// Array is a dense row-major value of the tensor evaluator.
type Array struct {
	DType ir.DType
	Shape []int
	Data  []ir.Scalar
}

// NewArray makes a zero array.
func NewArray(dtype ir.DType, shape ...int) *Array {
	return &Array{DType: dtype, Shape: shape, Data: make([]ir.Scalar, count(shape))}
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
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
	e := &tensorEval{in: in, values: make(map[*ir.UOp]*Array), arena: ir.NewArena()}
	e.shapes = ir.NewShapes(e.arena)
	for _, u := range ir.Toposort(root) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if u.DType == ir.Idx && u.Op != ir.OpIota || u.Op == ir.OpSink {
			continue // extents are evaluated where they stand
		}
		value, err := e.eval(u)
		if err != nil {
			return nil, fmt.Errorf("interp: %s: %w", u.Op, err)
		}
		e.values[u] = value
	}
	result = make(map[int64]*Array)
	for _, u := range root.Src {
		result[bufferOf(u)] = e.values[u]
	}
	return result, nil
}

func bufferOf(u *ir.UOp) int64 {
	for u.Op == ir.OpAssign {
		u = u.Src[0]
	}
	return u.Arg.(ir.BufferArg).ID
}

type tensorEval struct {
	in     TensorInputs
	arena  *ir.Arena
	shapes *ir.Shapes
	values map[*ir.UOp]*Array
}

// extent evaluates an Idx expression over VARs.
func (e *tensorEval) extent(u *ir.UOp) int64 {
	switch u.Op {
	case ir.OpConst:
		v, _ := u.Int()
		return v
	case ir.OpVar:
		return e.in.Vars[u.Arg.(ir.VarArg).Name]
	}
	args := make([]ir.Scalar, len(u.Src))
	for i, s := range u.Src {
		args[i] = ir.IntScalar(e.extent(s))
	}
	return ir.EvalScalar(u.Op, u.DType, ir.Idx, args).I
}

func (e *tensorEval) shape(u *ir.UOp) []int {
	dims := e.shapes.Of(u)
	shape := make([]int, len(dims))
	for i, d := range dims {
		shape[i] = int(e.extent(d))
	}
	return shape
}

// value is the array of a source; Idx scalars become rank-0 arrays.
func (e *tensorEval) value(u *ir.UOp) *Array {
	if v, ok := e.values[u]; ok {
		return v
	}
	return &Array{DType: ir.Idx, Data: []ir.Scalar{ir.IntScalar(e.extent(u))}}
}

func (e *tensorEval) eval(u *ir.UOp) (*Array, error) {
	out := NewArray(u.DType, e.shape(u)...)
	switch {
	case u.Op.IsMovement():
		e.move(u, out)
		return out, nil
	case u.Op.IsElementwise():
		e.elementwise(u, out)
		return out, nil
	}
	switch u.Op {
	case ir.OpConst:
		s, _ := u.Scalar()
		out.Data[0] = s
	case ir.OpBuffer:
		bound := e.in.Buffers[u.Arg.(ir.BufferArg).ID]
		if bound == nil || len(bound.Data) != len(out.Data) {
			return nil, fmt.Errorf("buffer %d of %d elements is not bound", u.Arg.(ir.BufferArg).ID, len(out.Data))
		}
		out.Data = bound.Data
	case ir.OpTable:
		for i := range out.Data {
			out.Data[i] = ir.DecodeTable(u.DType, u.Arg.(ir.TableArg).Data, i)
		}
	case ir.OpIota:
		for i := range out.Data {
			out.Data[i] = ir.ConstOf(u.DType, int64(i))
		}
	case ir.OpDecode, ir.OpCopy, ir.OpContiguous, ir.OpDetach, ir.OpAfter:
		out.Data = e.value(u.Src[0]).Data
	case ir.OpReduceAxes:
		e.reduce(u, out)
	case ir.OpScan:
		e.scan(u, out)
	case ir.OpGather:
		e.gather(u, out)
	case ir.OpAssign:
		e.assign(u, out)
	case ir.OpScatterAdd:
		e.scatterAdd(u, out)
	default:
		return nil, fmt.Errorf("no meaning in the tensor graph")
	}
	return out, nil
}

func (e *tensorEval) elementwise(u *ir.UOp, out *Array) {
	args := make([]ir.Scalar, len(u.Src))
	sources := make([]*Array, len(u.Src))
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
		out.Data[p] = ir.EvalScalar(u.Op, u.DType, src, args)
	}
}

// move fills a movement op point by point from its source coordinates.
func (e *tensorEval) move(u *ir.UOp, out *Array) {
	from := e.value(u.Src[0])
	if u.Op == ir.OpReshape {
		out.Data = from.Data
		return
	}
	arg := make([]int, len(u.Src)-1)
	for i, s := range u.Src[1:] {
		arg[i] = int(e.extent(s))
	}
	at, source := make([]int, len(out.Shape)), make([]int, len(from.Shape))
	for p := range out.Data {
		inside := true
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
		default:
			for k := range at {
				switch u.Op {
				case ir.OpExpand:
					source[k] = min(at[k], from.Shape[k]-1)
				case ir.OpPad:
					source[k] = at[k] - arg[2*k]
				case ir.OpShrink:
					source[k] = at[k] + arg[2*k]
				}
				inside = inside && source[k] >= 0 && source[k] < from.Shape[k]
			}
		}
		if inside {
			out.Data[p] = from.Data[flat(from.Shape, source)]
		}
		advance(out.Shape, at)
	}
}

func flat(shape, at []int) int {
	n := 0
	for k := range shape {
		n = n*shape[k] + at[k]
	}
	return n
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

func (e *tensorEval) reduce(u *ir.UOp, out *Array) {
	from, op := e.value(u.Src[0]), u.Arg.(ir.ReduceArg).Op
	for p := range out.Data {
		out.Data[p] = ir.ReduceIdentity(op, u.DType)
	}
	at, into := make([]int, len(from.Shape)), make([]int, len(from.Shape))
	for p := range from.Data {
		copy(into, at)
		for _, axis := range u.Src[1:] {
			into[e.extent(axis)] = 0
		}
		q := flat(out.Shape, into)
		out.Data[q] = ir.EvalScalar(op, u.DType, u.DType, []ir.Scalar{out.Data[q], from.Data[p]})
		advance(from.Shape, at)
	}
}

func (e *tensorEval) scan(u *ir.UOp, out *Array) {
	from, axis := e.value(u.Src[0]), int(u.Arg.(ir.IntArg))
	step := count(out.Shape[axis+1:])
	for p := range out.Data {
		out.Data[p] = from.Data[p]
		if p/step%out.Shape[axis] > 0 {
			out.Data[p] = ir.EvalScalar(ir.OpAdd, u.DType, u.DType, []ir.Scalar{out.Data[p-step], from.Data[p]})
		}
	}
}

func (e *tensorEval) gather(u *ir.UOp, out *Array) {
	from, index, axis := e.value(u.Src[0]), e.value(u.Src[1]), int(u.Arg.(ir.IntArg))
	inner, points := count(from.Shape[axis+1:]), len(index.Data)
	for p := range out.Data {
		outer, rest := p/(points*inner), p%(points*inner)
		i := min(max(index.Data[rest/inner].I, 0), int64(from.Shape[axis]-1))
		out.Data[p] = from.Data[(outer*from.Shape[axis]+int(i))*inner+rest%inner]
	}
}

// coordinates returns where point p of the values goes, or -1 if outside.
func (e *tensorEval) coordinates(u *ir.UOp, out *Array, p int) int {
	n := 0
	for k, s := range u.Src[2:] {
		c := e.value(s)
		i := c.Data[0].I
		if len(c.Shape) > 0 {
			i = c.Data[p].I
		}
		if i < 0 || i >= int64(out.Shape[k]) {
			return -1
		}
		n = n*out.Shape[k] + int(i)
	}
	return n
}

func (e *tensorEval) assign(u *ir.UOp, out *Array) {
	copy(out.Data, e.value(u.Src[0]).Data)
	values := e.value(u.Src[1])
	for p, v := range values.Data {
		if at := e.coordinates(u, out, p); at >= 0 {
			out.Data[at] = v
		}
	}
}

func (e *tensorEval) scatterAdd(u *ir.UOp, out *Array) {
	copy(out.Data, e.value(u.Src[0]).Data)
	for p, v := range e.value(u.Src[1]).Data {
		if at := e.coordinates(u, out, p); at >= 0 {
			out.Data[at] = ir.EvalScalar(ir.OpAdd, u.DType, u.DType, []ir.Scalar{out.Data[at], v})
		}
	}
}
