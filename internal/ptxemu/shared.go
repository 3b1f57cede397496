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
}

// cell is the history of a byte. Threads are flat indices.
type cell struct {
	written   uint64 // epoch
	read      uint64
	writer    int32 // thread, or atomically
	reader    int32 // thread, or -2-w for several of warp w, or several
	writeWarp uint32
	readWarp  uint32 // epochs of the writer's and reader's warps
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
	m.start = m.epoch
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
	thread := int32(w.thread(lane))
	var hole error
	for i := range n {
		c := &m.cells[at+uint64(i)]
		if c.written < m.start && hole == nil {
			hole = undefinedError{space: "shared", at: at + uint64(i)}
		}
		if c.written == m.epoch && c.writer != thread && !m.ordered(w, c.writer, c.writeWarp) {
			return fmt.Errorf("a race: byte %d of shared memory was written by %s since the last barrier", at+uint64(i), who(c.writer))
		}
		m.noteRead(c, w, thread)
	}
	return hole
}

func (m *sharedMemory) noteRead(c *cell, w *warp, thread int32) {
	inWarp := int32(-2 - w.index)
	switch {
	case c.read != m.epoch || c.reader == thread:
		c.reader = thread
	case c.reader == inWarp || c.reader >= 0 && int(c.reader)/lanes == w.index:
		c.reader = inWarp
	default:
		c.reader = several
	}
	c.read, c.readWarp = m.epoch, w.epoch
}

// ordered reports that another thread of the same warp did something before
// the warp's last bar.warp.sync.
func (m *sharedMemory) ordered(w *warp, thread int32, epoch uint32) bool {
	sameWarp := thread >= 0 && int(thread)/lanes == w.index || thread == int32(-2-w.index)
	return sameWarp && epoch < w.epoch
}

// store notes a write; equal values may be written by several threads.
func (m *sharedMemory) store(w *warp, lane int, at uint64, from []byte) error {
	if err := m.check(at, len(from)); err != nil {
		return err
	}
	thread := int32(w.thread(lane))
	for i, v := range from {
		c := &m.cells[at+uint64(i)]
		if c.written == m.epoch && c.writer != thread && m.data[at+uint64(i)] != v && !m.ordered(w, c.writer, c.writeWarp) {
			return fmt.Errorf("a race: byte %d of shared memory was written by %s since the last barrier", at+uint64(i), who(c.writer))
		}
		if c.read == m.epoch && c.reader != thread && !m.ordered(w, c.reader, c.readWarp) {
			return fmt.Errorf("a race: byte %d of shared memory was read by %s since the last barrier", at+uint64(i), who(c.reader))
		}
		c.written, c.writer, c.writeWarp = m.epoch, thread, w.epoch
		m.data[at+uint64(i)] = v
	}
	return nil
}

// atomic notes an atomic access, which conflicts with plain ones only.
func (m *sharedMemory) atomic(w *warp, lane int, at uint64, n int) error {
	if err := m.check(at, n); err != nil {
		return err
	}
	thread := int32(w.thread(lane))
	for i := range n {
		c := &m.cells[at+uint64(i)]
		if c.written < m.start {
			return fmt.Errorf("byte %d of shared memory is not defined", at+uint64(i))
		}
		if c.written == m.epoch && c.writer != thread && c.writer != atomically && !m.ordered(w, c.writer, c.writeWarp) {
			return fmt.Errorf("a race: byte %d of shared memory was written by %s since the last barrier", at+uint64(i), who(c.writer))
		}
		c.written, c.writer = m.epoch, atomically
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
