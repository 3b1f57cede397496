package interp

import (
	"fmt"
	"unsafe"

	"tgc/ir/program"
)

// Control flow. Where it differs among the threads of a block, those that do not
// take part are masked.

func (m *machine) grid(in *program.Instr) (func(), error) {
	body, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	index := lanes[int64](m.reg(in.Body.Args[0]))
	return func() {
		for unit := m.lo; unit < m.hi && m.fault == nil; unit++ {
			for t := range index {
				index[t] = unit + int64(t/m.block.threads)
			}
			exec(body)
		}
	}, nil
}

// loop compiles a For. The results share the registers of the carried block
// arguments: after the last yield those hold the results.
func (m *machine) loop(in *program.Instr) (func(), error) {
	body, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	carried := in.Body.Args[1:]
	start := m.copies(carried, in.Args[3:])
	body = append(body, m.copies(carried, yielded(in.Body)))
	for i, r := range in.Results {
		m.regs[r.ID] = m.reg(carried[i])
	}
	lo, hi, step := lanes[int64](m.reg(in.Args[0])), lanes[int64](m.reg(in.Args[1])), lanes[int64](m.reg(in.Args[2]))
	index := lanes[int64](m.reg(in.Body.Args[0]))
	if m.threads > 1 {
		return func() {
			start()
			m.loopThreads(in, body, index, append([]int64(nil), lo...), append([]int64(nil), hi...), append([]int64(nil), step...))
		}, nil
	}
	return func() {
		start()
		by := step[0]
		if by <= 0 {
			m.badStep(in, by)
			return
		}
		for i, end := lo[0], hi[0]; i < end && m.fault == nil; i += by {
			index[0] = i
			exec(body)
		}
	}, nil
}

func (m *machine) badStep(in *program.Instr, step int64) {
	m.fail(in, fmt.Errorf("step %d, want at least 1", step))
}

// loopThreads runs a loop of which every thread has its own bounds.
func (m *machine) loopThreads(in *program.Instr, body []func(), index, at, end, step []int64) {
	most := int64(0)
	for t, on := range m.block.active {
		if !on {
			continue
		}
		if step[t] <= 0 {
			m.badStep(in, step[t])
			return
		}
		if end[t] > at[t] {
			most = max(most, (end[t]-at[t]+step[t]-1)/step[t])
		}
	}
	for k := int64(0); k < most && m.fault == nil; k++ {
		m.masked(func(t int) bool { return at[t] < end[t] }, func() {
			for t, on := range m.block.active {
				if on {
					index[t] = at[t]
					at[t] += step[t]
				}
			}
			exec(body)
		})
	}
}

func (m *machine) branch(in *program.Instr) (func(), error) {
	then, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	other, err := m.compile(in.Else)
	if err != nil {
		return nil, err
	}
	for _, r := range in.Results {
		m.define(r)
	}
	then = append(then, m.copies(in.Results, yielded(in.Body)))
	other = append(other, m.copies(in.Results, yielded(in.Else)))
	cond := lanes[uint8](m.reg(in.Args[0]))
	holds, fails := func(t int) bool { return cond[t] != 0 }, func(t int) bool { return cond[t] == 0 }
	execThen, execElse := func() { exec(then) }, func() { exec(other) }
	return func() {
		m.masked(holds, execThen)
		m.masked(fails, execElse)
	}, nil
}

// masked runs f with only those active threads for which keep holds.
func (m *machine) masked(keep func(t int) bool, f func()) {
	if m.threads == 1 {
		if keep(0) {
			f()
		}
		return
	}
	saved, live := m.block.active, m.block.live
	mask := make([]bool, len(saved))
	n := 0
	for t, on := range saved {
		if mask[t] = on && keep(t); mask[t] {
			n++
		}
	}
	if n > 0 {
		m.block.active, m.block.live = mask, n
		f()
		m.block.active, m.block.live = saved, live
	}
}

func yielded(b *program.Block) []*program.Value {
	return b.Instrs[len(b.Instrs)-1].Args
}

// copies compiles a parallel assignment to <- from in active threads. When a
// source shares bytes with another target, everything goes through a buffer.
func (m *machine) copies(to, from []*program.Value) func() {
	type move struct {
		to, from []byte
		n        int // bytes of a thread
	}
	var moves []move
	hazard := false
	total := 0
	for i := range to {
		t, f := m.reg(to[i]).data, m.reg(from[i]).data
		if &t[0] == &f[0] {
			continue
		}
		moves = append(moves, move{t, f, len(t) / m.threads})
		total += len(t) / m.threads
		for j := range to {
			hazard = hazard || j != i && overlap(m.reg(to[j]).data, f)
		}
	}
	if !hazard {
		return func() {
			for t, on := range m.block.active {
				for _, c := range moves {
					if on {
						copy(c.to[t*c.n:(t+1)*c.n], c.from[t*c.n:])
					}
				}
			}
		}
	}
	buffer := newBytes(total)
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			at := 0
			for _, c := range moves {
				at += copy(buffer[at:], c.from[t*c.n:(t+1)*c.n])
			}
			at = 0
			for _, c := range moves {
				at += copy(c.to[t*c.n:(t+1)*c.n], buffer[at:])
			}
		}
	}
}

func overlap(a, b []byte) bool {
	a0, b0 := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return a0 < b0+uintptr(len(b)) && b0 < a0+uintptr(len(a))
}
