package emu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tgc/internal/ptxemu"
)

// engine is what the methods of a channel have set.
type engine struct {
	words []uint32 // of the pushbuffer that is being read
	at    int      // of the next word

	semaphore [4]uint32 // address low and high, payload low and high
	report    [3]uint32 // address high and low, payload

	sharedWindow, localWindow       uint64
	sharedWindowSet, localWindowSet int // bits: upper, lower
	localBase, localSize            uint64
	qmdAddress                      uint64
	qmdSent                         bool

	qmds, banks, codes map[uint64][]byte // what the caches hold, by address
	grids              []*launch         // that may still run

	copy copyState
}

// Bits of the front end's interrupt that a mistake in a ring or a pushbuffer sets, in
// decimal as they are numbered.
const (
	bitRing      = "13"
	bitPut       = "14"
	bitEntry     = "15"
	bitBuffer    = "17"
	bitWord      = "18"
	bitMethod    = "21"
	bitDevice    = "23"
	bitSemaphore = "25"
	bitSegment   = "30"
)

// Numbers that the kernel driver writes into the error notifier.
const (
	notifyEngine = 13
	notifyMMU    = 31
	notifyFront  = 32
)

// refusal is what ends a channel.
type refusal struct {
	Finding
	notify uint32
	state  *smState
}

func (r *refusal) Error() string { return r.String() }

func refuseFront(bit, format string, args ...any) error {
	return &refusal{Finding: Finding{"pbdma", bit, fmt.Sprintf(format, args...)}, notify: notifyFront}
}

func refuseMethod(address uint32, format string, args ...any) error {
	return &refusal{Finding: Finding{"method", fmt.Sprintf("%x", address), fmt.Sprintf(format, args...)}, notify: notifyFront}
}

func refuseMemory(address uint64, format string, args ...any) error {
	return &refusal{Finding: Finding{"mmu", fmt.Sprintf("%x", address), fmt.Sprintf(format, args...)}, notify: notifyMMU}
}

func refuseStale(what string, address uint64) error {
	return &refusal{Finding: Finding{"stale", what, fmt.Sprintf("what lies at %#x has changed, and the cache still has the old bytes", address)}, notify: notifyEngine}
}

// errBlocked says that a channel waits for a semaphore.
var errBlocked = errors.New("waits")

const (
	offsetGet = 0x88
	offsetPut = 0x8c
)

// poll lets a channel read its ring, then the others that may wait for what it has done.
func (m *Machine) poll(ctx context.Context, first *channel) {
	if first.fault != nil && !first.closed {
		m.find("order", "dead", "a doorbell of a channel that has ended")
		return
	}
	for progress := true; progress; {
		progress = false
		for _, c := range m.sortedChannels() {
			before := [2]int{int(c.get), c.state.at}
			m.advance(ctx, c)
			progress = progress || before != [2]int{int(c.get), c.state.at}
		}
	}
}

// sortedChannels are all channels in a random order: nothing says which goes first.
func (m *Machine) sortedChannels() []*channel {
	var list []*channel
	for _, token := range slices.Sorted(maps.Keys(m.channels)) {
		list = append(list, m.channels[token])
	}
	m.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// advance lets one channel go on that a doorbell was rung for.
func (m *Machine) advance(ctx context.Context, c *channel) {
	if c.fault != nil || !c.bound || c.closed || !c.rung {
		return
	}
	err := m.readRing(ctx, c)
	if err == nil {
		err = m.finish(ctx, c)
	}
	if err != nil && !errors.Is(err, errBlocked) {
		m.fail(c, err)
	}
}

// fail ends a channel, and with it its group, as the kernel driver does after an error.
func (m *Machine) fail(c *channel, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{Finding: Finding{"sm", "emulator", err.Error()}, notify: notifyEngine}
	}
	m.findings = append(m.findings, r.Finding)
	if r.state != nil {
		c.group.states = make([]smState, m.sms())
		c.group.states[0] = *r.state
	}
	for _, other := range c.group.channels {
		if !other.closed && other.fault == nil {
			m.end(other, r)
		}
	}
}

