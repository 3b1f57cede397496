package interp

import (
	"fmt"
	"unsafe"

	"tgc/ir"
	"tgc/ir/program"
)

// Memory and lane movement of programs with threads.

func (m *machine) threadPtrAdd(in *program.Instr) func() {
	from, to := m.reg(in.Args[0]).ptrs, m.define(in.Result).ptrs
	by := lanes[int64](m.reg(in.Args[1]))
	size := int64(in.Result.Type.Elem.Size())
	return func() {
		for t := range to {
			to[t] = pointer{from[t].region, from[t].off + by[t]*size}
		}
	}
}

// threadAlloca gives every thread an array of its own, or all of them one in
// shared memory.
func (m *machine) threadAlloca(in *program.Instr) func() {
	n := int(in.Count) * in.Result.Type.Elem.Size()
	ptrs := m.define(in.Result).ptrs
	var regions []*region
	for t := range ptrs {
		if t == 0 || in.Result.Type.Space != program.SharedSpace {
			regions = append(regions, &region{name: "alloca", bytes: newBytes(n), align: in.Align})
		}
		ptrs[t].region = regions[len(regions)-1]
	}
	if in.Result.Type.Space == program.SharedSpace {
		regions[0].name = "shared memory"
		regions[0].seen = newAccesses(n)
	}
	if !m.debug {
		return nil
	}
	return func() {
		for _, r := range regions {
			for i := range r.bytes {
				r.bytes[i] = 0xff // NaN in every float dtype
			}
		}
	}
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
		if other := p.region.seen.touch(m.block, p.off, n, thread, write); other >= 0 {
			m.fail(in, fmt.Errorf("shared memory: threads %d and %d touch byte %d without a barrier in between", other, thread, p.off))
			return nil
		}
	}
	return p.region.bytes[p.off : p.off+n]
}

func (m *machine) threadMemory(in *program.Instr) func() {
	switch in.Op {
	case program.Load, program.Guarded:
		return m.threadLoad(in)
	case program.Store:
		return m.threadStore(in)
	}
	elem := in.Args[0].Type.Elem
	size := elem.Size()
	ptrs := m.reg(in.Args[0]).ptrs
	offsets := m.offsets(in.Args[1])
	count := in.Args[1].Type.Lanes
	var data []byte
	if in.Op == program.Gather {
		data = m.define(in.Result).data
	} else {
		data = m.reg(in.Args[2]).data
	}
	gather := in.Op == program.Gather
	return func() {
		for t, on := range m.block.active {
			for i := 0; on && i < count; i++ {
				p := ptrs[t]
				p.off += offsets(t*count+i) * int64(size)
				mem := m.span(in, p, int64(size), t, !gather)
				if mem == nil {
					return
				}
				mine := data[(t*count+i)*size:][:size]
				switch {
				case gather && elem == ir.Bool:
					normalise(mine, mem)
				case gather:
					copy(mine, mem)
				case m.fault == nil:
					copy(mem, mine)
				}
			}
		}
	}
}

func (m *machine) offsets(v *program.Value) func(i int) int64 {
	if v.Type.Elem == ir.I32 {
		list := lanes[int32](m.reg(v))
		return func(i int) int64 { return int64(list[i]) }
	}
	list := lanes[int64](m.reg(v))
	return func(i int) int64 { return list[i] }
}

func (m *machine) threadLoad(in *program.Instr) func() {
	var guard []uint8
	var other []byte
	at := in.Args[0]
	if in.Op == program.Guarded {
		guard, at, other = lanes[uint8](m.reg(in.Args[0])), in.Args[1], m.reg(in.Args[2]).data
	}
	ptrs, to := m.reg(at).ptrs, m.define(in.Result).data
	n := len(to) / m.threads
	isBool := in.Result.Type.Elem == ir.Bool
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			mine := to[t*n : (t+1)*n]
			if guard != nil && guard[t] == 0 {
				copy(mine, other[t*n:])
				continue
			}
			mem := m.span(in, ptrs[t], int64(n), t, false)
			if mem == nil {
				return
			}
			if isBool {
				normalise(mine, mem)
			} else {
				copy(mine, mem)
			}
		}
	}
}

