package interp

// Races on shared memory.

// accesses remembers, for every byte, who touched it since the last barrier.
type accesses struct{ write, read []access }

type access struct {
	run   int32 // blocks, or clusters, that had begun
	block int32 // of the cluster, that made it
	clock int32 // arrivals of that block at the barrier of the cluster
	epoch int32 // barriers that it had passed
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
	mine := int32(b.of(thread))
	switch {
	case a.run != b.run || b.waited[mine] > a.clock || a.block == mine && a.epoch != b.epochs[mine]:
		return -1
	case a.block != mine:
		return int(a.last)
	}
	w := b.warp(thread)
	for _, other := range []int32{a.first, a.last} {
		if int(other) == thread || b.warp(int(other)) == w && a.warp < b.warps[w] {
			continue
		}
		return int(other)
	}
	return -1
}

func (a *access) note(b *block, thread int) {
	block, w := b.of(thread), b.warps[b.warp(thread)]
	now := access{b.run, int32(block), b.arrived[block], b.epochs[block], w, int32(thread), int32(thread)}
	if a.run != now.run || a.block != now.block || a.clock != now.clock || a.epoch != now.epoch {
		*a = now
		return
	}
	if b.warp(int(a.first)) == b.warp(thread) && a.warp < w {
		a.first = int32(thread)
	}
	a.last, a.warp = int32(thread), w
}
