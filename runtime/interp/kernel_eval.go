package interp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"tgc/internal/lists"
	"tgc/ir"
)

// KernelBuffer is an argument of a kernel: plain elements (row-major at the
// extents' run-time values) or the bytes of a packed format. Plain elements that are
// only read may be bytes too, which are decoded when they are.
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

	// Noise, with Float64, errs on every operation by up to NoiseUnits roundings of f32: what
	// several evaluations differ by is what rounding in any order may do to a result.
	Noise *rand.Rand
}

// NoiseUnits is how many roundings an operation with noise errs by, at most. Orders of a sum
// differ by less for each of its terms.
const NoiseUnits = 8

// A sum errs with every term by its rounding of what has been summed up by then. That depends on
// the order: where neighbours cancel, sums in order stay small, and sums of every other term do
// not. Of k of n terms in any order the square of the sum is on average
//
//	k/n * (1 - (k-1)/(n-1)) * sum(x^2) + k*(k-1)/(n*(n-1)) * sum(x)^2
//
// which is no more than sum(x^2) + sum(x)^2: so noise takes the larger of the sum so far and of
// the root of the sum of the squares of its terms. Of random terms both are alike.
type summed struct {
	opt     *KernelOptions
	squares float64
}

// noisy is the sum with noise after v was added.
func (s *summed) noisy(sum, v float64) float64 {
	if s.opt.Noise == nil {
		return sum
	}
	s.squares += v * v
	scale := max(math.Abs(sum), math.Sqrt(s.squares))
	if math.IsInf(scale, 0) || math.IsNaN(scale) {
		return sum
	}
	return sum + scale*NoiseUnits*0x1p-24*(2*s.opt.Noise.Float64()-1)
}

// noisy is v with noise, if noise is asked for.
func (o *KernelOptions) noisy(v float64) float64 {
	if o.Noise == nil {
		return v
	}
	return v * (1 + NoiseUnits*0x1p-24*(2*o.Noise.Float64()-1))
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
	e := newKernelEval(args, vars, opt)
	defer catchFault(&err)
	if err := e.stores(ctx, e.cell(sink).src, 0); err != nil {
		return stats, err
	}
	stats.FieldReads = e.fieldReads()
	return stats, nil
}

func newKernelEval(args []*KernelBuffer, vars map[string]int64, opt KernelOptions) *kernelEval {
	return &kernelEval{
		args: args, vars: vars, opt: opt,
		free:  ir.NewFreeRanges(),
		cells: make(map[*ir.UOp]*kernelCell),
	}
}

// catchFault makes an error of a fault of the walk.
func catchFault(err *error) {
	if r := recover(); r != nil {
		fault, ok := r.(kernelFault)
		if !ok {
			panic(r)
		}
		*err = fmt.Errorf("interp: kernel: %w", fault.err)
	}
}

// kernelFault carries an error out of the recursive walk.
type kernelFault struct{ err error }

func (e *kernelEval) fault(format string, args ...any) {
	panic(kernelFault{fmt.Errorf(format, args...)})
}

type kernelEval struct {
	args  []*KernelBuffer
	vars  map[string]int64
	opt   KernelOptions
	clock int64
	free  *ir.FreeRanges
	cells map[*ir.UOp]*kernelCell
	// arg holds the operands of the combine lambda being evaluated.
	arg []ir.Scalar
	// writes is room for those of one point.
	writes []kernelWrite
}

