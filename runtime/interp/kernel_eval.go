package interp

import (
	"context"
	"encoding/binary"
	"fmt"

	"tgc/ir"
	"tgc/packed"
)

// KernelBuffer is an argument of a kernel: plain elements (row-major at the
// extents' run-time values) or the bytes of a packed format.
type KernelBuffer struct {
	DType  ir.DType
	Data   []ir.Scalar
	Format string
	Bytes  []byte
}

// KernelOptions select how a kernel is evaluated.
type KernelOptions struct {
	// Float64 computes f32 operations in float64, without rounding: to compare
	// two forms without the noise of summation order.
	Float64 bool
}

// KernelStats counts what an evaluation executed.
type KernelStats struct {
	// FieldReads counts executed reads of packed fields, by slot and field
	// name ("2.qs").
	FieldReads map[string]int64
}

// EvalKernel evaluates a kernel (SINK of STOREs, pipeline form 2) by walking
// its expressions for every point of the store ranges. A node is computed once
// per assignment of its free ranges, so reduces and stages that are shared are
// evaluated once per scope. Every LOAD that is out of bounds is an error.
func EvalKernel(ctx context.Context, sink *ir.UOp, args []*KernelBuffer, vars map[string]int64, opt KernelOptions) (stats KernelStats, err error) {
	e := &kernelEval{
		args: args, vars: vars, opt: opt,
		free:  ir.NewFreeRanges(),
		cells: make(map[*ir.UOp]*kernelCell),
		state: make(map[*ir.UOp]*rangeState),
		reads: make(map[fieldKey]int64),
	}
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(kernelFault)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("interp: kernel: %w", fault.err)
		}
	}()
	if err := e.stores(ctx, sink.Src, 0); err != nil {
		return stats, err
	}
	stats.FieldReads = make(map[string]int64, len(e.reads))
	for key, n := range e.reads {
		stats.FieldReads[fmt.Sprintf("%d.%s", key.slot, key.field)] = n
	}
	return stats, nil
}

// fieldKey is a field of an argument.
type fieldKey struct {
	slot  int
	field string
}

// kernelFault carries an error out of the recursive walk.
type kernelFault struct{ err error }

func (e *kernelEval) fault(format string, args ...any) {
	panic(kernelFault{fmt.Errorf(format, args...)})
}

// rangeState is the current value of a RANGE and the time it was set.
type rangeState struct {
	value int64
	time  int64
}

// kernelCell is the remembered value of a node.
type kernelCell struct {
	value ir.Scalar
	time  int64 // when it was computed
	deps  []*rangeState
	stage map[string]ir.Scalar // elements of a STAGE in its scope
	tuple []ir.Scalar
}

type kernelEval struct {
	args  []*KernelBuffer
	vars  map[string]int64
	opt   KernelOptions
	clock int64
	free  *ir.FreeRanges
	cells map[*ir.UOp]*kernelCell
	state map[*ir.UOp]*rangeState
	reads map[fieldKey]int64
	// arg holds the operands of the combine lambda being evaluated.
	arg []ir.Scalar
}

func (e *kernelEval) rangeOf(r *ir.UOp) *rangeState {
	s, ok := e.state[r]
	if !ok {
		s = &rangeState{}
		e.state[r] = s
	}
	return s
}

func (s *rangeState) set(e *kernelEval, v int64) {
	if s.time > 0 && s.value == v {
		return
	}
	e.clock++
	s.value, s.time = v, e.clock
}