func (m *machine) threadStore(in *program.Instr) func() {
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

// asyncCopy copies at once; what a program may rely on is checked by its
// barriers.
func (m *machine) asyncCopy(in *program.Instr) func() {
	to, from := m.reg(in.Args[0]).ptrs, m.reg(in.Args[1]).ptrs
	aligned := *in
	aligned.Align = int(in.Count)
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			source := m.span(&aligned, from[t], in.Count, t, false)
			if source == nil {
				return
			}
			if target := m.span(&aligned, to[t], in.Count, t, true); target != nil {
				copy(target, source)
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

// Races on shared memory.

// accesses remembers, for every byte, who touched it since the last barrier.
type accesses struct{ write, read []access }

type access struct {
	epoch int32 // barriers passed
	warp  int32 // SyncWarps that the thread's warp had passed
	first int32 // thread
	last  int32 // another thread that did the same, or first
}

func newAccesses(n int) *accesses { return &accesses{make([]access, n), make([]access, n)} }

// touch records an access and returns a thread with which it races, or -1.
func (a *accesses) touch(b *block, off, n int64, thread int, write bool) int {
	for i := off; i < off+n; i++ {
		if other := a.write[i].conflict(b, thread); other >= 0 {
			return other
		}
		if !write {
			a.read[i].note(b, thread)
			continue
		}
		if other := a.read[i].conflict(b, thread); other >= 0 {
			return other
		}
		a.write[i].note(b, thread)
	}
	return -1
}

// conflict is a thread other than this one that made the access with nothing
// in between, or -1.
func (a *access) conflict(b *block, thread int) int {
	if a.epoch != b.epoch {
		return -1
	}
	w := thread / warpThreads
	for _, other := range []int32{a.first, a.last} {
		if int(other) == thread || int(other)/warpThreads == w && a.warp < b.warps[w] {
			continue
		}
		return int(other)
	}
	return -1
}

func (a *access) note(b *block, thread int) {
	w := b.warps[thread/warpThreads]
	if a.epoch != b.epoch {
		*a = access{b.epoch, w, int32(thread), int32(thread)}
		return
	}
	if int(a.first)/warpThreads == thread/warpThreads && a.warp < w {
		a.first = int32(thread)
	}
	a.last, a.warp = int32(thread), w
}

// Lane movement.

func (m *machine) threadMovement(in *program.Instr) (func(), error) {
	if in.Op == program.FoldLanes {
		return m.threadFold(in)
	}
	switch in.Result.Type.Elem.Size() {
	case 1:
		return threadMove[uint8](m, in), nil
	case 2:
		return threadMove[uint16](m, in), nil
	case 4:
		return threadMove[uint32](m, in), nil
	}
	return threadMove[uint64](m, in), nil
}

// threadMove fills a table with where each lane of the result comes from.
func threadMove[T unsigned](m *machine, in *program.Instr) func() {
	args := make([][]T, len(in.Args))
	for i, a := range in.Args {
		args[i] = lanes[T](m.reg(a))
	}
	type source struct{ arg, lane int }
	var table []source
	switch in.Op {
	case program.Broadcast:
		table = repeat(source{0, 0}, in.Result.Type.Lanes)
	case program.Extract:
		table = []source{{0, in.Lane}}
	case program.Insert:
		for i := range in.Result.Type.Lanes {
			table = append(table, source{0, i})
		}
		table[in.Lane] = source{1, 0}
	case program.Shuffle:
		n := in.Args[0].Type.Lanes
		for _, i := range in.Mask {
			table = append(table, source{max(i, 0) / n, max(i, 0) % n})
		}
	case program.Concat:
		for k, a := range in.Args {
			for i := range a.Type.Lanes {
				table = append(table, source{k, i})
			}
		}
	}
	r := lanes[T](m.define(in.Result))
	return func() {
		at := 0
		for t := range m.threads {
			for _, s := range table {
				r[at] = args[s.arg][t*in.Args[s.arg].Type.Lanes+s.lane]
				at++
			}
		}
	}
}

// threadFold folds thread by thread with the fold of one.
func (m *machine) threadFold(in *program.Instr) (func(), error) {
	a, r := m.reg(in.Args[0]).data, m.define(in.Result).data
	n, size := len(a)/m.threads, in.Result.Type.Elem.Size()
	one := &machine{program: m.program, regs: make([]register, m.program.Values), threads: 1}
	from := one.define(in.Args[0]).data
	step, err := one.fold(in)
	if err != nil {
		return nil, err
	}
	to := one.reg(in.Result).data
	return func() {
		for t := range m.threads {
			copy(from, a[t*n:(t+1)*n])
			step()
			copy(r[t*size:(t+1)*size], to)
		}
	}, nil
}

// mma computes a matrix product per warp in float64 (or integers), rounded once.
func (m *machine) mma(in *program.Instr) (func(), error) {
	acc, a, b := in.Args[0].Type, in.Args[1].Type, in.Args[2].Type
	s := program.MmaOf(acc, a, b)
	if s == nil || m.threads%warpThreads != 0 {
		return nil, fmt.Errorf("no matrix product of %s, %s, %s by %d threads", acc, a, b, m.threads)
	}
	x, y, z := m.reg(in.Args[1]).data, m.reg(in.Args[2]).data, m.reg(in.Args[0]).data
	out := m.define(in.Result).data
	word := 4 / s.A.Size()
	return func() {
		for w := 0; w < m.threads; w += warpThreads {
			if !m.block.active[w] {
				continue
			}
			A, B := make([]float64, s.M*s.K), make([]float64, s.K*s.N)
			for t := range warpThreads {
				g, q := t/4, t%4
				for i := range a.Lanes {
					j := i / word
					row, k := g, q*word+i%word
					if s.M == 16 {
						row, k = g+8*(j%2), k+j/2*4*word
					} else {
						k += j * 4 * word
					}
					A[row*s.K+k] = number64(s.A, x[(w+t)*a.Lanes*s.A.Size()+i*s.A.Size():])
				}
				for i := range b.Lanes {
					k := q*word + i%word + i/word*4*word
					B[k*s.N+g] = number64(s.B, y[(w+t)*b.Lanes*s.B.Size()+i*s.B.Size():])
				}
			}
			for t := range warpThreads {
				for i := range acc.Lanes {
					row, col := t/4+i/2*8, t%4*2+i%2
					at := ((w+t)*acc.Lanes + i) * 4
					sum := number64(s.Acc, z[at:])
					for k := range s.K {
						sum += A[row*s.K+k] * B[k*s.N+col]
					}
					if s.Acc == ir.F32 {
						*(*float32)(unsafe.Pointer(&out[at])) = float32(sum)
					} else {
						*(*int32)(unsafe.Pointer(&out[at])) = int32(int64(sum))
					}
				}
			}
		}
	}, nil
}

func number64(d ir.DType, b []byte) float64 {
	v := ir.DecodeTable(d, string(b[:d.Size()]), 0)
	if d.IsFloat() {
		return v.F
	}
	return float64(v.I)
}