// stores runs STOREs inside the first depth of their loops, which are set.
// Neighbours that have the next loop in common run in it together, so that what
// they share is computed once.
func (e *kernelEval) stores(ctx context.Context, list []*kernelCell, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(list) > 0 {
		ranges := list[0].ranges()
		n := 1
		if len(ranges) == depth {
			for n < len(list) && len(list[n].ranges()) == depth {
				n++
			}
			e.writeAll(list[:n])
			list = list[n:]
			continue
		}
		for n < len(list) && len(list[n].ranges()) > depth && list[n].ranges()[depth] == ranges[depth] {
			n++
		}
		loop := ranges[depth]
		for i := range e.eval(loop.src[0]).I {
			loop.bound.set(e, i)
			if err := e.stores(ctx, list[:n], depth+1); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

// kernelWrite is a value on its way to a buffer.
type kernelWrite struct {
	buf   *KernelBuffer
	at    int64
	value ir.Scalar
}

// writeAll executes stores of one point: all values are computed before one is
// written, since a store may read what another overwrites.
func (e *kernelEval) writeAll(list []*kernelCell) {
	e.writes = e.writes[:0]
	for _, st := range list {
		at, ok := e.offset(st.src[0], st.indices())
		if !ok {
			continue // an index out of bounds is not written
		}
		buf := e.buffer(st.src[0])
		value := e.eval(st.src[1])
		if at >= int64(len(buf.Data)) {
			e.fault("store at element %d of a buffer of %d", at, len(buf.Data))
		}
		e.writes = append(e.writes, kernelWrite{buf, at, value})
	}
	for _, w := range e.writes {
		w.buf.Data[w.at] = w.value
	}
}

func (e *kernelEval) buffer(param *kernelCell) *KernelBuffer {
	slot := param.node.Arg.(ir.ParamArg).Slot
	if slot >= len(e.args) {
		e.fault("slot %d, have %d arguments", slot, len(e.args))
	}
	return e.args[slot]
}

// offset linearises an index; ok is false when it is out of bounds.
func (e *kernelEval) offset(buf *kernelCell, index []*kernelCell) (at int64, ok bool) {
	for k, extent := range buf.src {
		n, i := e.eval(extent).I, e.eval(index[k]).I
		if i < 0 || i >= n {
			return 0, false
		}
		at = at*n + i
	}
	return at, true
}

// eval returns the value of a node under the current ranges.
func (e *kernelEval) eval(c *kernelCell) ir.Scalar {
	switch c.node.Op {
	case ir.OpConst:
		return c.value
	case ir.OpRange:
		return ir.Scalar{I: c.bound.value}
	case ir.OpVar:
		v, ok := e.vars[c.node.Arg.(ir.VarArg).Name]
		if !ok {
			e.fault("no value for variable %s", c.node.Arg.(ir.VarArg).Name)
		}
		return ir.Scalar{I: v}
	case ir.OpArg:
		return e.arg[c.node.Arg.(ir.IntArg)]
	}
	if e.fresh(c) {
		return c.value
	}
	v := e.compute(c)
	c.value = v
	c.time = e.clock
	return v
}

func (e *kernelEval) compute(c *kernelCell) ir.Scalar {
	switch c.node.Op {
	case ir.OpLoad:
		return e.load(c)
	case ir.OpField:
		return e.field(c)
	case ir.OpReduce:
		return e.reduce(c)[0]
	case ir.OpProj:
		return e.reduceComponent(c)
	case ir.OpAssume:
		v, lo, hi := e.eval(c.src[0]), e.eval(c.src[1]), e.eval(c.src[2])
		if v.I < lo.I || v.I > hi.I {
			e.fault("assume: %d is not in %d..%d", v.I, lo.I, hi.I)
		}
		return v
	case ir.OpWhere:
		if e.eval(c.src[0]).I != 0 {
			return e.eval(c.src[1])
		}
		return e.eval(c.src[2])
	}
	if !c.node.Op.IsElementwise() {
		e.fault("%s has no value in a kernel", c.node.Op)
	}
	var list [3]ir.Scalar
	for i, s := range c.src {
		list[i] = e.eval(s)
	}
	return e.elementwise(c.node, list[:len(c.src)])
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
			if e.opt.Float64 && u.DType == ir.F32 && u.Op != ir.OpBitcast { // bits are those of an f32
				from := u.Src[len(u.Src)-1].DType
				if from == ir.F32 {
					from = ir.F64
				}
				out := ir.EvalScalar(u.Op, ir.F64, from, args)
				if rounds(u.Op) {
					out.F = e.opt.noisy(out.F)
				}
				return out
			}
			return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
		}
		if u.DType == ir.F32 && !e.opt.Float64 {
			v = float64(float32(v))
		}
		return ir.Scalar{F: e.opt.noisy(v)}
	}
	return ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
}

// rounds reports ops of which a float result is rounded.
func rounds(op ir.Op) bool {
	switch op {
	case ir.OpFDiv, ir.OpFma, ir.OpSqrt, ir.OpExp2, ir.OpLog2, ir.OpSin, ir.OpRsqrt:
		return true
	}
	return false
}

// load reads a buffer, a table or an element of a stage.
func (e *kernelEval) load(c *kernelCell) ir.Scalar {
	from := c.src[0]
	if from.node.Op == ir.OpStage {
		return e.stageElement(from, c.indices())
	}
	at, ok := e.offset(from, c.indices())
	if !ok {
		e.fault("load at %v is out of bounds of %s %v", e.evalAll(c.indices()), from.node.Op, e.evalAll(from.src))
	}
	if from.node.Op == ir.OpTable {
		return ir.DecodeTable(from.node.DType, from.node.Arg.(ir.TableArg).Data, int(at))
	}
	buf := e.buffer(from)
	if size := int64(buf.DType.Size()); buf.Data == nil && (at+1)*size <= int64(len(buf.Bytes)) {
		return ir.DecodeTable(buf.DType, string(buf.Bytes[at*size:(at+1)*size]), 0)
	}
	if at >= int64(len(buf.Data)) {
		e.fault("load of element %d of a buffer of %d (slot %d)", at, len(buf.Data), from.node.Arg.(ir.ParamArg).Slot)
	}
	return buf.Data[at]
}

// evalAll are the values of indices or extents.
func (e *kernelEval) evalAll(list []*kernelCell) []int64 {
	return lists.Map(list, func(x *kernelCell) int64 { return e.eval(x).I })
}

// stageElement computes an element of a stage at most once per scope.
func (e *kernelEval) stageElement(c *kernelCell, index []*kernelCell) ir.Scalar {
	key := make([]byte, 0, 16)
	loops := c.src[1:]
	at := make([]int64, len(index))
	for k, x := range index {
		at[k] = e.eval(x).I
		if n := e.eval(loops[k].src[0]).I; at[k] < 0 || at[k] >= n {
			e.fault("stage read at %d of %d", at[k], n)
		}
		key = binary.AppendVarint(key, at[k])
	}
	if !e.fresh(c) || c.stage == nil {
		c.stage = make(map[string]ir.Scalar)
		c.time = e.clock
	}
	if v, ok := c.stage[string(key)]; ok {
		return v
	}
	memo := c.stage
	for k, r := range loops {
		r.bound.set(e, at[k])
	}
	v := e.eval(c.src[0])
	memo[string(key)] = v
	return v
}

// field reads an element of a packed field.
func (e *kernelEval) field(c *kernelCell) ir.Scalar {
	f, fd := c.field.format, c.field.field
	row, block, j := e.eval(c.src[1]).I, e.eval(c.src[2]).I, e.eval(c.src[3]).I
	param := c.src[0]
	last := len(param.src) - 1
	blocks := e.eval(param.src[last]).I / int64(f.BlockElems)
	rows := int64(1)
	for _, x := range param.src[:last] {
		rows *= e.eval(x).I
	}
	if row < 0 || row >= rows || block < 0 || block >= blocks || j < 0 || j >= int64(fd.Count) {
		e.fault("field %s.%s read at row %d, block %d, element %d: out of %d rows, %d blocks, %d elements", f.Name, fd.Name, row, block, j, rows, blocks, fd.Count)
	}
	run, stride := int64(fd.Count), int64(0)
	if fd.Run > 0 {
		run, stride = int64(fd.Run), int64(fd.Stride)
	}
	size := int64(fd.DType.Size())
	at := (row*blocks+block)*int64(f.BlockBytes) + int64(fd.Offset) + j/run*stride + j%run*size
	c.field.reads++
	return ir.DecodeTable(fd.DType, string(e.buffer(param).Bytes[at:at+size]), 0)
}

// fieldReads are the executed reads of every field.
func (e *kernelEval) fieldReads() map[string]int64 {
	reads := make(map[string]int64)
	for _, c := range e.cells {
		if c.field != nil && c.field.reads > 0 {
			reads[fmt.Sprintf("%d.%s", c.src[0].node.Arg.(ir.ParamArg).Slot, c.field.field.Name)] += c.field.reads
		}
	}
	return reads
}

// reduce folds a REDUCE over its range and returns every component. Component
// i of a tuple holds for the current values of the ranges that only it uses.
func (e *kernelEval) reduce(c *kernelCell) []ir.Scalar {
	arg := c.node.Arg.(ir.ReduceArg)
	n := arg.N
	acc := make([]ir.Scalar, n)
	loop := c.src[n]
	count := e.eval(loop.src[0]).I
	if arg.Op != ir.OpInvalid {
		acc[0] = ir.ReduceIdentity(arg.Op, c.node.DType)
		sum := summed{opt: &e.opt}
		for i := range count {
			loop.bound.set(e, i)
			acc[0] = e.fold(c.node, arg.Op, acc[0], e.eval(c.src[0]), &sum)
		}
		return acc
	}
	for i := range n {
		acc[i] = e.eval(c.src[n+1+i])
	}
	for i := range count {
		loop.bound.set(e, i)
		element := lists.Make(n, func(k int) ir.Scalar { return e.eval(c.src[k]) })
		acc = e.combine(c, acc, element)
	}
	c.tuple = acc
	return acc
}

// combine runs the lambda of a tuple reduce.
func (e *kernelEval) combine(c *kernelCell, acc, element []ir.Scalar) []ir.Scalar {
	n := len(acc)
	saved := e.arg
	e.arg = append(append(make([]ir.Scalar, 0, 2*n), acc...), element...)
	out := lists.Make(n, func(i int) ir.Scalar { return e.eval(c.src[2*n+1+i]) })
	e.arg = saved
	return out
}

// reduceComponent evaluates a PROJ. The tuple's other components may depend on
// ranges that this one does not: they are folded at their current values, which
// cannot change this component.
func (e *kernelEval) reduceComponent(c *kernelCell) ir.Scalar {
	tuple := c.src[0]
	if !e.fresh(tuple) || tuple.tuple == nil {
		e.reduce(tuple)
		tuple.time = e.clock
	}
	return tuple.tuple[c.node.Arg.(ir.IntArg)]
}

func (e *kernelEval) fold(u *ir.UOp, op ir.Op, acc, v ir.Scalar, so *summed) ir.Scalar {
	if op == ir.OpAdd && u.DType.IsFloat() {
		sum := acc.F + v.F
		if u.DType == ir.F32 && !e.opt.Float64 {
			sum = float64(float32(sum))
		}
		return ir.Scalar{F: so.noisy(sum, v.F)}
	}
	dtype := u.DType
	if dtype == ir.F32 && e.opt.Float64 {
		dtype = ir.F64
	}
	return ir.EvalScalar(op, dtype, dtype, []ir.Scalar{acc, v})
}