// end ends a channel with an error of its group.
func (m *Machine) end(c *channel, r *refusal) {
	c.fault = &r.Finding
	c.state.grids, c.state.copy.queue = nil, nil
	if c.notifier == nil {
		return
	}
	b := c.notifier.data[c.notifierAt:]
	put64(b, 0, m.now())
	put32(b, 8, r.notify)
	b[14], b[15] = 0xff, 0xff
}

// readRing reads entries up to GPPut.
func (m *Machine) readRing(ctx context.Context, c *channel) error {
	if c.class == 0 {
		return refuseFront(bitDevice, "work before ALLOC_OBJ_CTX")
	}
	for {
		if err := m.readWords(ctx, c); err != nil {
			return err
		}
		put := get32(c.userd.atBarrier(), offsetPut)
		if put >= c.entries {
			return refuseFront(bitPut, "GPPut is %d of %d entries", put, c.entries)
		}
		if c.get == put {
			c.rung = false
			return nil
		}
		entry := get64(c.ring.data, int(8*c.get))
		if c.ring.seen != nil && entry != get64(c.ring.seen, int(8*c.get)) {
			return refuseStale("ring", uint64(8*c.get))
		}
		if err := m.openEntry(c, entry); err != nil {
			return err
		}
		c.get = (c.get + 1) % c.entries
		store32(c.userd.data[offsetGet:], c.get)
	}
}

// openEntry fetches the words of an entry.
func (m *Machine) openEntry(c *channel, entry uint64) error {
	low, high := uint32(entry), uint32(entry>>32)
	length := int(high >> 10 & (1<<21 - 1))
	address := uint64(high&0xff)<<32 | uint64(low&^3)
	switch {
	case low&3 != 0 || high&(1<<8) != 0:
		return refuseFront(bitEntry, "entry %016x has bits that are reserved", entry)
	case length == 0 && high&0xff != 0:
		return refuseFront(bitEntry, "entry %016x: control opcode %d", entry, high&0xff)
	case length == 0:
		return nil
	}
	b, err := m.fetch(c, "pushbuffer", address, 4*length)
	if err != nil {
		return err
	}
	c.state.words, c.state.at = make([]uint32, length), 0
	for i := range c.state.words {
		c.state.words[i] = get32(b, 4*i)
	}
	return nil
}

// fetch is memory as the GPU's units read it: what the CPU has stored since its last full
// barrier may not be there yet.
func (m *Machine) fetch(c *channel, what string, address uint64, n int) ([]byte, error) {
	g := c.space.find(address, n)
	if g == nil {
		return nil, refuseMemory(address, "%s: %d bytes, where nothing is mapped", what, n)
	}
	if g.buffer.combined {
		m.find("order", "combined", "%s in write-combined memory: a board's scheduler did not take a pushbuffer there", what)
	}
	at := address - g.address
	b := g.buffer.data[at : at+uint64(n)]
	if g.buffer.seen != nil && !bytes.Equal(b, g.buffer.seen[at:at+uint64(n)]) {
		return nil, refuseStale(what, address)
	}
	return b, nil
}

// find is the mapping that holds n bytes at an address; nil for none.
func (s *addressSpace) find(address uint64, n int) *gpuMapping {
	for _, g := range s.maps {
		if address >= g.address && address+uint64(n) <= g.address+g.size {
			return g
		}
	}
	return nil
}

// mappedThrough reports whether n bytes are mapped from an address on, by one mapping or
// by several side by side.
func (s *addressSpace) mappedThrough(address, n uint64) bool {
	for end := address + n; address < end; {
		g := s.find(address, 1)
		if g == nil {
			return false
		}
		address = g.address + g.size
	}
	return true
}

// atBarrier is a buffer as it was at the last full barrier: the host may be writing to it
// now.
func (b *buffer) atBarrier() []byte {
	if b.seen != nil {
		return b.seen
	}
	return b.data
}

