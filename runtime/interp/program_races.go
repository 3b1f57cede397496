package interp

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
