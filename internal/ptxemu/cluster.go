package ptxemu

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
)

// cluster is blocks that run at once; one block where the kernel has no clusters.
//
// A warp counts how often it has arrived at the cluster's barrier and waited there. What a
// thread of one block did to a byte of shared memory is seen by one of another block that has
// since waited for an arrival of the first: waits > the arrivals at the access.
type cluster struct{ blocks []*block }

func (c *cluster) warps() iter.Seq[*warp] {
	return func(yield func(*warp) bool) {
		for _, b := range c.blocks {
			for _, w := range b.warps {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// gathered reports that all warps have arrived as often as one that waits, or ended.
func (c *cluster) gathered(w *warp) bool {
	for other := range c.warps() {
		if !other.done() && other.arrivals < w.waits {
			return false
		}
	}
	return true
}

// meet lets the warps of blocks go on that are all at the barrier of their block, or as many as
// it is for; it reports whether there are any.
func (c *cluster) meet() bool {
	met := false
	for _, b := range c.blocks {
		if !b.meets() {
			continue
		}
		b.shared.epoch++
		for _, w := range b.warps {
			w.waiting = false
		}
		met = true
	}
	return met
}

// meets reports that as many warps of a block are at its barrier as that waits for.
func (b *block) meets() bool {
	waiting, others, meeting := 0, 0, -1
	for _, w := range b.warps {
		switch {
		case w.done():
		case !w.waiting:
			others++
		case meeting >= 0 && w.meeting != meeting:
			return false // for ever
		default:
			waiting, meeting = waiting+1, w.meeting
		}
	}
	return waiting > 0 && (meeting == 0 && others == 0 || waiting == meeting)
}

var (
	errStuck = errors.New("some threads wait for the block, and others are not there or wait for the cluster, for ever")
	errGone  = errors.New("the block may end before others have reached its shared memory")
)

// end notes that blocks have ended.
func (g *Grid) end(c *cluster) error {
	for _, b := range c.blocks {
		waited := uint32(0)
		for _, w := range b.warps {
			waited = max(waited, w.waits)
		}
		if waited < b.shared.reached {
			return &Fault{Kernel: g.kernel.Name, Block: b.index, Err: errGone}
		}
		if err := g.trigger(b); err != nil {
			return err
		}
	}
	return nil
}

// Addresses of shared memory in a cluster: the block's number in it, from 1, over the offset.
const (
	peerShift = 24
	peerMask  = 1<<peerShift - 1
)

// sharedOf is the shared memory that an address is in, and the offset there. That of another
// block exists from when all have begun: who reaches it has waited for the cluster before.
func (w *warp) sharedOf(at uint64) (*sharedMemory, uint64, error) {
	rank := int(at>>peerShift) - 1
	if rank < 0 || rank == w.block.rank {
		return w.block.shared, at & peerMask, nil
	}
	if rank >= len(w.block.peers.blocks) {
		return nil, 0, fmt.Errorf("block %d of a cluster of %d", rank, len(w.block.peers.blocks))
	}
	if w.waits == 0 {
		return nil, 0, fmt.Errorf("reaches the shared memory of block %d of the cluster, which may not have begun", rank)
	}
	m := w.block.peers.blocks[rank].shared
	m.reached = max(m.reached, w.arrivals+1)
	return m, at & peerMask, nil
}

// compileMapAddress: mapa, of addresses of shared memory or generic ones.
func compileMapAddress(c *compiler, s *statement) {
	c.arity(s, 3, 3)
	k := c.kind(s, 0)
	generic := !s.has("shared::cluster")
	to, width := c.destination(s.args[0], k.bits)
	from, rank := c.sourceOf(k, s.args[1]), c.source(s.args[2], 32)
	c.now.run = func(w *warp, active uint32) error {
		for m := active; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			at, n := w.data[from][lane], w.data[rank][lane]
			if generic && at&windowMask != sharedWindow {
				return w.inLane(lane, fmt.Errorf("address %#x is not in shared memory", at))
			}
			if n >= uint64(len(w.block.peers.blocks)) {
				return w.inLane(lane, fmt.Errorf("block %d of a cluster of %d", n, len(w.block.peers.blocks)))
			}
			w.data[to][lane] = (at&^(0xff<<peerShift) | (n+1)<<peerShift) & mask(width)
		}
		return nil
	}
}

// compileClusterBarrier: all threads of the warp take part.
func compileClusterBarrier(c *compiler, s *statement) {
	c.now.full = true
	switch {
	case !s.has("aligned"):
		c.fail("only the aligned form is supported")
	case s.has("arrive") && !s.has("relaxed"):
		c.now.run = func(w *warp, _ uint32) error {
			if w.arrivals++; w.arrivals != w.waits+1 {
				return fmt.Errorf("arrives again and has not waited")
			}
			return nil
		}
	case s.has("wait"):
		c.now.kind = clusterWait
	default:
		c.fail("want arrive or wait")
	}
}
