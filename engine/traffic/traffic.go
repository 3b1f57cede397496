package traffic

import (
	"tgc/ir"
	"tgc/packed"
)

// Traffic is what one run of a kernel touches and computes.
type Traffic struct {
	Args  []Arg // by PARAM slot
	Flops int64 // two per multiply-add
}

// Arg is the part of one buffer argument.
type Arg struct {
	Size          int64 // bytes of the whole buffer
	Read, Written int64 // distinct bytes
	Reads, Writes bool
}

// Bytes returns the sums over all arguments.
func (t *Traffic) Bytes() (read, written int64) {
	for _, arg := range t.Args {
		read, written = plus(read, arg.Read), plus(written, arg.Written)
	}
	return read, written
}

// Of counts a kernel's traffic with the given values of its VARs. A VAR without
// a value counts with its upper bound.
func Of(a *ir.Arena, kernel *ir.UOp, vars map[string]int64) *Traffic {
	kernel = a.Substitute(kernel, values(a, kernel, vars))
	e := newExtents()
	t := &Traffic{Flops: flops(e, kernel)}
	reads, writes := make(map[place][]access), make(map[place][]access)
	var order []place
	for _, u := range ir.Toposort(kernel) {
		if u.Op == ir.OpParam {
			t.arg(u).Size = bufferBytes(e, u)
			continue
		}
		acc, write, ok := newAccess(a, e, u)
		if !ok {
			continue
		}
		if len(reads[acc.place])+len(writes[acc.place]) == 0 {
			order = append(order, acc.place)
		}
		if write {
			writes[acc.place] = append(writes[acc.place], acc)
		} else {
			reads[acc.place] = append(reads[acc.place], acc)
		}
	}
	for _, p := range order {
		arg := &t.Args[p.slot]
		if list := reads[p]; len(list) > 0 {
			arg.Reads, arg.Read = true, plus(arg.Read, times(distinct(list), list[0].unit))
		}
		if list := writes[p]; len(list) > 0 {
			arg.Writes, arg.Written = true, plus(arg.Written, times(distinct(list), list[0].unit))
		}
	}
	return t
}

// arg returns the entry of a PARAM.
func (t *Traffic) arg(param *ir.UOp) *Arg {
	slot := param.Arg.(ir.ParamArg).Slot
	for len(t.Args) <= slot {
		t.Args = append(t.Args, Arg{})
	}
	return &t.Args[slot]
}

// values maps VARs to constants.
func values(a *ir.Arena, kernel *ir.UOp, vars map[string]int64) map[*ir.UOp]*ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(kernel) {
		if v, isVar := u.Arg.(ir.VarArg); isVar && u.Op == ir.OpVar {
			n, ok := vars[v.Name]
			if !ok {
				n = v.Hi
			}
			with[u] = a.ConstInt(u.DType, min(max(n, v.Lo), v.Hi))
		}
	}
	return with
}

// bufferBytes is the size of a PARAM.
func bufferBytes(e *extents, param *ir.UOp) int64 {
	n := int64(1)
	for _, extent := range param.Src {
		n = times(n, e.size(extent))
	}
	format, ok := packed.Lookup(param.Arg.(ir.ParamArg).Format)
	if !ok {
		return times(n, int64(param.DType.Size()))
	}
	return times(n/int64(format.BlockElems), int64(format.BlockBytes))
}

// flops counts the multiply-adds of float sums, two operations each. A kernel
// without any has its elementwise float operations counted instead.
func flops(e *extents, kernel *ir.UOp) int64 {
	sums, elementwise := int64(0), int64(0)
	for _, u := range ir.Toposort(kernel) {
		switch {
		case u.Op == ir.OpReduce:
			sums = plus(sums, reduceFlops(e, u))
		case u.Op.IsElementwise() && u.DType.IsFloat() && u.Op != ir.OpCast && u.Op != ir.OpBitcast && u.Op != ir.OpWhere:
			elementwise = plus(elementwise, e.points(e.free.Of(u)))
		}
	}
	if sums > 0 {
		return sums
	}
	return elementwise
}

// reduceFlops is two operations for every element added; a tuple counts each
// component.
func reduceFlops(e *extents, u *ir.UOp) int64 {
	arg := u.Arg.(ir.ReduceArg)
	if arg.Op != ir.OpAdd && arg.Op != ir.OpInvalid {
		return 0
	}
	n := int64(0)
	for _, v := range u.ReduceValues() {
		if v.DType.IsFloat() {
			n = plus(n, times(2, e.points(ir.UnionRanges(e.free.Of(v), []*ir.UOp{u.ReduceRange()}))))
		}
	}
	return n
}
