package emu

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"tgc/internal/ptxemu"
)

// launch is a descriptor that the scheduler has taken.
type launch struct {
	qmd     qmd
	program uint64
	grid    *ptxemu.Grid // nil where kernels are not run
	endless bool         // it never ends
}

// qmd is a launch descriptor, QMD V03_00: 64 words.
type qmd []byte

const qmdBytes = 256

// bits reads bits hi..lo.
func (q qmd) bits(hi, lo int) uint64 {
	var v uint64
	for bit := hi; bit >= lo; bit-- {
		v = v<<1 | uint64(q[bit/8]>>(bit%8)&1)
	}
	return v
}

func (q qmd) flag(bit int) bool { return q[bit/8]>>(bit%8)&1 != 0 }

// address puts an address together of its halves.
func (q qmd) address(lowHi, lowLo, highHi, highLo int) uint64 {
	return q.bits(highHi, highLo)<<32 | q.bits(lowHi, lowLo)
}

func (q qmd) program() uint64 { return q.address(1567, 1536, 1584, 1568) }
func (q qmd) blocks() [3]uint64 {
	return [3]uint64{q.bits(415, 384), q.bits(431, 416), q.bits(463, 448)}
}
func (q qmd) threads() [3]uint64 {
	return [3]uint64{q.bits(607, 592), q.bits(623, 608), q.bits(639, 624)}
}
func (q qmd) registers() int { return int(q.bits(656, 648)) }
func (q qmd) barriers() int  { return int(q.bits(767, 763)) }
func (q qmd) shared() int    { return int(q.bits(561, 544)) }
func (q qmd) local() int     { return int(q.bits(1623, 1600)) }

// bank is a constant bank of a descriptor.
func (q qmd) bank(i int) (address uint64, size int, valid bool) {
	at := 64 * i
	return q.address(1055+at, 1024+at, 1072+at, 1056+at), 16 * int(q.bits(1087+at, 1075+at)), q.flag(640 + i)
}

// Bits of the scheduler's error.
const (
	skedConstantSize = 7
	skedLocalSize    = 9
	skedTemporary    = 12
	skedRegisters    = 13
	skedThreads      = 18
	skedProgram      = 20
	skedShared       = 21
	skedNoThreads    = 23
	skedWindows      = 24
	skedConfig       = 25
	skedAllRegisters = 26
)

func refuseSked(bit int, format string, args ...any) error {
	return &refusal{Finding: Finding{"sked", fmt.Sprintf("%08x", 1<<bit), fmt.Sprintf(format, args...)}, notify: notifyEngine}
}

// descriptor fetches a descriptor, through a cache that nobody keeps up to date.
func (m *Machine) descriptor(c *channel, address uint64, fresh bool) (qmd, error) {
	b, err := m.fetch(c, "QMD", address, qmdBytes)
	if err != nil {
		return nil, err
	}
	if err := cached(&c.state.qmds, "qmd", address, b, fresh); err != nil {
		return nil, err
	}
	return qmd(slices.Clone(b)), nil
}

// cached reports bytes that differ from those that a cache holds, and keeps new ones.
func cached(cache *map[uint64][]byte, what string, address uint64, b []byte, fresh bool) error {
	if *cache == nil {
		*cache = make(map[uint64][]byte)
	}
	if old, there := (*cache)[address]; there && !fresh {
		n := min(len(old), len(b))
		if !bytes.Equal(old[:n], b[:n]) {
			return refuseStale(what, address)
		}
	}
	(*cache)[address] = slices.Clone(b)
	return nil
}

// launch takes a descriptor; what it launches may run from now on.
func (m *Machine) launch(ctx context.Context, c *channel, address uint64, fresh bool) error {
	q, err := m.descriptor(c, address, fresh)
	if err != nil {
		return err
	}
	if err := c.state.checkQMD(q); err != nil {
		return err
	}
	m.checkWindows(c)
	l := &launch{qmd: q, program: q.program()}
	needs, k, err := m.kernelOf(c, q)
	if err != nil {
		return err
	}
	if err := m.checkNeeds(c, q, needs); err != nil {
		return err
	}
	if m.replay == nil {
		if l.grid, err = m.start(c, q, k); err != nil {
			return l.faulted(err)
		}
	}
	b, t := q.blocks(), q.threads()
	m.say("launch qmd=%x grid=%d,%d,%d block=%d,%d,%d program=%x name=%s", address, b[0], b[1], b[2], t[0], t[1], t[2], l.program, needs.Name)
	if err := m.struck(OnLaunch, l.program); err != nil {
		return err
	}
	l.endless = m.injured(OnEnd) != nil
	c.state.grids = append(c.state.grids, l)
	return nil
}

