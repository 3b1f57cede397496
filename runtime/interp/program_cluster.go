package interp

import (
	"fmt"

	"tgc/ir/program"
)

// Clusters. Blocks run in lockstep, which hides a missing barrier between them as it does one
// between threads: accesses of two blocks to one byte are checked as those of two threads are
// (program_races.go), and a block's memory exists for others only from where all have arrived
// at the cluster's barrier to where the block may end.

// peerPtr is the same place in the memory of another block.
func (m *machine) peerPtr(in *program.Instr) func() {
	from, to := m.reg(in.Args[0]).ptrs, m.define(in.Result).ptrs
	block := lanes[int64](m.reg(in.Args[1]))
	return func() {
		for t, on := range m.block.active {
			if !on {
				continue
			}
			if k := block[t]; k < 0 || k >= int64(m.block.count) {
				m.fail(in, fmt.Errorf("block %d of a cluster of %d", k, m.block.count))
				return
			}
			to[t] = pointer{from[t].region.peers[block[t]], from[t].off}
		}
	}
}

// reach notes an access to the memory of another block.
func (m *machine) reach(in *program.Instr, r *region, thread int) {
	b := m.block
	mine := b.of(thread)
	if mine == r.block {
		return
	}
	if b.waited[mine] == 0 {
		m.fail(in, fmt.Errorf("thread %d reaches the memory of block %d, which may not have begun", thread, r.block))
	}
	b.reached[r.block] = max(b.reached[r.block], b.arrived[mine]+1)
}

func (m *machine) clusterArrive(in *program.Instr) {
	b := m.block
	blocks, ok := b.whole(b.threads)
	if !ok || len(blocks) != b.count {
		m.fail(in, fmt.Errorf("%d of %d threads come to it", b.live, m.threads))
		return
	}
	for _, k := range blocks {
		if b.arrived[k]++; b.arrived[k] != b.waited[k]+1 {
			m.fail(in, fmt.Errorf("block %d has arrived twice and not waited", k))
		}
	}
}

func (m *machine) clusterWait(in *program.Instr) {
	b := m.block
	blocks, ok := b.whole(b.threads)
	if !ok {
		m.fail(in, fmt.Errorf("%d of %d threads come to it", b.live, m.threads))
		return
	}
	for _, k := range blocks {
		if b.waited[k]++; b.waited[k] != b.arrived[k] {
			m.fail(in, fmt.Errorf("block %d waits and has not arrived", k))
		}
	}
}

// endCluster finds blocks that may have ended before others are done with their memory.
func (m *machine) endCluster() {
	for k, clock := range m.block.reached {
		if m.fault == nil && m.block.waited[k] < clock {
			m.fault = fmt.Errorf("interp: kernel %s: block %d of a cluster may end before others have reached its memory", m.program.Name, k)
		}
	}
}
