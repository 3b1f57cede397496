package lower

import (
	"tgc/internal/lists"
	"tgc/ir/analyse"
	"tgc/ir/program"
)

// Blocks of a cluster share a reduce as the threads of a block do, through shared memory:
// each stores its part into that of the block which goes on with the result, where all
// wait for all. So nobody reads memory that is far, and only who needs the parts waits for them.
//
// A block may store into another one when that has started. All arrive at the cluster's barrier
// first thing and wait there before their first store, when the others have long arrived.

// combineBlocks combines what the blocks of a cluster have of a reduce. Where it is the only
// such reduce the first block alone has the result, and the others are done: what they compute
// from then on, nobody stores.
func (l *folder) combineBlocks(items []*program.Value, free analyse.RangeSet, all func(parts [][]*program.Value) []*program.Value) []*program.Value {
	own := free.Meet(l.block.threads)
	slot, slots := l.block.ownSlot(own)
	arrays := lists.Map(items, func(x *program.Value) *program.Value {
		return l.block.newShared(x.Type.Elem, l.block.cluster*slots*int64(x.Type.Lanes))
	})
	receivers := l.block.receivers()
	l.stores.onlyIf(l.block.soleInBlock(own), func() {
		mine := l.b.Add(l.b.Mul(l.block.blockInCluster, l.b.Index(slots)), slot)
		for r := range receivers {
			for k, x := range items {
				p := l.b.PeerPtr(l.slot(arrays[k], mine, x.Type.Lanes), l.b.Index(r))
				l.b.Store(p, x, slotAlign(x.Type))
			}
		}
	})
	l.b.Emit(program.Instr{Op: program.ClusterArrive})
	combined := func() []*program.Value {
		l.b.Emit(program.Instr{Op: program.ClusterWait})
		parts := make([][]*program.Value, l.block.cluster)
		for i := range parts {
			at := l.b.Add(l.b.Index(int64(i)*slots), slot)
			for k, x := range items {
				parts[i] = append(parts[i], l.b.Load(l.slot(arrays[k], at, x.Type.Lanes), x.Type.Lanes, slotAlign(x.Type)))
			}
		}
		return all(parts)
	}
	if receivers > 1 {
		return combined()
	}
	first := l.b.Lt(l.block.blockInCluster, l.b.Index(1))
	return l.b.If(first, func() []*program.Value { return l.inLoop(combined) }, func() []*program.Value { return items })
}

// inOrder combines parts one after the other.
func (f fold) inOrder(parts [][]*program.Value) []*program.Value {
	acc := parts[0]
	for _, x := range parts[1:] {
		acc = f(acc, x)
	}
	return acc
}