// checkWindows notes what is mapped in a window, where no access reaches it.
func (m *Machine) checkWindows(c *channel) {
	for _, g := range sortedMaps(c.space) {
		for _, window := range []uint64{c.state.sharedWindow, c.state.localWindow} {
			if !g.inWindow && g.address < window+windowBytes && window < g.address+g.size {
				g.inWindow = true
				m.find("window", fmt.Sprintf("%x", g.address), "%d bytes are mapped in the window at %#x", g.size, window)
			}
		}
	}
}

// Limits of the multiprocessors of sm_87.
const (
	mostThreads   = 1024
	mostThreadsZ  = 64
	mostRegisters = 255
	registerFile  = 65536
	warpThreads   = 32
	mostBankBytes = 64 << 10
	programAlign  = 128
	bankAlign     = 64
	windowBytes   = 16 << 20
	ownShared     = 0x400 // bytes that the hardware keeps of every block's shared memory
	configUnit    = 4 << 10
	sharedUnit    = 128 // nobody was seen to send another multiple
)

// configs are the shared memories that a multiprocessor can be given: KiB/4 + 1.
var configs = []int{3, 5, 9, 17, 26, 34, 42}

// unused are bits of a descriptor that have to be zero here: queues, resumption, counters,
// disabled processors, traps, what only the hardware writes, and what has no name. What
// the scheduler would do with them nobody has looked at.
var unused = []struct{ high, low int }{
	{127, 0}, {141, 135}, {159, 142}, {185, 160}, {255, 192}, {367, 288}, {377, 370}, {381, 379}, {383, 383}, {447, 432}, {479, 464},
	{543, 517}, {568, 568}, {575, 575}, {591, 584}, {735, 663}, {762, 760}, {818, 808}, {828, 824}, {946, 936}, {956, 952},
	{1599, 1585}, {1631, 1624}, {1655, 1652}, {2047, 1664},
}

// checkUnused reports bits that are set and that this machine knows nothing of.
func (q qmd) checkUnused() error {
	for _, r := range unused {
		for bit := r.low; bit <= r.high; bit++ {
			if q.flag(bit) && bit < debugBits {
				return &refusal{Finding: Finding{"sked", "field", fmt.Sprintf("bit %d of the descriptor is set: it is not emulated", bit)}, notify: notifyEngine}
			}
		}
	}
	return nil
}

// debugBits is where numbers for debuggers begin.
const debugBits = 1984

// checkQMD is what the scheduler checks.
func (e *engine) checkQMD(q qmd) error {
	threads := q.threads()
	count := threads[0] * threads[1] * threads[2]
	minimum, target, most := int(q.bits(567, 562)), int(q.bits(662, 657)), int(q.bits(574, 569))
	warps := (int(count) + warpThreads - 1) / warpThreads
	switch {
	case q.bits(583, 580) != 3 || q.bits(579, 576) != 0:
		return refuseSked(skedWindows, "QMD version %d.%d, want 3.0", q.bits(583, 580), q.bits(579, 576))
	case e.sharedWindowSet != 3 || e.localWindowSet != 3:
		return refuseSked(skedWindows, "a launch before both windows are set")
	case e.sharedWindow%windowBytes != 0 || e.localWindow%windowBytes != 0 || e.sharedWindow == e.localWindow:
		return refuseSked(skedWindows, "windows at %#x and %#x", e.sharedWindow, e.localWindow)
	case count == 0:
		return refuseSked(skedNoThreads, "blocks of %v threads", threads)
	case count > mostThreads || threads[2] > mostThreadsZ:
		return refuseSked(skedThreads, "blocks of %v threads", threads)
	case q.registers() > mostRegisters || q.registers() == 0:
		return refuseSked(skedRegisters, "%d registers a thread", q.registers())
	case warps*((q.registers()*warpThreads+255)/256*256) > registerFile:
		return refuseSked(skedAllRegisters, "%d threads of %d registers", count, q.registers())
	case q.program()%programAlign != 0:
		return refuseSked(skedProgram, "program at %#x", q.program())
	case q.shared() > (most-1)*configUnit || q.shared()%sharedUnit != 0:
		return refuseSked(skedShared, "%d bytes of shared memory, configuration %d at most", q.shared(), most)
	case !slices.Contains(configs, minimum) || !slices.Contains(configs, target) || !slices.Contains(configs, most) || minimum > target || target > most ||
		q.shared() > (minimum-1)*configUnit:
		return refuseSked(skedConfig, "%d bytes of shared memory with configurations %d, %d, %d", q.shared(), minimum, target, most)
	case q.local()%16 != 0:
		return refuseSked(skedLocalSize, "%d bytes of local memory", q.local())
	case q.local() > 0 && (e.localBase == 0 || uint64((q.local()*warpThreads+0x1ff)/0x200*0x200)*warpsPerSM*smsPerTPC > e.localSize):
		return refuseSked(skedTemporary, "%d bytes of local memory a thread, %d bytes a TPC", q.local(), e.localSize)
	}
	if err := q.checkUnused(); err != nil {
		return err
	}
	if err := q.checkDependent(); err != nil {
		return err
	}
	return e.checkBanks(q)
}

