package testkit

import (
	"fmt"

	"pgregory.net/rapid"
	"tgc/ir"
	"tgc/tensor"
)

// AssignPrograms is a generator of graphs that assign to state buffers, whole
// and in part, and read old and new versions in between. Some have no legal
// order: a read of a version may have to come after the write that replaces it.
func AssignPrograms() *rapid.Generator[*Case] {
	return rapid.Custom(func(t *rapid.T) *Case {
		b := newBuilder(t, Limits{Elements: 200})
		p := &assignProgram{builder: b}
		p.rows, p.columns = b.intRange("rows", 1, 4), b.intRange("columns", 1, 3)
		if b.chance("lanes") {
			p.columns = 16
		}
		for range b.intRange("buffers", 1, 2) {
			p.versions = append(p.versions, []*tensor.Tensor{b.input(ir.F32, p.rows, p.columns)})
		}
		b.keep(b.input(ir.F32, p.rows, p.columns))
		for range b.intRange("steps", 1, 7) {
			p.step()
		}
		p.finish()
		return b.c
	})
}

// assignProgram is a program in the making; all tensors have one shape.
type assignProgram struct {
	*builder
	rows, columns int
	versions      [][]*tensor.Tensor // of each buffer, oldest first
	outputs       int
}

func (p *assignProgram) step() {
	switch k := p.intRange("step", 0, 6); k {
	case 0, 1:
		p.read()
	case 2:
		p.combine()
	case 3:
		p.output()
	default:
		p.assign(k)
	}
}

// version draws a version, mostly the newest, sometimes an older one.
func (p *assignProgram) version() (list []*tensor.Tensor, v *tensor.Tensor) {
	list = p.versions[p.intRange("buffer", 0, len(p.versions)-1)]
	return list, list[len(list)-1-p.intRange("age", 0, min(len(list)-1, 1))]
}

// read makes a value out of a version, point by point or from elsewhere.
func (p *assignProgram) read() {
	_, v := p.version()
	switch p.intRange("read", 0, 5) {
	case 0:
		v = v.MulScalar(0.5).AddScalar(1)
	case 1:
		v = v.Flip(0)
	case 2:
		v = v.Sub(v.SumKeep(0).MulScalar(0.25))
	case 3:
		v = v.SliceInts(0, 0, p.rows-1).Pad(0, 1, 0)
	case 4:
		v = v.Flip(1).Add(v)
	case 5:
		v = v.MaxKeep(1).Expand(p.rows, p.columns)
	}
	p.keep(v)
}

func (p *assignProgram) combine() {
	all := func(t *tensor.Tensor) bool { return true }
	x, y := p.pick("x", all), p.pick("y", all)
	if p.chance("minimum") {
		p.keep(x.Minimum(y))
		return
	}
	p.keep(x.Sub(y.MulScalar(0.5)))
}

func (p *assignProgram) output() {
	p.declare(p.g.Output(fmt.Sprintf("out%d", p.outputs), p.pick("value", func(*tensor.Tensor) bool { return true })))
	p.outputs++
}

// assign makes the next version of a buffer.
func (p *assignProgram) assign(kind int) {
	i := p.intRange("buffer", 0, len(p.versions)-1)
	last := p.versions[i][len(p.versions[i])-1]
	value := p.pick("value", func(*tensor.Tensor) bool { return true })
	if p.chance("in place") {
		value = last.MulScalar(0.5).Add(value)
	}
	var next *tensor.Tensor
	switch kind {
	case 4:
		next = last.Assign(value)
	case 5:
		next = p.assignRows(last, value)
	default:
		next = p.assignAtPosition(last, value)
	}
	if p.tame(next) {
		p.versions[i] = append(p.versions[i], next)
	}
}

// assignRows writes some rows, shifted or reversed.
func (p *assignProgram) assignRows(last, value *tensor.Tensor) *tensor.Tensor {
	n := p.intRange("count", 1, p.rows)
	part := value.SliceInts(0, p.intRange("from", 0, p.rows-n), n)
	row := p.g.Iota(ir.I32, p.g.Dims(n)[0]).AddScalar(float64(p.intRange("to", 0, p.rows-n+1)))
	if p.chance("reversed") {
		row = row.Flip(0)
	}
	column := p.g.Iota(ir.I32, p.g.Dims(p.columns)[0])
	return last.AssignAt(part, row.Unsqueeze(1), column.Unsqueeze(0))
}

// assignAtPosition writes one row at a position from memory, maybe outside.
func (p *assignProgram) assignAtPosition(last, value *tensor.Tensor) *tensor.Tensor {
	at := p.inputInts(ir.I32, 0, int64(p.rows), 1)
	column := p.g.Iota(ir.I32, p.g.Dims(p.columns)[0])
	return last.AssignAt(value.SliceInts(0, 0, 1), at.Unsqueeze(1), column.Unsqueeze(0))
}

// finish makes the last versions and at least one output results.
func (p *assignProgram) finish() {
	p.output()
	for _, list := range p.versions {
		if len(list) > 1 {
			p.g.Keep(list[len(list)-1])
		}
	}
}
