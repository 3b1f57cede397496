package cuda

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// address is where a pointer points: base + off bytes. The base is a parameter,
// a table, the block's or thread's own memory, or a variable.
type address struct {
	base  string
	off   int64
	fixed bool // to const bytes
	// array and index (elements) instead, for an Alloca without memory.
	array string
	index int64
}

func (a *address) String() string {
	switch {
	case a.off == 0:
		return a.base
	case a.off < 0:
		return fmt.Sprintf("%s - %d", a.base, -a.off)
	}
	return fmt.Sprintf("%s + %d", a.base, a.off)
}

func (a *address) plus(bytes int64) *address {
	out := *a
	out.off += bytes
	return &out
}

// pointer is the address as a pointer to a type, for a load or a store.
func (a *address) pointer(name string, load bool) string {
	if load {
		name = "const " + name
	}
	if a.off == 0 {
		return fmt.Sprintf("(%s*)%s", name, a.base)
	}
	return fmt.Sprintf("(%s*)(%s)", name, a)
}

// noteSum remembers ADD of a constant to an index.
func (r *renderer) noteSum(in *program.Instr) {
	if in.Ir != ir.OpAdd || in.Result.Type != program.Scalar(ir.I64) {
		return
	}
	r.sums.Note(in, r.consts, func(x, y *program.Value) bool { return r.typeOf(x) == r.typeOf(y) })
}

// ptrAdd moves a pointer. Constants go into the offset, so accesses around one
// computed address share it.
func (r *renderer) ptrAdd(in *program.Instr) {
	p, index := in.Args[0], in.Args[1]
	from := r.values[p.ID].address
	size := int64(p.Type.Elem.Size())
	r.follow(p, in.Result)
	if from.array != "" {
		r.values[in.Result.ID] = &held{address: &address{array: from.array, index: from.index + r.consts[index].Int}}
		return
	}
	s := r.sums.Of(index)
	a := from.plus(s.Constant * size)
	if o := r.lane(s.Of, 0); o.literal() {
		a.off += int64(o.bits) * size
	} else {
		a.base = r.scaled(from, p.Type.Space, o, size)
	}
	r.values[in.Result.ID] = &held{address: a}
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

// scaled is base + index*size, computed once a scope. Products are 64 bits in
// memory that may be large.
func (r *renderer) scaled(from *address, space program.Space, index operand, size int64) string {
	return r.scopes.Once(fmt.Sprintf("address %s %s %d", from.base, index.name, size), func() operand {
		t := int64Type
		if space == program.SharedSpace || space == program.LocalSpace {
			t = int32Type
		}
		pointer := "char*"
		if from.fixed {
			pointer = "const char*"
		}
		o := operand{name: r.name("a")}
		if size == 1 {
			r.line("%s %s = %s + %s;", pointer, o.name, from.base, index.as(t))
		} else {
			r.line("%s %s = %s + %s * %d;", pointer, o.name, from.base, index.as(t), size)
		}
		return o
	}).name
}

func (r *renderer) pointerCast(in *program.Instr) error {
	from := r.values[in.Args[0].ID].address
	r.follow(in.Args[0], in.Result)
	r.values[in.Result.ID] = &held{address: from.plus(0)}
	return nil
}

func (r *renderer) alloca(in *program.Instr) error {
	elem := in.Result.Type.Elem
	if array, ok := r.arrays[in.Result]; ok {
		name := r.name("r")
		t := r.arrayType(elem)
		r.line("%s %s[%d];", t, name, array.Count)
		r.values[in.Result.ID] = &held{address: &address{array: name}}
		return nil
	}
	used, name := &r.local, localName
	if in.Result.Type.Space == program.SharedSpace {
		used, name = &r.shared, sharedName
	}
	align := int64(max(in.Align, 1))
	*used = (*used + align - 1) / align * align
	r.values[in.Result.ID] = &held{address: &address{base: name, off: *used}}
	*used += in.Count * int64(elem.Size())
	if *used > 1<<26 {
		return fmt.Errorf("%d bytes of %s", *used, name)
	}
	return nil
}

// arrayType is the type of elements in an array without memory: indices may be
// of any size.
func (r *renderer) arrayType(d ir.DType) ctype {
	return r.typeOf(&program.Value{Type: program.Scalar(d)})
}