// checkDependent refuses the actions that count: what they do nobody has looked at.
func (q qmd) checkDependent() error {
	action := q.bits(515, 513)
	if q.flag(512) && action != dependentSchedule && action != dependentCopy {
		return &refusal{Finding: Finding{"sked", "field", fmt.Sprintf("action %d of a dependent is not emulated", action)}, notify: notifyEngine}
	}
	return nil
}

// Actions of a dependent.
const (
	dependentSchedule = 1
	dependentCopy     = 3 // past the cache of descriptors
)

func (e *engine) checkBanks(q qmd) error {
	for i := range 8 {
		address, size, valid := q.bank(i)
		switch {
		case !valid:
		case address%bankAlign != 0:
			return refuseMemory(address, "constant bank %d", i)
		case size > mostBankBytes:
			return refuseSked(skedConstantSize, "constant bank %d of %d bytes", i, size)
		}
	}
	return nil
}

// Needs is what the program at an address needs; sizes are in bytes.
type Needs struct {
	Name                     string
	Size                     int
	Registers, Barriers      int
	Shared, Stack            int
	Bank0, Bank2, Bank4      int
	ParamBase                int
	banks                    map[int][]byte // what a bank has to hold
	globals                  map[string]uint64
	paramOffsets, paramSizes []int
}

// stackTop is what code takes as the end of a thread's stack, at 0x28 of bank 0.
const (
	stackTop      = 0xfffdc0
	stackTopAt    = 0x28
	stackReserved = 0x240
	prefetchSlack = 4096
)

func refuseSM(l qmd, esr uint32, format string, args ...any) error {
	return &refusal{
		Finding: Finding{"sm", fmt.Sprintf("%x", esr), fmt.Sprintf(format, args...)}, notify: notifyEngine,
		state: &smState{globalESR: 1, warpESR: esr, pc: l.program()},
	}
}

