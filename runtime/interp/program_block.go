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

// block is what the threads of a block share, or of each block of a cluster.
type block struct {
	threads int // of one block
	count   int // blocks
	shape   []int64
	active  []bool
	live    int     // active threads
	epochs  []int32 // barriers that each block has passed
	warps   []int32 // SyncWarps that each warp has passed
	run     int32   // blocks, or clusters, that have begun
	arrived []int32 // at the barrier of the cluster, since it began: times of each block
	waited  []int32
	reached []int32 // arrivals, the next one among them, up to which others access a block's memory
}

func newBlock(p *program.Program) *block {
	b := &block{threads: int(p.Threads()), count: int(max(p.Cluster, 1)), shape: p.Block}
	all := b.threads * b.count
	b.active = slices.Repeat([]bool{true}, all)
	b.live = all
	b.epochs, b.arrived, b.waited, b.reached = make([]int32, b.count), make([]int32, b.count), make([]int32, b.count), make([]int32, b.count)
	b.warps = make([]int32, b.count*b.warpsOf())
	return b
}

// warpsOf is the number of warps of a block.
func (b *block) warpsOf() int { return (b.threads + warpThreads - 1) / warpThreads }

// warp is the warp of a thread, of is its block.
func (b *block) warp(t int) int { return b.of(t)*b.warpsOf() + t%b.threads/warpThreads }
func (b *block) of(t int) int   { return t / b.threads }

// begin starts a block, or a cluster.
func (b *block) begin() {
	b.run++
	for k := range b.epochs {
		b.epochs[k]++
		b.arrived[k], b.waited[k], b.reached[k] = 0, 0, 0
	}
}

// whole lists the blocks whose first threads, n of them, all take part and no others; ok is false where some of a block's do.
func (b *block) whole(n int) (blocks []int, ok bool) {
	for k := range b.count {
		live, first := 0, 0
		for t, on := range b.active[k*b.threads : (k+1)*b.threads] {
			if on {
				live++
			}
			if on && t < n {
				first++
			}
		}
		if live == 0 {
			continue
		}
		if live != n || first != n {
			return nil, false
		}
		blocks = append(blocks, k)
	}
	return blocks, true
}

func (m *machine) threadIndex(in *program.Instr) {
	out := lanes[int32](m.define(in.Result))
	below := lists.Product(m.block.shape[in.Lane+1:])
	for t := range out {
		out[t] = int32(int64(t%m.block.threads) / below % m.block.shape[in.Lane])
	}
}

func (m *machine) barrier(in *program.Instr) {
	n := m.block.threads
	if in.Int > 0 {
		n = int(in.Int)
	}
	blocks, ok := m.block.whole(n)
	if !ok {
		m.fail(in, fmt.Errorf("%d of %d threads come to it", m.block.live, n*m.block.count))
	}
	for _, k := range blocks {
		m.block.epochs[k]++
	}
}

func (m *machine) syncWarp() {
	for k := range m.block.count {
		for t := k * m.block.threads; t < (k+1)*m.block.threads; t += warpThreads {
			if m.block.active[t] {
				m.block.warps[m.block.warp(t)]++
			}
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
			first := m.block.of(t) * m.block.threads
			other := first + ((t - first) ^ int(mask[t]))
			if mask[t] < 0 || mask[t] >= warpThreads || other >= first+m.block.threads || !m.block.active[other] {
				m.fail(in, fmt.Errorf("thread %d reads from thread %d, which is not there", t, other))
				return
			}
			copy(to[t*n:(t+1)*n], from[other*n:])
		}
	}
}
