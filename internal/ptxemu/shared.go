package ptxemu

import "fmt"

// sharedMemory is the memory of one block. Every byte remembers who touched it
// since the last barrier, so that two threads that do so without one between
// are found, whatever the order in which they ran.
type sharedMemory struct {
	data  []byte
	cells []cell
	epoch uint64 // counts barriers, over all blocks that used this memory
	start uint64 // of the present block: what was written before is undefined

	reached uint32 // by other blocks of the cluster: arrivals, the next one among them
}

// cell is the history of a byte. Threads are flat indices in the cluster.
type cell struct {
	written   uint64 // epoch
	read      uint64
	writer    int32 // thread, or atomically
	reader    int32 // thread, or -2-w for several of warp w, or several
	writeWarp uint32
	readWarp  uint32 // epochs of the writer's and reader's warps

	writeArrivals, readArrivals uint32 // of those warps at the barrier of the cluster
}

const (
	several    = -1
	atomically = -1 << 30
)

func newSharedMemory(size int) *sharedMemory {
	return &sharedMemory{data: make([]byte, size), cells: make([]cell, size)}
}

func (m *sharedMemory) begin() {
	m.epoch++
	m.start, m.reached = m.epoch, 0
	for i := range m.data {
		m.data[i] = garbage
	}
}

// check reports an access outside.
func (m *sharedMemory) check(at uint64, n int) error { return checkInside("shared", m.data, at, n) }

func checkInside(space string, data []byte, at uint64, n int) error {
	if at > uint64(len(data)) || uint64(n) > uint64(len(data))-at {
		return fmt.Errorf("%d bytes at %d of %d bytes of %s memory", n, at, len(data), space)
	}
	return nil
}

// load notes a read by a thread.
func (m *sharedMemory) load(w *warp, lane int, at uint64, n int) error {
	if err := m.check(at, n); err != nil {
		return err
	}
	thread := int32(w.id()*lanes + lane)
	var hole error
	for i := range n {
		c := &m.cells[at+uint64(i)]
		if c.written < m.start && hole == nil {
			hole = undefinedError{space: "shared", at: at + uint64(i)}
		}
		if c.writer != thread && m.races(w, c.written, c.writer, c.writeWarp, c.writeArrivals) {
			return fmt.Errorf("a race: byte %d of shared memory was written by %s since the last barrier", at+uint64(i), who(c.writer))
		}
		m.noteRead(c, w, thread)
	}
	return hole
}

func (m *sharedMemory) noteRead(c *cell, w *warp, thread int32) {
	inWarp := int32(-2 - w.id())
	switch {
	case c.read != m.epoch || c.reader == thread:
		c.reader = thread
	case c.reader == inWarp || c.reader >= 0 && int(c.reader)/lanes == w.id():
		c.reader = inWarp
	default:
		c.reader = several
	}
	c.read, c.readWarp, c.readArrivals = m.epoch, w.epoch, w.arrivals
}

// races reports that another thread did something at an epoch, and that nothing has ordered it
// before what a warp does now: neither a barrier of the block or, for threads of one warp, of
// the warp, nor one of the cluster, the only one that orders threads of two blocks.
func (m *sharedMemory) races(w *warp, epoch uint64, thread int32, warpEpoch, arrivals uint32) bool {
	if epoch < m.start || w.waits > arrivals {
		return false
	}
	if rank, known := rankOf(thread); known && rank != w.block.rank || w.block.shared != m {
		return true
	}
	return epoch == m.epoch && !m.ordered(w, thread, warpEpoch)
}

// rankOf is the block in its cluster of a thread or warp.
func rankOf(thread int32) (rank int, known bool) {
	switch {
	case thread >= 0:
		return int(thread) / maxThreads, true
	case thread < several && thread > atomically:
		return int(-2-thread) * lanes / maxThreads, true
	}
	return 0, false
}

// ordered reports that another thread of the same warp did something before
// the warp's last bar.warp.sync.
func (m *sharedMemory) ordered(w *warp, thread int32, epoch uint32) bool {
	sameWarp := thread >= 0 && int(thread)/lanes == w.id() || thread == int32(-2-w.id())
	return sameWarp && epoch < w.epoch
}

// store notes a write; equal values may be written by several threads.
func (m *sharedMemory) store(w *warp, lane int, at uint64, from []byte) error {
	if err := m.check(at, len(from)); err != nil {
		return err
	}
	w.hidden = true
	thread := int32(w.id()*lanes + lane)
	for i, v := range from {
		c := &m.cells[at+uint64(i)]
		if c.writer != thread && m.data[at+uint64(i)] != v && m.races(w, c.written, c.writer, c.writeWarp, c.writeArrivals) {
			return fmt.Errorf("a race: byte %d of shared memory was written by %s since the last barrier", at+uint64(i), who(c.writer))
		}
		if c.reader != thread && m.races(w, c.read, c.reader, c.readWarp, c.readArrivals) {
			return fmt.Errorf("a race: byte %d of shared memory was read by %s since the last barrier", at+uint64(i), who(c.reader))
		}
		c.written, c.writer, c.writeWarp, c.writeArrivals = m.epoch, thread, w.epoch, w.arrivals
		m.data[at+uint64(i)] = v
	}
	return nil
}

// atomic notes an atomic access, which conflicts with plain ones only.
func (m *sharedMemory) atomic(w *warp, lane int, at uint64, n int) error {
	if err := m.check(at, n); err != nil {
		return err
	}
	w.hidden = true
	thread := int32(w.id()*lanes + lane)
	for i := range n {
		c := &m.cells[at+uint64(i)]
		if c.written < m.start {
			return fmt.Errorf("byte %d of shared memory is not defined", at+uint64(i))
		}
		if c.writer != thread && c.writer != atomically && m.races(w, c.written, c.writer, c.writeWarp, c.writeArrivals) {
			return fmt.Errorf("a race: byte %d of shared memory was written by %s since the last barrier", at+uint64(i), who(c.writer))
		}
		c.written, c.writer, c.writeArrivals = m.epoch, atomically, w.arrivals
	}
	return nil
}

func who(thread int32) string {
	switch {
	case thread == atomically:
		return "an atomic access"
	case thread == several:
		return "several threads"
	case thread < 0:
		return fmt.Sprintf("threads of warp %d", -2-thread)
	case thread >= maxThreads:
		return fmt.Sprintf("thread %d of block %d of the cluster", thread%maxThreads, thread/maxThreads)
	}
	return fmt.Sprintf("thread %d", thread)
}

// localMemory is the memory of one thread.
type localMemory struct {
	data    []byte
	written []bool
}

func (m *localMemory) check(at uint64, n int) error { return checkInside("local", m.data, at, n) }

// localOf is a lane's local memory, made when it is first touched.
func (w *warp) localOf(lane int) *localMemory {
	if w.local == nil {
		w.local = make([]localMemory, lanes)
	}
	m := &w.local[lane]
	if m.data == nil {
		n := w.grid.kernel.local
		m.data, m.written = make([]byte, n), make([]bool, n)
	}
	return m
}