// checkNeeds is what a multiprocessor meets when it runs the program.
func (m *Machine) checkNeeds(c *channel, q qmd, n *Needs) error {
	switch {
	case n.Registers > q.registers():
		return refuseSM(q, esrRegister, "kernel %s: %d registers, want %d", n.Name, q.registers(), n.Registers)
	case n.Barriers > q.barriers():
		return refuseSM(q, esrParameter, "kernel %s: %d barriers, want %d", n.Name, q.barriers(), n.Barriers)
	case n.Shared > 0 && n.Shared+ownShared > q.shared():
		return refuseSM(q, esrRange, "kernel %s: %d bytes of shared memory, want %d and %d of the hardware's", n.Name, q.shared(), n.Shared, ownShared)
	case n.Stack > 0 && n.Stack+stackReserved > q.local():
		return refuseSM(q, esrStack, "kernel %s: %d bytes of local memory, want %d and %d", n.Name, q.local(), n.Stack, stackReserved)
	}
	if n.Size > 0 && !c.space.mappedThrough(q.program(), uint64(n.Size+prefetchSlack)) {
		m.find("mmu", "prefetch", "kernel %s: fewer than %d bytes are mapped after its code", n.Name, prefetchSlack)
	}
	for bank, want := range map[int]int{0: n.Bank0, 2: n.Bank2, 4: n.Bank4} {
		if err := m.checkBank(c, q, n, bank, want); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) checkBank(c *channel, q qmd, n *Needs, bank, want int) error {
	address, size, valid := q.bank(bank)
	if want == 0 {
		return nil
	}
	if !valid || size < want {
		return refuseSM(q, esrConstant, "kernel %s: constant bank %d of %d bytes, want %d", n.Name, bank, size, want)
	}
	b, err := m.fetch(c, fmt.Sprintf("constant bank %d", bank), address, want)
	if err != nil {
		return err
	}
	fresh := q.flag(1074+64*bank) || q.flag(191)
	if err := cached(&c.state.banks, "bank", address, b, fresh); err != nil {
		return err
	}
	if bank == 0 && n.Stack > 0 && (len(b) < stackTopAt+8 || get64(b, stackTopAt) != stackTop) {
		return refuseSM(q, esrStack, "kernel %s: the top of the stack is not %#x", n.Name, stackTop)
	}
	if should, known := n.banks[bank]; known && !bytes.Equal(b[:len(should)], should) {
		return refuseSM(q, esrConstant, "kernel %s: constant bank %d holds something else than its machine code says", n.Name, bank)
	}
	return nil
}

// start begins to run a kernel on the channel's memory.
func (m *Machine) start(c *channel, q qmd, k *loaded) (*ptxemu.Grid, error) {
	address, _, _ := q.bank(0)
	bank, err := m.fetch(c, "parameters", address, k.needs.Bank0)
	if err != nil {
		return nil, err
	}
	c.space.memory.SetWindows([]ptxemu.Window{{Address: c.state.sharedWindow, Size: windowBytes}, {Address: c.state.localWindow, Size: windowBytes}})
	blocks, threads := q.blocks(), q.threads()
	l := ptxemu.Launch{
		Memory: c.space.memory, Seed: m.random.Uint64(), Shared: max(q.shared()-ownShared-k.ptx.Shared, 0),
		Globals: func(name string) (uint64, bool) { at, ok := k.needs.globals[name]; return at, ok },
	}
	for axis := range 3 {
		l.Grid[axis], l.Block[axis] = int(blocks[axis]), int(threads[axis])
	}
	for i, at := range k.needs.paramOffsets {
		from := k.needs.ParamBase + at
		l.Params = append(l.Params, slices.Clone(bank[from:from+k.needs.paramSizes[i]]))
	}
	return k.ptx.Start(l)
}

// ended carries out what a descriptor asks for after its grid.
func (m *Machine) ended(ctx context.Context, c *channel, l *launch) error {
	q := l.qmd
	for i, base := range []int{768, 896} {
		if !q.flag(base + 55) {
			continue
		}
		if err := m.releaseOf(c, q, base); err != nil {
			return fmt.Errorf("release %d: %w", i, err)
		}
	}
	if !q.flag(512) {
		return nil
	}
	return m.launch(ctx, c, q.bits(511, 480)<<8, q.bits(515, 513) == dependentCopy)
}

// releaseOf writes a semaphore as a descriptor has it.
func (m *Machine) releaseOf(c *channel, q qmd, base int) error {
	address := q.address(base+31, base, base+39, base+32)
	size := [4]int{16, 4, 8, 0}[q.bits(base+63, base+62)]
	g := c.space.find(address, max(size, 4))
	if g == nil || size == 0 || address%uint64(size) != 0 {
		return refuseMemory(address, "a release of %d bytes", size)
	}
	cell := g.buffer.data[address-g.address:]
	payload := q.address(base+95, base+64, base+127, base+96)
	switch size {
	case 4:
		put32(cell, 0, uint32(payload))
	case 8:
		store64(cell, payload)
	default:
		put64(cell, 8, m.now())
		store64(cell, payload)
	}
	if g.buffer.seen != nil {
		copy(g.buffer.seen[address-g.address:], cell[:size])
	}
	return nil
}

// store32 stores a word that somebody may be polling.
func store32(b []byte, v uint32) { atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[0])), v) }

// store64 stores a word that somebody may be polling.
func store64(b []byte, v uint64) { atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[0])), v) }
