package interp

import (
	"slices"

	"tgc/ir"
	"tgc/packed"
)

// kernelCell is a node of a kernel, with the cells of its sources and its remembered
// value: walking from cell to cell, an evaluation looks up no node.
type kernelCell struct {
	node  *ir.UOp
	src   []*kernelCell
	value ir.Scalar
	time  int64                // when value was computed; -1: never
	deps  []*rangeState        // of the ranges that it depends on
	bound *rangeState          // of a RANGE
	field *fieldCell           // of a FIELD
	stage map[string]ir.Scalar // elements of a STAGE in its scope
	tuple []ir.Scalar
}

// rangeState is the current value of a RANGE and the time it was set.
type rangeState struct {
	value int64
	time  int64
}

// fieldCell is what a FIELD reads, and how often it did.
type fieldCell struct {
	format *packed.Format
	field  *packed.Field
	reads  int64
}

func (s *rangeState) set(e *kernelEval, v int64) {
	if s.time > 0 && s.value == v {
		return
	}
	e.clock++
	s.value, s.time = v, e.clock
}

// cell is the cell of a node.
func (e *kernelEval) cell(u *ir.UOp) *kernelCell {
	if c, ok := e.cells[u]; ok {
		return c
	}
	c := &kernelCell{node: u, time: -1, src: make([]*kernelCell, len(u.Src))}
	e.cells[u] = c
	switch u.Op {
	case ir.OpConst:
		c.value, _ = u.Scalar()
	case ir.OpRange:
		c.bound = &rangeState{}
	case ir.OpField:
		c.field = e.fieldOf(u.Arg.(ir.FieldArg))
	}
	for i, s := range u.Src {
		c.src[i] = e.cell(s)
	}
	for _, r := range e.free.Of(u) {
		c.deps = append(c.deps, e.cell(r).bound)
	}
	return c
}

func (e *kernelEval) fieldOf(arg ir.FieldArg) *fieldCell {
	f, ok := packed.Lookup(arg.Format)
	if !ok {
		e.fault("unknown packed format %q", arg.Format)
	}
	fd, ok := f.Field(arg.Field)
	if !ok {
		e.fault("%s has no field %q", arg.Format, arg.Field)
	}
	return &fieldCell{format: f, field: fd}
}

// fresh says that a node's remembered value still holds: no range that it depends on
// was set since.
func (e *kernelEval) fresh(c *kernelCell) bool {
	if c.time < 0 || e.arg != nil {
		return false
	}
	return !slices.ContainsFunc(c.deps, func(r *rangeState) bool { return r.time > c.time })
}

// ranges are the loops of a STORE.
func (c *kernelCell) ranges() []*kernelCell { return c.src[2+int(c.node.Arg.(ir.IntArg)):] }

// indices are those of a LOAD or STORE.
func (c *kernelCell) indices() []*kernelCell {
	if c.node.Op == ir.OpStore {
		return c.src[2 : 2+int(c.node.Arg.(ir.IntArg))]
	}
	return c.src[1:]
}
