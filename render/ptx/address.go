package ptx

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/gpu"
)

// address is where a pointer points: base + off bytes. The base of global
// memory is a 64-bit register; that of shared and local memory a 32-bit one, or
// the symbol of all such memory.
type address struct {
	base string
	off  int64
	// array and index (elements) instead, for an Alloca held in registers.
	array *registerArray
	index int64
}

func (a *address) String() string {
	if a.off == 0 {
		return "[" + a.base + "]"
	}
	return fmt.Sprintf("[%s%+d]", a.base, a.off)
}

// maxOffset is what stays in an instruction; larger offsets are added.
const maxOffset = 1 << 22

func (a *address) plus(bytes int64) *address {
	return &address{base: a.base, off: a.off + bytes}
}

// noteSum remembers ADD of a constant to an index.
func (r *renderer) noteSum(in *program.Instr) {
	if in.Ir != ir.OpAdd || in.Result.Type != program.Scalar(ir.I64) {
		return
	}
	r.sums.Note(in, r.consts, func(x, y *program.Value) bool { return r.classOf(x) == r.classOf(y) })
}

// ptrAdd moves a pointer. Constants go into the offset, so accesses around one
// computed address share it.
func (r *renderer) ptrAdd(in *program.Instr) {
	p, index := in.Args[0], in.Args[1]
	from := r.values[p.ID].address
	size := int64(p.Type.Elem.Size())
	r.follow(p, in.Result)
	if from.array != nil {
		r.values[in.Result.ID] = &held{address: &address{array: from.array, index: from.index + r.consts[index].Int}}
		return
	}
	s := r.sums.Of(index)
	base := from.base
	off := from.off + s.Constant*size
	if o := r.lane(s.Of, 0); o.literal() {
		off += int64(o.bits) * size
	} else {
		base = r.scaled(base, p.Type.Space, s.Of, size)
	}
	if off > maxOffset || off < -maxOffset {
		base = r.displaced(base, p.Type.Space, off)
		off = 0
	}
	r.values[in.Result.ID] = &held{address: &address{base: base, off: off}}
}

// follow keeps what is known of the buffer behind a pointer.
func (r *renderer) follow(from, to *program.Value) {
	if p := r.access[from]; p != nil {
		r.access[to] = p
	}
	if p := r.tables[from]; p != nil {
		r.tables[to] = p
	}
}

// is32 reports a space whose addresses are held in 32 bits.
func is32(s program.Space) bool { return s == program.SharedSpace || s == program.LocalSpace }

// scaled is base + index*size, computed once a scope.
func (r *renderer) scaled(base string, space program.Space, index *program.Value, size int64) string {
	key := fmt.Sprintf("address %s %s %d", base, r.lane(index, 0).reg, size)
	return r.scopes.Once(key, func() operand {
		if is32(space) {
			i := r.lane(index, 0)
			if r.classOf(index) == wide {
				i = r.low(i)
			}
			d := r.reg(word)
			r.ins("mad.lo.s32 %s, %s, %d, %s", d.reg, i.reg, size, r.symbol(base).reg)
			return d
		}
		d := r.reg(wide)
		name := "mad.wide.s32"
		if r.classOf(index) == wide {
			name = "mad.lo.s64"
		}
		r.ins("%s %s, %s, %d, %s", name, d.reg, r.lane(index, 0).reg, size, base)
		return d
	}).reg
}

func (r *renderer) displaced(base string, space program.Space, off int64) string {
	key := fmt.Sprintf("displaced %s %d", base, off)
	return r.scopes.Once(key, func() operand {
		if is32(space) {
			d := r.reg(word)
			r.ins("add.s32 %s, %s, %d", d.reg, r.symbol(base).reg, off)
			return d
		}
		d := r.reg(wide)
		r.ins("add.s64 %s, %s, %d", d.reg, base, off)
		return d
	}).reg
}

// symbol is the address of shared or local memory in a register.
func (r *renderer) symbol(base string) operand {
	if base != sharedSymbol && base != localSymbol {
		return operand{reg: base}
	}
	return r.scopes.Once("symbol "+base, func() operand {
		d := r.reg(word)
		r.ins("mov.u32 %s, %s", d.reg, base)
		return d
	})
}

func (r *renderer) pointerCast(in *program.Instr) error {
	from := r.values[in.Args[0].ID].address
	r.follow(in.Args[0], in.Result)
	a := *from
	r.values[in.Result.ID] = &held{address: &a}
	return nil
}

// Allocas.

// registerArray is a local Alloca that needs no memory: one register per
// element.
type registerArray struct {
	gpu.Array
	regs []operand
}

func registerArrays(p *program.Program) map[*program.Value]*registerArray {
	out := make(map[*program.Value]*registerArray)
	for v, a := range gpu.Arrays(p) {
		out[v] = &registerArray{Array: a}
	}
	return out
}

func (r *renderer) alloca(in *program.Instr) error {
	if a := r.locals[in.Result]; a != nil {
		c := word
		switch {
		case a.Elem == ir.Bool:
			c = predicate
		case a.Elem.Size() == 8:
			c = wide
		}
		a.regs = make([]operand, a.Count)
		for i := range a.regs {
			a.regs[i] = r.reg(c)
		}
		r.values[in.Result.ID] = &held{address: &address{array: a}}
		return nil
	}
	bytes := in.Count * int64(in.Result.Type.Elem.Size())
	used, symbol := &r.local, localSymbol
	if in.Result.Type.Space == program.SharedSpace {
		used, symbol = &r.shared, sharedSymbol
	}
	align := int64(max(in.Align, 1))
	*used = (*used + align - 1) / align * align
	r.values[in.Result.ID] = &held{address: &address{base: symbol, off: *used}}
	*used += bytes
	if *used > 1<<26 {
		return fmt.Errorf("%d bytes of %s", *used, symbol)
	}
	return nil
}
