package emu

// Methods of the copy class that this machine carries out, and the bits of LAUNCH_DMA: copies
// of bytes that lie one after the other, each after the one before, and semaphores.
const (
	copyNop       = 0x100
	copySemaphore = 0x240 // address high and low, payload low and high
	copyLaunch    = 0x300
	copyOffsets   = 0x400 // of the source, high and low, then of the target
	copyLength    = 0x418

	transferMask    = 3
	transferNone    = 0
	transferInOrder = 2
	copyFlush       = 1 << 2
	semaphoreShift  = 3
	semaphoreMask   = 3
	semaphoreNone   = 0
	semaphoreOne    = 1 // one word
	semaphoreFour   = 2 // a payload of two words, and the time
	pitchSource     = 1 << 7
	pitchTarget     = 1 << 8
	payloadTwo      = 1 << 27
	launchKnown     = transferMask | copyFlush | semaphoreMask<<semaphoreShift | pitchSource | pitchTarget | payloadTwo
)

// copyState is what the methods of a copy channel have set, and what they have started.
type copyState struct {
	object    bool      // SET_OBJECT came
	offsets   [4]uint32 // source high and low, target high and low
	length    uint32
	semaphore [4]uint32 // address high and low, payload low and high
	queue     []transfer
	unflushed bool // a copy has ended of which others need not see anything
}

// transfer is what LAUNCH_DMA has started: a copy, a semaphore after it, or both.
type transfer struct {
	from, to, bytes uint64
	flush           bool
	semaphore       int
	at, payload     uint64
	endless         bool
}

func (m *Machine) copyMethod(c *channel, method, v uint32) error {
	s := &c.state.copy
	switch {
	case !s.object:
		return refuseMethod(method, "before SET_OBJECT")
	case method == copyNop:
	case method >= copySemaphore && method < copySemaphore+16:
		s.semaphore[(method-copySemaphore)/4] = v
	case method >= copyOffsets && method < copyOffsets+16:
		i := (method - copyOffsets) / 4
		if i%2 == 0 && v > upper49 {
			return refuseMethod(method, "%#x, want at most %#x", v, upper49)
		}
		s.offsets[i] = v
	case method == copyLength:
		s.length = v
	case method == copyLaunch:
		return m.startCopy(c, v)
	default:
		return refuseMethod(method, "nothing is known of it (%08x)", v)
	}
	return nil
}

// startCopy is LAUNCH_DMA.
func (m *Machine) startCopy(c *channel, v uint32) error {
	s := &c.state.copy
	t := transfer{flush: v&copyFlush != 0, semaphore: int(v >> semaphoreShift & semaphoreMask)}
	kind := v & transferMask
	switch {
	case v&^uint32(launchKnown) != 0 || kind != transferNone && kind != transferInOrder || t.semaphore > semaphoreFour:
		return refuseMethod(copyLaunch, "%08x is not emulated", v)
	case kind == transferNone && t.semaphore == semaphoreNone:
		return nil
	case kind != transferNone && (v&pitchSource == 0 || v&pitchTarget == 0 || s.length == 0):
		return refuseMethod(copyLaunch, "%08x: %d bytes of memory that is no row of bytes", v, s.length)
	}
	if kind != transferNone {
		t.from, t.to, t.bytes = uint64(s.offsets[0])<<32|uint64(s.offsets[1]), uint64(s.offsets[2])<<32|uint64(s.offsets[3]), uint64(s.length)
	}
	t.at, t.payload = uint64(s.semaphore[0])<<32|uint64(s.semaphore[1]), uint64(s.semaphore[2])
	if v&payloadTwo != 0 {
		t.payload |= uint64(s.semaphore[3]) << 32
	}
	if t.bytes > 0 {
		m.say("copy from=%x to=%x bytes=%x", t.from, t.to, t.bytes)
		if err := m.struck(OnCopy, 0); err != nil {
			return err
		}
		t.endless = m.injured(OnEnd) != nil
	}
	s.queue = append(s.queue, t)
	return nil
}

// finishCopies carries out what was started.
func (m *Machine) finishCopies(c *channel) error {
	s := &c.state.copy
	for len(s.queue) > 0 {
		t := s.queue[0]
		if t.endless {
			return errBlocked
		}
		s.queue = s.queue[1:]
		if err := m.transfer(c, t); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) transfer(c *channel, t transfer) error {
	s := &c.state.copy
	if t.bytes > 0 {
		from, to := c.space.find(t.from, int(t.bytes)), c.space.find(t.to, int(t.bytes))
		if from == nil || to == nil {
			return refuseMemory(t.to, "a copy of %d bytes from %#x to %#x, where nothing is mapped", t.bytes, t.from, t.to)
		}
		at := t.from - from.address
		to.write(t.to, from.buffer.data[at:at+t.bytes])
		s.unflushed = true
	}
	s.unflushed = s.unflushed && !t.flush
	if t.semaphore == semaphoreNone {
		return nil
	}
	m.checkFlushed(c)
	size := map[int]int{semaphoreOne: 4, semaphoreFour: 16}[t.semaphore]
	g := c.space.find(t.at, size)
	if g == nil || t.at%uint64(size) != 0 {
		return refuseMemory(t.at, "a semaphore of %d bytes", size)
	}
	cell := make([]byte, size)
	put32(cell, 0, uint32(t.payload))
	if size > 4 {
		put64(cell, 0, t.payload)
		put64(cell, 8, m.now())
	}
	g.write(t.at, cell)
	return nil
}

// checkFlushed notes a signal of a copy that nobody else need see.
func (m *Machine) checkFlushed(c *channel) {
	if c.state.copy.unflushed {
		m.find("order", "flush", "a copy without FLUSH_ENABLE is signalled")
		c.state.copy.unflushed = false
	}
}

// write stores bytes as a unit of the GPU does: all see them.
func (g *gpuMapping) write(address uint64, b []byte) {
	at := address - g.address
	copy(g.buffer.data[at:], b)
	if g.buffer.seen != nil {
		copy(g.buffer.seen[at:], b)
	}
}
