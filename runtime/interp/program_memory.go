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
	from, to := m.reg(in.Args[0]).ptrs, m.define(in.Result).ptrs
	by := lanes[int64](m.reg(in.Args[1]))
	size := int64(in.Result.Type.Elem.Size())
	return func() {
		for t := range to {
			to[t] = pointer{from[t].region, from[t].off + by[t]*size}
		}
	}
}

// alloca gives every thread an array of its own, or all of a block one in
// shared memory.
func (m *machine) alloca(in *program.Instr) func() {
	n := int(in.Count) * in.Result.Type.Elem.Size()
	ptrs := m.define(in.Result).ptrs
	var regions []*region
	shared := in.Result.Type.Space == program.SharedSpace
	for t := range ptrs {
		if t%m.block.threads == 0 || !shared {
			regions = append(regions, &region{name: "alloca", bytes: newBytes(n), align: in.Align})
		}
		ptrs[t].region = regions[len(regions)-1]
	}
	if shared {
		for k, r := range regions {
			r.name, r.seen, r.peers, r.block = "shared memory", newAccesses(n), regions, k
		}
	}
	if !m.debug {
		return nil
	}
	return func() {
		for _, r := range regions {
			for i := range r.bytes {
				r.bytes[i] = undefinedByte
			}
		}
	}
}

// undefinedByte is what memory without a value holds: NaN in every float dtype.
const undefinedByte = 0xff

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

// span is the bytes of an access of one thread; nil after a fault.
func (m *machine) span(in *program.Instr, p pointer, n int64, thread int, write bool) []byte {
	if p.region == nil || !p.ok(n, int64(in.Align)) {
		if p.region == nil {
			m.fail(in, fmt.Errorf("thread %d: a pointer to nothing", thread))
			return nil
		}
		m.badAccess(in, &p, p.off, n)
		return nil
	}
	if p.region.seen != nil {
		m.reach(in, p.region, thread)
		if other := p.region.seen.touch(m.block, p.off, n, thread, write); other >= 0 {
			m.fail(in, fmt.Errorf("shared memory: threads %d and %d touch byte %d without a barrier in between", other, thread, p.off))
			return nil
		}
	}
	return p.region.bytes[p.off : p.off+n]
}

func (m *machine) load(in *program.Instr) func() {
	var guard []uint8
	var other []byte
	at := in.Args[0]
	if in.Op == program.Guarded {
		guard, at, other = lanes[uint8](m.reg(in.Args[0])), in.Args[1], m.reg(in.Args[2]).data
	}
	ptrs, to := m.reg(at).ptrs, m.define(in.Result).data
	isBool := in.Result.Type.Elem == ir.Bool
	parts := m.threads // each all or nothing
	if guard != nil {
		parts = len(guard)
	}
	n, lanes := len(to)/parts, parts/m.threads
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			p := ptrs[t]
			for i := t * lanes; i < (t+1)*lanes; i++ {
				mine := to[i*n : (i+1)*n]
				if guard != nil && guard[i] == 0 {
					copy(mine, other[i*n:])
				} else if mem := m.span(in, p, int64(n), t, false); mem == nil {
					return
				} else if isBool {
					normalise(mine, mem)
				} else {
					copy(mine, mem)
				}
				p.off += int64(n)
			}
		}
	}
}

func (m *machine) store(in *program.Instr) func() {
	ptrs, from := m.reg(in.Args[0]).ptrs, m.reg(in.Args[1]).data
	n := len(from) / m.threads
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			mem := m.span(in, ptrs[t], int64(n), t, true)
			if mem == nil {
				return
			}
			if m.fault == nil {
				copy(mem, from[t*n:(t+1)*n])
			}
		}
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

// gatherScatter picks the loop by the sizes of elements and offsets.
func (m *machine) gatherScatter(in *program.Instr) func() {
	return bySize(in.Args[0].Type.Elem.Size(), gatherScatter[uint8], gatherScatter[uint16], gatherScatter[uint32], gatherScatter[uint64])(m, in)
}

func gatherScatter[T unsigned](m *machine, in *program.Instr) func() {
	if in.Args[1].Type.Elem == ir.I32 {
		return gatherScatterBy[T, int32](m, in)
	}
	return gatherScatterBy[T, int64](m, in)
}

func gatherScatterBy[T unsigned, I int32 | int64](m *machine, in *program.Instr) func() {
	ptrs := m.reg(in.Args[0]).ptrs
	offsets := lanes[I](m.reg(in.Args[1]))
	count, size := in.Args[1].Type.Lanes, int64(in.Args[0].Type.Elem.Size())
	gather, isBool := in.Op == program.Gather, in.Args[0].Type.Elem == ir.Bool
	var data []T
	if gather {
		data = lanes[T](m.define(in.Result))
	} else {
		data = lanes[T](m.reg(in.Args[2]))
	}
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			for i := t * count; i < (t+1)*count; i++ {
				p := ptrs[t]
				p.off += int64(offsets[i]) * size
				bytes := m.span(in, p, size, t, !gather)
				if bytes == nil {
					return
				}
				element := (*T)(unsafe.Pointer(&bytes[0]))
				switch {
				case gather && isBool && *element != 0:
					data[i] = 1
				case gather:
					data[i] = *element
				case m.fault == nil:
					*element = data[i]
				}
			}
		}
	}
}

// atomic runs the threads one after the other.
func (m *machine) atomic(in *program.Instr) func() {
	ptrs, value, old := m.reg(in.Args[0]).ptrs, m.reg(in.Args[1]).data, m.define(in.Result).data
	d := in.Result.Type.Elem
	n := d.Size()
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			p := ptrs[t]
			if p.region == nil || !p.ok(int64(n), int64(in.Align)) {
				m.span(in, p, int64(n), t, true)
				return
			}
			mem := p.region.bytes[p.off : p.off+int64(n)]
			copy(old[t*n:(t+1)*n], mem)
			x := ir.DecodeTable(d, string(mem), 0)
			y := ir.DecodeTable(d, string(value[t*n:(t+1)*n]), 0)
			z := ir.EvalScalar(in.Ir, d, d, []ir.Scalar{x, y})
			word := uint64(z.I)
			if d.IsFloat() {
				word = ir.FloatBits(d, z.F)
			}
			for i := range mem {
				mem[i] = byte(word >> (8 * i))
			}
		}
	}
}
