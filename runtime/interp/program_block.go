package interp

import (
	"fmt"

	"tgc/ir/program"
)

// Programs with threads. All threads of a block run in lockstep, one
// instruction after the other; where control flow differs among them, those
// that do not take part are masked. Lockstep hides a missing barrier, so every
// access of shared memory is checked: two threads may touch one byte, one of
// them writing, only with a barrier in between (or a SyncWarp, in one warp).

const warpThreads = 32

// block is what the threads of a block share.
type block struct {
	threads int
	shape   []int64
	active  []bool
	live    int // active threads
	epoch   int32
	warps   []int32 // SyncWarps that each warp has passed
}

func newBlock(p *program.Program) *block {
	b := &block{threads: 1, shape: p.Block}
	for _, n := range p.Block {
		b.threads *= int(n)
	}
	b.active = repeat(true, b.threads)
	b.live = b.threads
	b.warps = make([]int32, (b.threads+warpThreads-1)/warpThreads)
	return b
}

func repeat[T any](v T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// runBlocks runs blocks [lo, hi): prologue and body for each.
func (m *machine) runBlocks(lo, hi int64) error {
	for unit := lo; unit < hi && m.fault == nil; unit++ {
		m.lo = unit
		m.block.epoch++
		exec(m.code)
	}
	return m.fault
}

// threadInstr compiles every instruction but Alu for all threads.
func (m *machine) threadInstr(in *program.Instr) (func(), error) {
	switch in.Op {
	case program.Const, program.ConstLanes, program.Iota:
		m.constant(in)
		return nil, nil
	case program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.FoldLanes:
		return m.threadMovement(in)
	case program.Dot4:
		return m.dot4(in), nil
	case program.PtrAdd:
		return m.threadPtrAdd(in), nil
	case program.Load, program.Store, program.Gather, program.Scatter, program.Guarded:
		return m.threadMemory(in), nil
	case program.Alloca:
		return m.threadAlloca(in), nil
	case program.For:
		return m.threadLoop(in)
	case program.If:
		return m.threadBranch(in)
	case program.GridLoop:
		return m.threadGrid(in)
	case program.ThreadIndex:
		m.threadIndex(in)
		return nil, nil
	case program.Barrier:
		return func() { m.barrier(in) }, nil
	case program.SyncWarp:
		return func() { m.syncWarp() }, nil
	case program.ShuffleLane:
		return m.shuffleLane(in), nil
	case program.Atomic:
		return m.atomic(in), nil
	case program.AsyncCopy:
		return m.asyncCopy(in), nil
	case program.Mma:
		return m.mma(in)
	case program.Prefetch, program.WaitGrid, program.LaunchNext, program.Fence, program.AsyncCommit, program.AsyncWait:
		return nil, nil
	}
	return nil, fmt.Errorf("the interpreter has no %s", in.Op)
}

func (m *machine) threadIndex(in *program.Instr) {
	out := lanes[int32](m.define(in.Result))
	below := int64(1)
	for _, n := range m.block.shape[in.Lane+1:] {
		below *= n
	}
	for t := range out {
		out[t] = int32(int64(t) / below % m.block.shape[in.Lane])
	}
}

func (m *machine) barrier(in *program.Instr) {
	if m.block.live != m.threads {
		m.fail(in, fmt.Errorf("%d of %d threads come to it", m.block.live, m.threads))
	}
	m.block.epoch++
}

func (m *machine) syncWarp() {
	for w := range m.block.warps {
		if m.block.active[w*warpThreads] {
			m.block.warps[w]++
		}
	}
}

// shuffleLane: every lane's partner must take part.
func (m *machine) shuffleLane(in *program.Instr) func() {
	from, to := m.reg(in.Args[0]).data, m.define(in.Result).data
	mask := lanes[int32](m.reg(in.Args[1]))
	n := len(to) / m.threads
	return func() {
		for t := range m.threads {
			if !m.block.active[t] {
				continue
			}
			other := t ^ int(mask[t])
			if mask[t] < 0 || mask[t] >= warpThreads || other >= m.threads || !m.block.active[other] {
				m.fail(in, fmt.Errorf("thread %d reads from thread %d, which is not there", t, other))
				return
			}
			copy(to[t*n:(t+1)*n], from[other*n:])
		}
	}
}

// Control flow.

func (m *machine) threadGrid(in *program.Instr) (func(), error) {
	body, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	index := lanes[int64](m.reg(in.Body.Args[0]))
	return func() {
		for t := range index {
			index[t] = m.lo
		}
		exec(body)
	}, nil
}

// masked runs f with only those active threads for which keep holds.
func (m *machine) masked(keep func(t int) bool, f func()) {
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

func (m *machine) threadLoop(in *program.Instr) (func(), error) {
	body, err := m.compile(in.Body)
	if err != nil {
		return nil, err
	}
	carried := in.Body.Args[1:]
	start := m.threadCopies(carried, in.Args[3:])
	body = append(body, m.threadCopies(carried, yielded(in.Body)))
	for i, r := range in.Results {
		m.regs[r.ID] = m.reg(carried[i])
	}
	lo, hi, step := lanes[int64](m.reg(in.Args[0])), lanes[int64](m.reg(in.Args[1])), lanes[int64](m.reg(in.Args[2]))
	index := lanes[int64](m.reg(in.Body.Args[0]))
	return func() {
		start()
		most := int64(0)
		at := make([]int64, m.threads)
		for t, on := range m.block.active {
			if !on {
				continue
			}
			if step[t] <= 0 {
				m.fail(in, fmt.Errorf("step %d, want at least 1", step[t]))
				return
			}
			at[t] = lo[t]
			if hi[t] > lo[t] {
				most = max(most, (hi[t]-lo[t]+step[t]-1)/step[t])
			}
		}
		end := append([]int64(nil), hi...)
		by := append([]int64(nil), step...)
		for k := int64(0); k < most && m.fault == nil; k++ {
			m.masked(func(t int) bool { return at[t] < end[t] }, func() {
				for t, on := range m.block.active {
					if on {
						index[t] = at[t]
						at[t] += by[t]
					}
				}
				exec(body)
			})
		}
	}, nil
}

func (m *machine) threadBranch(in *program.Instr) (func(), error) {
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
	then = append(then, m.threadCopies(in.Results, yielded(in.Body)))
	other = append(other, m.threadCopies(in.Results, yielded(in.Else)))
	cond := lanes[uint8](m.reg(in.Args[0]))
	return func() {
		m.masked(func(t int) bool { return cond[t] != 0 }, func() { exec(then) })
		m.masked(func(t int) bool { return cond[t] == 0 }, func() { exec(other) })
	}, nil
}

// threadCopies is the parallel assignment to <- from in active threads.
func (m *machine) threadCopies(to, from []*program.Value) func() {
	type move struct {
		to, from []byte
		n        int
	}
	moves := make([]move, len(to))
	total := 0
	for i := range to {
		t, f := m.reg(to[i]).data, m.reg(from[i]).data
		moves[i] = move{t, f, len(t) / m.threads}
		total += moves[i].n
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
