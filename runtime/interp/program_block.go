package interp

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir/program"
)

// The threads of a program. All threads of a block run in lockstep, one
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
	b.active = slices.Repeat([]bool{true}, b.threads)
	b.live = b.threads
	b.warps = make([]int32, (b.threads+warpThreads-1)/warpThreads)
	return b
}

func (m *machine) threadIndex(in *program.Instr) {
	out := lanes[int32](m.define(in.Result))
	below := lists.Product(m.block.shape[in.Lane+1:])
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