// stores runs STOREs inside the first depth of their loops, which are set.
// Neighbours that have the next loop in common run in it together, so that what
// they share is computed once.
func (e *kernelEval) stores(ctx context.Context, list []*ir.UOp, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(list) > 0 {
		ranges := list[0].Ranges()
		n := 1
		if len(ranges) == depth {
			for n < len(list) && len(list[n].Ranges()) == depth {
				n++
			}
			e.writeAll(list[:n])
			list = list[n:]
			continue
		}
		for n < len(list) && len(list[n].Ranges()) > depth && list[n].Ranges()[depth] == ranges[depth] {
			n++
		}
		extent := e.eval(ranges[depth].Src[0]).I
		r := e.rangeOf(ranges[depth])
		for i := range extent {
			r.set(e, i)
			if err := e.stores(ctx, list[:n], depth+1); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

// writeAll executes stores of one point: all values are computed before one is
// written, since a store may read what another overwrites.
func (e *kernelEval) writeAll(list []*ir.UOp) {
	type write struct {
		buf   *KernelBuffer
		at    int64
		value ir.Scalar
	}
	writes := make([]write, 0, len(list))
	for _, st := range list {
		at, ok := e.offset(st.Src[0], st.Indices())
		if !ok {
			continue // an index out of bounds is not written
		}
		buf := e.buffer(st.Src[0])
		value := e.eval(st.Src[1])
		if at >= int64(len(buf.Data)) {
			e.fault("store at element %d of a buffer of %d", at, len(buf.Data))
		}
		writes = append(writes, write{buf, at, value})
	}
	for _, w := range writes {
		w.buf.Data[w.at] = w.value
	}
}

func (e *kernelEval) buffer(param *ir.UOp) *KernelBuffer {
	slot := param.Arg.(ir.ParamArg).Slot
	if slot >= len(e.args) {
		e.fault("slot %d, have %d arguments", slot, len(e.args))
	}
	return e.args[slot]
}

// offset linearises an index; ok is false when it is out of bounds.
func (e *kernelEval) offset(buf *ir.UOp, index []*ir.UOp) (at int64, ok bool) {
	for k, extent := range buf.Src {
		n, i := e.eval(extent).I, e.eval(index[k]).I
		if i < 0 || i >= n {
			return 0, false
		}
		at = at*n + i
	}
	return at, true
}

// deps lists the ranges that a node depends on.
func (e *kernelEval) deps(u *ir.UOp) []*rangeState {
	free := e.free.Of(u)
	list := make([]*rangeState, len(free))
	for i, r := range free {
		list[i] = e.rangeOf(r)
	}
	return list
}

// eval returns the value of a node under the current ranges.
func (e *kernelEval) eval(u *ir.UOp) ir.Scalar {
	switch u.Op {
	case ir.OpConst:
		s, _ := u.Scalar()
		return s
	case ir.OpRange:
		return ir.Scalar{I: e.rangeOf(u).value}
	case ir.OpVar:
		v, ok := e.vars[u.Arg.(ir.VarArg).Name]
		if !ok {
			e.fault("no value for variable %s", u.Arg.(ir.VarArg).Name)
		}
		return ir.Scalar{I: v}
	case ir.OpArg:
		return e.arg[u.Arg.(ir.IntArg)]
	}
	c, fresh := e.cell(u)
	if fresh {
		return c.value
	}
	v := e.compute(u, c)
	c.value = v
	c.time = e.clock
	return v
}

// cell finds the memo of a node; fresh says that its value still holds.
func (e *kernelEval) cell(u *ir.UOp) (c *kernelCell, fresh bool) {
	c, ok := e.cells[u]
	if !ok {
		c = &kernelCell{deps: e.deps(u), time: -1}
		e.cells[u] = c
		return c, false
	}
	if c.time < 0 || e.arg != nil {
		return c, false
	}
	for _, r := range c.deps {
		if r.time > c.time {
			return c, false
		}
	}
	return c, true
}

func (e *kernelEval) compute(u *ir.UOp, c *kernelCell) ir.Scalar {
	switch u.Op {
	case ir.OpLoad:
		return e.load(u)
	case ir.OpField:
		return e.field(u)
	case ir.OpReduce:
		return e.reduce(u, c)[0]
	case ir.OpProj:
		return e.reduceComponent(u)
	case ir.OpAssume:
		v, lo, hi := e.eval(u.Src[0]), e.eval(u.Src[1]), e.eval(u.Src[2])
		if v.I < lo.I || v.I > hi.I {
			e.fault("assume: %d is not in %d..%d", v.I, lo.I, hi.I)
		}
		return v
	case ir.OpWhere:
		if e.eval(u.Src[0]).I != 0 {
			return e.eval(u.Src[1])
		}
		return e.eval(u.Src[2])
	}
	if !u.Op.IsElementwise() {
		e.fault("%s has no value in a kernel", u.Op)
	}
	var list [3]ir.Scalar
	for i, s := range u.Src {
		list[i] = e.eval(s)
	}
	return e.elementwise(u, list[:len(u.Src)])
}

// elementwise is ir.EvalScalar with the float64 mode and a fast way for the
// commonest float operations.
func (e *kernelEval) elementwise(u *ir.UOp, args []ir.Scalar) ir.Scalar {
	if u.DType == ir.F32 || u.DType == ir.F64 {
		var v float64
		switch u.Op {
		case ir.OpAdd:
			v = args[0].F + args[1].F
		case ir.OpSub:
			v = args[0].F - args[1].F
		case ir.OpMul:
			v = args[0].F * args[1].F
		default:
			if e.opt.Float64 && u.DType == ir.F32 {
				from := u.Src[len(u.Src)-1].DType
				if from == ir.F32 {
					from = ir.F64
				}
				return ir.EvalScalar(u.Op, ir.F64, from, args)
			}
			return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
		}
		if u.DType == ir.F32 && !e.opt.Float64 {
			v = float64(float32(v))
		}
		return ir.Scalar{F: v}
	}
	return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
}

// load reads a buffer, a table or an element of a stage.
func (e *kernelEval) load(u *ir.UOp) ir.Scalar {
	from := u.Src[0]
	if from.Op == ir.OpStage {
		return e.stageElement(from, u.Indices())
	}
	at, ok := e.offset(from, u.Indices())
	if !ok {
		var index []int64
		for _, x := range u.Indices() {
			index = append(index, e.eval(x).I)
		}
		e.fault("load at %v is out of bounds of %s %v", index, from.Op, e.extents(from))
	}
	if from.Op == ir.OpTable {
		return ir.DecodeTable(from.DType, from.Arg.(ir.TableArg).Data, int(at))
	}
	buf := e.buffer(from)
	if at >= int64(len(buf.Data)) {
		e.fault("load of element %d of a buffer of %d (slot %d)", at, len(buf.Data), from.Arg.(ir.ParamArg).Slot)
	}
	return buf.Data[at]
}

func (e *kernelEval) extents(u *ir.UOp) []int64 {
	var out []int64
	for _, x := range u.Src {
		out = append(out, e.eval(x).I)
	}
	return out
}

// stageElement computes an element of a stage at most once per scope.
func (e *kernelEval) stageElement(stage *ir.UOp, index []*ir.UOp) ir.Scalar {
	key := make([]byte, 0, 16)
	at := make([]int64, len(index))
	for k, x := range index {
		at[k] = e.eval(x).I
		if n := e.eval(stage.Src[1+k].Src[0]).I; at[k] < 0 || at[k] >= n {
			e.fault("stage read at %d of %d", at[k], n)
		}
		key = binary.AppendVarint(key, at[k])
	}
	c, fresh := e.cell(stage)
	if !fresh || c.stage == nil {
		c.stage = make(map[string]ir.Scalar)
		c.time = e.clock
	}
	if v, ok := c.stage[string(key)]; ok {
		return v
	}
	memo := c.stage
	for k, r := range stage.Src[1:] {
		e.rangeOf(r).set(e, at[k])
	}
	v := e.eval(stage.Src[0])
	memo[string(key)] = v
	return v
}

// field reads an element of a packed field.
func (e *kernelEval) field(u *ir.UOp) ir.Scalar {
	arg := u.Arg.(ir.FieldArg)
	f, ok := packed.Lookup(arg.Format)
	if !ok {
		e.fault("unknown packed format %q", arg.Format)
	}
	fd, ok := f.Field(arg.Field)
	if !ok {
		e.fault("%s has no field %q", arg.Format, arg.Field)
	}
	row, block, j := e.eval(u.Src[1]).I, e.eval(u.Src[2]).I, e.eval(u.Src[3]).I
	param := u.Src[0]
	k := e.eval(param.Src[len(param.Src)-1]).I
	blocks := k / int64(f.BlockElems)
	rows := int64(1)
	for _, x := range param.Src[:len(param.Src)-1] {
		rows *= e.eval(x).I
	}
	if row < 0 || row >= rows || block < 0 || block >= blocks || j < 0 || j >= int64(fd.Count) {
		e.fault("field %s.%s read at row %d, block %d, element %d: out of %d rows, %d blocks, %d elements", arg.Format, arg.Field, row, block, j, rows, blocks, fd.Count)
	}
	run, stride := int64(fd.Count), int64(0)
	if fd.Run > 0 {
		run, stride = int64(fd.Run), int64(fd.Stride)
	}
	size := int64(fd.DType.Size())
	at := (row*blocks+block)*int64(f.BlockBytes) + int64(fd.Offset) + j/run*stride + j%run*size
	e.reads[fieldKey{param.Arg.(ir.ParamArg).Slot, arg.Field}]++
	return ir.DecodeTable(fd.DType, string(e.buffer(param).Bytes[at:at+size]), 0)
}

// reduce folds a REDUCE over its range and returns every component. Component
// i of a tuple holds for the current values of the ranges that only it uses.
func (e *kernelEval) reduce(u *ir.UOp, c *kernelCell) []ir.Scalar {
	arg := u.Arg.(ir.ReduceArg)
	n := arg.N
	acc := make([]ir.Scalar, n)
	r := u.ReduceRange()
	count := e.eval(r.Src[0]).I
	state := e.rangeOf(r)
	if arg.Op != ir.OpInvalid {
		acc[0] = ir.ReduceIdentity(arg.Op, u.DType)
		for i := range count {
			state.set(e, i)
			acc[0] = e.fold(u, arg.Op, acc[0], e.eval(u.Src[0]))
		}
		return acc
	}
	for i := range n {
		acc[i] = e.eval(u.Src[n+1+i])
	}
	for i := range count {
		state.set(e, i)
		element := make([]ir.Scalar, n)
		for k := range n {
			element[k] = e.eval(u.Src[k])
		}
		acc = e.combine(u, acc, element)
	}
	c.tuple = acc
	return acc
}

// combine runs the lambda of a tuple reduce.
func (e *kernelEval) combine(u *ir.UOp, acc, element []ir.Scalar) []ir.Scalar {
	n := len(acc)
	saved := e.arg
	e.arg = append(append(make([]ir.Scalar, 0, 2*n), acc...), element...)
	out := make([]ir.Scalar, n)
	for i := range n {
		out[i] = e.eval(u.Src[2*n+1+i])
	}
	e.arg = saved
	return out
}

// reduceComponent evaluates a PROJ. The tuple's other components may depend on
// ranges that this one does not: they are folded at their current values, which
// cannot change this component.
func (e *kernelEval) reduceComponent(u *ir.UOp) ir.Scalar {
	tuple := u.Src[0]
	c, fresh := e.cell(tuple)
	if !fresh || c.tuple == nil {
		e.reduce(tuple, c)
		c.time = e.clock
	}
	return c.tuple[u.Arg.(ir.IntArg)]
}

func (e *kernelEval) fold(u *ir.UOp, op ir.Op, acc, v ir.Scalar) ir.Scalar {
	if op == ir.OpAdd && u.DType.IsFloat() {
		sum := acc.F + v.F
		if u.DType == ir.F32 && !e.opt.Float64 {
			sum = float64(float32(sum))
		}
		return ir.Scalar{F: sum}
	}
	dtype := u.DType
	if dtype == ir.F32 && e.opt.Float64 {
		dtype = ir.F64
	}
	return ir.EvalScalar(op, dtype, dtype, []ir.Scalar{acc, v})
}
