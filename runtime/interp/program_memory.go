package interp

import (
	"fmt"
	"unsafe"

	"tgc/ir"
	"tgc/ir/program"
)

// Memory instructions. Every access is checked against the region's bounds and
// against the alignment that the instruction claims: the offset must be a
// multiple of it and the region's start be known to be as well.

func (m *machine) ptrAdd(in *program.Instr) func() {
	from, to := m.reg(in.Args[0]).ptr, m.define(in.Result).ptr
	by := lanes[int64](m.reg(in.Args[1]))
	size := int64(in.Result.Type.Elem.Size())
	return func() {
		to.region = from.region
		to.off = from.off + by[0]*size
	}
}

func (m *machine) alloca(in *program.Instr) func() {
	n := int(in.Count) * in.Result.Type.Elem.Size()
	r := &region{name: "alloca", bytes: newBytes(n), align: in.Align}
	m.define(in.Result).ptr.region = r
	if !m.debug {
		return nil
	}
	return func() {
		for i := range r.bytes {
			r.bytes[i] = 0xff // NaN in every float dtype
		}
	}
}

// ok reports that n bytes at p may be accessed.
func (p *pointer) ok(n, align int64) bool {
	return p.off >= 0 && p.off+n <= int64(len(p.region.bytes)) && p.off&(align-1) == 0 && int64(p.region.align) >= align
}

func (m *machine) badAccess(in *program.Instr, p *pointer, off, n int64) {
	var why string
	switch {
	case off < 0 || off+n > int64(len(p.region.bytes)):
		why = fmt.Sprintf("outside of its %d bytes", len(p.region.bytes))
	case int64(in.Align) > int64(p.region.align):
		why = fmt.Sprintf("not aligned to %d: the start is aligned to %d", in.Align, p.region.align)
	default:
		why = fmt.Sprintf("not aligned to %d", in.Align)
	}
	m.fail(in, fmt.Errorf("%s: %d bytes at offset %d: %s", p.region.name, n, off, why))
}

func (m *machine) memory(in *program.Instr) func() {
	switch in.Op {
	case program.Load:
		return m.load(in)
	case program.Store:
		return m.store(in)
	case program.Guarded:
		return m.guarded(in)
	}
	elem := in.Args[0].Type.Elem
	switch elem.Size() {
	case 1:
		return gatherScatter[uint8](m, in)
	case 2:
		return gatherScatter[uint16](m, in)
	case 4:
		return gatherScatter[uint32](m, in)
	}
	return gatherScatter[uint64](m, in)
}

func (m *machine) load(in *program.Instr) func() {
	p, to := m.reg(in.Args[0]).ptr, m.define(in.Result).data
	n, align := int64(len(to)), int64(in.Align)
	if in.Result.Type.Elem == ir.Bool {
		return func() {
			if !p.ok(n, align) {
				m.badAccess(in, p, p.off, n)
				return
			}
			normalise(to, p.region.bytes[p.off:])
		}
	}
	return func() {
		if !p.ok(n, align) {
			m.badAccess(in, p, p.off, n)
			return
		}
		copy(to, p.region.bytes[p.off:p.off+n])
	}
}

// normalise reads Bools: any byte but 0 is true.
func normalise(to, from []byte) {
	for i := range to {
		to[i] = 0
		if from[i] != 0 {
			to[i] = 1
		}
	}
}

func (m *machine) store(in *program.Instr) func() {
	p, from := m.reg(in.Args[0]).ptr, m.reg(in.Args[1]).data
	n, align := int64(len(from)), int64(in.Align)
	return func() {
		if !p.ok(n, align) {
			m.badAccess(in, p, p.off, n)
			return
		}
		if m.fault == nil {
			copy(p.region.bytes[p.off:p.off+n], from)
		}
	}
}

func (m *machine) guarded(in *program.Instr) func() {
	guard := lanes[uint8](m.reg(in.Args[0]))
	p, other := m.reg(in.Args[1]).ptr, m.reg(in.Args[2]).data
	to := m.define(in.Result).data
	n, align := int64(len(to)), int64(in.Align)
	isBool := in.Result.Type.Elem == ir.Bool
	return func() {
		switch {
		case guard[0] == 0:
			copy(to, other)
		case !p.ok(n, align):
			m.badAccess(in, p, p.off, n)
		case isBool:
			normalise(to, p.region.bytes[p.off:])
		default:
			copy(to, p.region.bytes[p.off:p.off+n])
		}
	}
}

func gatherScatter[T unsigned](m *machine, in *program.Instr) func() {
	if in.Args[1].Type.Elem == ir.I32 {
		return gatherScatterBy[T, int32](m, in)
	}
	return gatherScatterBy[T, int64](m, in)
}

func gatherScatterBy[T unsigned, I int32 | int64](m *machine, in *program.Instr) func() {
	p := m.reg(in.Args[0]).ptr
	offsets := lanes[I](m.reg(in.Args[1]))
	if in.Op == program.Gather {
		to := lanes[T](m.define(in.Result))
		isBool := in.Result.Type.Elem == ir.Bool
		return func() {
			for i, o := range offsets {
				from := element[T](m, in, p, int64(o))
				if from == nil {
					return
				}
				to[i] = *from
				if isBool && to[i] != 0 {
					to[i] = 1
				}
			}
		}
	}
	from := lanes[T](m.reg(in.Args[2]))
	return func() {
		for i, o := range offsets {
			to := element[T](m, in, p, int64(o))
			if to == nil || m.fault != nil {
				return
			}
			*to = from[i]
		}
	}
}

// element is the address of element i after p; nil after a bad access.
func element[T unsigned](m *machine, in *program.Instr, p *pointer, i int64) *T {
	var t T
	n := int64(unsafe.Sizeof(t))
	q := pointer{p.region, p.off + i*n}
	if !q.ok(n, int64(in.Align)) {
		m.badAccess(in, p, q.off, n)
		return nil
	}
	return (*T)(unsafe.Pointer(&q.region.bytes[q.off]))
}