// Opcodes of a header.
const (
	headerIncrease    = 1
	headerNonIncrease = 3
	headerImmediate   = 4
	headerOneIncrease = 5
	headerEnd         = 7
)

// readWords reads the words of an entry that are left. A channel that waits stands at
// the header.
func (m *Machine) readWords(ctx context.Context, c *channel) error {
	e := &c.state
	for e.at < len(e.words) {
		h := e.words[e.at]
		op, count, sub, method := h>>29, int(h>>16&0x1fff), h>>13&7, h&0xfff<<2
		switch {
		case h == 0:
			e.at++
			continue
		case op == headerEnd:
			e.at = len(e.words)
			continue
		case h&(1<<12) != 0 || op != headerIncrease && op != headerNonIncrease && op != headerImmediate && op != headerOneIncrease:
			return refuseFront(bitWord, "header %08x", h)
		}
		next := e.at + 1
		data := []uint32{uint32(count)}
		if op != headerImmediate {
			if next+count > len(e.words) {
				return refuseFront(bitSegment, "header %08x: %d words of data, %d are left", h, count, len(e.words)-next)
			}
			data = e.words[next : next+count]
			next += count
		}
		for i, v := range data {
			step := uint32(i)
			switch op {
			case headerNonIncrease:
				step = 0
			case headerOneIncrease:
				step = min(step, 1)
			}
			if err := m.method(ctx, c, sub, method+4*step, v); err != nil {
				return err
			}
		}
		e.at = next
	}
	return nil
}

// method carries out one word.
func (m *Machine) method(ctx context.Context, c *channel, sub, method, v uint32) error {
	switch {
	case method == 0:
		return m.setObject(c, sub, v)
	case method < 0x100:
		return m.hostMethod(ctx, c, method, v)
	case sub == 1 && c.class == computeClass:
		return m.computeMethod(ctx, c, method, v)
	case sub == 4 && c.class == copyClass:
		return m.copyMethod(c, method, v)
	}
	return refuseMethod(method, "on subchannel %d of a channel of class %x", sub, c.class)
}

func (m *Machine) setObject(c *channel, sub, v uint32) error {
	if want := map[uint32]uint32{computeClass: 1, copyClass: 4}[c.class]; v != c.class || sub != want {
		return refuseMethod(0, "SET_OBJECT of class %x on subchannel %d of a channel of class %x", v, sub, c.class)
	}
	c.state.copy.object = c.class == copyClass
	return nil
}

// Methods of the channel itself, and fields of a semaphore's last word.
const (
	hostNop       = 0x08
	hostInterrupt = 0x20
	hostSemaphore = 0x5c // four words, then what to do
	hostExecute   = 0x6c
	hostWait      = 0x78
	hostYield     = 0x80

	executeKnown   = 7 | 1<<12 | 1<<20 | 1<<24 | 1<<25
	executeRelease = 1
	executeAcquire = 0
	executeGEQ     = 3 // circular
	executeWFI     = 1 << 20
	execute64      = 1 << 24
	executeStamp   = 1 << 25
)

func (m *Machine) hostMethod(ctx context.Context, c *channel, method, v uint32) error {
	switch {
	case method == hostNop || method == hostInterrupt || method == hostYield:
		return nil
	case method == hostWait:
		return m.finish(ctx, c)
	case method >= hostSemaphore && method < hostExecute:
		c.state.semaphore[(method-hostSemaphore)/4] = v
		return nil
	case method == hostExecute:
		return m.execute(ctx, c, v)
	}
	return refuseMethod(method, "the channel has none, or none that a user may send (%08x)", v)
}

