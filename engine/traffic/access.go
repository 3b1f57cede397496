package traffic

import (
	"tgc/ir"
	"tgc/packed"
)

// place is what accesses are counted in: the elements of a plain buffer, or
// those of one field of a packed one.
type place struct {
	slot  int
	field string // empty: plain
}

// access is one LOAD, FIELD or STORE of a kernel.
type access struct {
	place
	unit   int64     // bytes of an element
	index  []*ir.UOp // with canonical ranges: equal expressions take equal values
	limit  []int64   // places per axis
	counts []int64   // most values of each index
	span   []ir.Interval
	points int64 // of the ranges in all indices together
	key    *ir.UOp
}

// newAccess describes a node that reads or writes a PARAM; ok is false for
// other nodes.
func newAccess(a *ir.Arena, e *extents, u *ir.UOp) (acc access, write, ok bool) {
	var index []*ir.UOp
	switch u.Op {
	case ir.OpLoad, ir.OpStore:
		if u.Src[0].Op != ir.OpParam {
			return acc, false, false
		}
		index, write = u.Indices(), u.Op == ir.OpStore
		acc.unit = int64(u.Src[0].DType.Size())
		for _, extent := range u.Src[0].Src {
			acc.limit = append(acc.limit, e.size(extent))
		}
	case ir.OpField:
		index = u.Src[1:]
		acc.field, acc.unit, acc.limit = fieldLimits(e, u)
	default:
		return acc, false, false
	}
	acc.slot = u.Src[0].Arg.(ir.ParamArg).Slot
	var all []*ir.UOp
	for i, x := range index {
		free := e.free.Of(x)
		all = ir.UnionRanges(all, free)
		span := e.bounds.Of(x)
		acc.span = append(acc.span, span)
		acc.counts = append(acc.counts, min(acc.limit[i], e.points(free), width(span)))
		acc.index = append(acc.index, canonical(a, x))
	}
	acc.points = e.points(all)
	acc.key = canonical(a, a.Make(ir.OpSink, ir.Void, nil, index...))
	return acc, write, true
}

// fieldLimits returns a FIELD's name, element size and places per axis: rows,
// blocks in a row, elements in a block.
func fieldLimits(e *extents, u *ir.UOp) (name string, unit int64, limit []int64) {
	arg := u.Arg.(ir.FieldArg)
	shape := u.Src[0].Src
	columns := e.size(shape[len(shape)-1])
	rows := int64(1)
	for _, extent := range shape[:len(shape)-1] {
		rows = times(rows, e.size(extent))
	}
	blocks, count := columns, columns
	if format, ok := packed.Lookup(arg.Format); ok {
		blocks = columns / int64(format.BlockElems)
		if field, ok := format.Field(arg.Field); ok {
			count = int64(field.Count)
		}
	}
	return arg.Field, int64(u.DType.Size()), []int64{rows, blocks, count}
}

// width is the number of integers in an interval with its residue class.
func width(v ir.Interval) int64 {
	if _, ok := v.Const(); ok || v.Mult == 0 {
		return 1
	}
	if !v.Finite() || v.Hi < v.Lo {
		return ir.PosInf
	}
	n := v.Hi - v.Lo
	if n < 0 {
		return ir.PosInf
	}
	return n/max(v.Mult, 1) + 1
}

// canonical numbers the ranges of an expression in the order in which they
// occur, so that expressions that differ only in the names of their loops are
// one node.
func canonical(a *ir.Arena, x *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(x) {
		if u.Op == ir.OpRange {
			with[u] = a.Range(len(with), u.Src[0])
		}
	}
	return a.Substitute(x, with)
}

// distinct bounds the number of places that several accesses to one place touch
// together: axis by axis, and access by access, whichever is less.
func distinct(list []access) int64 {
	box := int64(1)
	for axis := range list[0].index {
		box = times(box, distinctOnAxis(list, axis))
	}
	sum := int64(0)
	seen := make(map[*ir.UOp]bool)
	for _, acc := range list {
		if seen[acc.key] {
			continue
		}
		seen[acc.key] = true
		n := int64(1)
		for _, c := range acc.counts {
			n = times(n, c)
		}
		sum = plus(sum, min(n, acc.points))
	}
	return min(box, sum)
}

func distinctOnAxis(list []access, axis int) int64 {
	sum := int64(0)
	span := list[0].span[axis]
	seen := make(map[*ir.UOp]bool)
	for _, acc := range list {
		span.Lo, span.Hi = min(span.Lo, acc.span[axis].Lo), max(span.Hi, acc.span[axis].Hi)
		if x := acc.index[axis]; !seen[x] {
			seen[x] = true
			sum = plus(sum, acc.counts[axis])
		}
	}
	span.Mult, span.Rem = 1, 0
	return min(list[0].limit[axis], sum, width(span))
}