// execute is SEM_EXECUTE.
func (m *Machine) execute(ctx context.Context, c *channel, v uint32) error {
	s := &c.state.semaphore
	address := uint64(s[1])<<32 | uint64(s[0])
	align, size := uint64(4), 4
	if v&execute64 != 0 {
		align, size = 8, 8
	}
	if v&executeStamp != 0 {
		align, size = 16, 16
	}
	if address%align != 0 || address>>40 != 0 || v&^uint32(executeKnown) != 0 {
		return refuseFront(bitSemaphore, "semaphore at %#x, to do %08x", address, v)
	}
	if v&7 == executeRelease && v&executeWFI != 0 {
		if err := m.finish(ctx, c); err != nil {
			return err
		}
		m.checkFlushed(c)
	}
	g := c.space.find(address, size)
	if g == nil {
		return refuseMemory(address, "semaphore where nothing is mapped")
	}
	cell := g.buffer.data[address-g.address:]
	payload := uint64(s[3])<<32 | uint64(s[2])
	switch v & 7 {
	case executeRelease:
		m.release(cell, payload, v)
		if g.buffer.seen != nil {
			copy(g.buffer.seen[address-g.address:], cell[:size])
		}
		return nil
	case executeGEQ, executeAcquire:
		if acquired(cell, payload, v) {
			return nil
		}
		return errBlocked
	}
	return refuseFront(bitSemaphore, "semaphore operation %d", v&7)
}

func (m *Machine) release(cell []byte, payload uint64, v uint32) {
	if v&executeStamp != 0 {
		put64(cell, 8, m.now())
	}
	if v&execute64 != 0 || v&executeStamp != 0 {
		if v&execute64 == 0 {
			payload = uint64(uint32(payload))
		}
		store64(cell, payload)
		return
	}
	put32(cell, 0, uint32(payload))
}

// acquired compares as the front end does: circularly.
func acquired(cell []byte, payload uint64, v uint32) bool {
	have := get64(cell, 0)
	if v&execute64 == 0 {
		if v&7 == executeAcquire {
			return uint32(have) == uint32(payload)
		}
		return int32(uint32(have)-uint32(payload)) >= 0
	}
	if v&7 == executeAcquire {
		return have == payload
	}
	return int64(have-payload) >= 0
}

// finish runs what was launched to its end, blocks of several grids in turn.
func (m *Machine) finish(ctx context.Context, c *channel) error {
	if err := m.finishCopies(c); err != nil {
		return err
	}
	for len(c.state.grids) > 0 {
		i := m.random.IntN(len(c.state.grids))
		l := c.state.grids[i]
		if l.endless {
			return errBlocked
		}
		ended := m.replay != nil
		if !ended {
			var err error
			ended, err = l.grid.Some(ctx, 1+m.random.IntN(mostInTurn))
			if err != nil {
				return l.faulted(err)
			}
		}
		if ended {
			c.state.grids = append(c.state.grids[:i], c.state.grids[i+1:]...)
			if err := m.ended(ctx, c, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostInTurn bounds the blocks that one grid runs before another may.
const mostInTurn = 64

// faulted is the error of a kernel as the hardware reports it.
func (l *launch) faulted(err error) error {
	state := &smState{globalESR: 1, pc: l.program}
	r := &refusal{Finding: Finding{"sm", "emulator", err.Error()}, notify: notifyEngine, state: state}
	wrong := addressError(err)
	if wrong == nil {
		return r
	}
	switch wrong.Kind {
	case ptxemu.Misaligned:
		state.warpESR = esrMisaligned
	case ptxemu.InWindow:
		state.warpESR = esrSpace
	default:
		state.warpESR = esrMMU
		r.Kind, r.Code, r.notify = "mmu", fmt.Sprintf("%x", wrong.Address), notifyMMU
		return r
	}
	r.Code = fmt.Sprintf("%x", state.warpESR)
	return r
}

// Errors of a warp.
const (
	esrStack      = 0x1
	esrEncoding   = 0x9
	esrParameter  = 0xb
	esrRegister   = 0xd
	esrRange      = 0xe
	esrMisaligned = 0xf
	esrSpace      = 0x10
	esrConstant   = 0x12
	esrMMU        = 0x17
)
