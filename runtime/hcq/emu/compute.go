package emu

import "context"

// Methods of the compute class that this machine carries out. All others are refused: a
// runtime that sends one relies on something that nobody has looked at.
const (
	computeNop            = 0x100
	computeWait           = 0x110
	computeInvalidate     = 0x21c
	computeInvalidateHead = 0x244
	computeInvalidateSked = 0x298
	computeShared         = 0x2a0
	computePCAS           = 0x2b4
	computeSignal         = 0x2c0
	computeLocalThrottle  = 0x2e4
	computeLocal          = 0x790
	computeLocalWindow    = 0x7b0
	computeSampler        = 0x1424
	computeInvalidateNow  = 0x1698
	computeReport         = 0x1b00 // three words, then what to do
	computeReportDo       = 0x1b0c

	invalidateKnown    = 1 | 2 | 4 | 1<<4 | 1<<12
	invalidateCode     = 1
	invalidateConstant = 1 << 12
)

// addressUpper bounds the upper half of an address: 40 bits in all; of windows and local
// memory 49.
const (
	upper40 = 0xff
	upper49 = 0x1ffff
)

func (m *Machine) computeMethod(ctx context.Context, c *channel, method, v uint32) error {
	e := &c.state
	switch method {
	case computeNop:
		return nil
	case computeWait:
		return m.finish(ctx, c)
	case computeInvalidate:
		if err := m.finish(ctx, c); err != nil {
			return err
		}
		return e.invalidate(method, v)
	case computeInvalidateNow:
		return e.invalidate(method, v)
	case computeInvalidateSked:
		e.qmds = nil
		return nil
	case computeInvalidateHead, computeSampler:
		return nil
	case computePCAS:
		e.qmdAddress, e.qmdSent = uint64(v)<<8, true
		return nil
	case computeSignal:
		return m.signal(ctx, c, v)
	case computeReport, computeReport + 4, computeReport + 8:
		e.report[(method-computeReport)/4] = v
		return nil
	case computeReportDo:
		return m.report(c, v)
	}
	return e.setMemory(method, v)
}

// setMemory sets windows and the memory of threads.
func (e *engine) setMemory(method, v uint32) error {
	var to *uint64
	most := uint32(upper49)
	upper := true
	switch method {
	case computeShared, computeShared + 4:
		to, upper = &e.sharedWindow, method == computeShared
		e.sharedWindowSet |= 1 + int(method-computeShared)/4
	case computeLocalWindow, computeLocalWindow + 4:
		to, upper = &e.localWindow, method == computeLocalWindow
		e.localWindowSet |= 1 + int(method-computeLocalWindow)/4
	case computeLocal, computeLocal + 4:
		to, upper = &e.localBase, method == computeLocal
	case computeLocalThrottle, computeLocalThrottle + 4:
		to, upper, most = &e.localSize, method == computeLocalThrottle, upper40
	case computeLocalThrottle + 8:
		if v > 0x1ff {
			return refuseMethod(method, "%#x, which has 9 bits", v)
		}
		return nil
	default:
		return refuseMethod(method, "nothing is known of it (%08x)", v)
	}
	if !upper {
		*to = *to&^0xffffffff | uint64(v)
		return nil
	}
	if v > most {
		return refuseMethod(method, "%#x, want at most %#x", v, most)
	}
	*to = *to&0xffffffff | uint64(v)<<32
	return nil
}

func (e *engine) invalidate(method, v uint32) error {
	if v&^uint32(invalidateKnown) != 0 {
		return refuseMethod(method, "%08x has bits that are reserved", v)
	}
	if v&invalidateCode != 0 {
		e.codes = nil
	}
	if v&invalidateConstant != 0 {
		e.banks = nil
	}
	return nil
}

// Actions of SEND_SIGNALING_PCAS2_B.
const (
	actionNop          = 0
	actionInvalidate   = 1
	actionSchedule     = 2
	actionCopy         = 3
	actionPrefetch     = 8
	actionPrefetchRun  = 9
	actionPrefetchCopy = 0xa
)

// signal is SEND_SIGNALING_PCAS2_B: what to do with the descriptor that was sent.
func (m *Machine) signal(ctx context.Context, c *channel, v uint32) error {
	e := &c.state
	switch {
	case v>>4 != 0:
		return refuseMethod(computeSignal, "%08x has bits of other actions", v)
	case !e.qmdSent:
		return refuseMethod(computeSignal, "no descriptor was sent before")
	}
	e.qmdSent = false
	switch v {
	case actionNop:
		return nil
	case actionInvalidate:
		delete(e.qmds, e.qmdAddress)
		return nil
	case actionPrefetch:
		_, err := m.descriptor(c, e.qmdAddress, false)
		return err
	case actionSchedule, actionPrefetchRun:
		return m.launch(ctx, c, e.qmdAddress, false)
	case actionCopy, actionPrefetchCopy:
		return m.launch(ctx, c, e.qmdAddress, true)
	}
	return refuseMethod(computeSignal, "action %d is not emulated", v)
}

// report is SET_REPORT_SEMAPHORE_D. It does not wait for what was launched.
func (m *Machine) report(c *channel, v uint32) error {
	const oneWord, flushOff = 1 << 28, 1 << 2
	r := &c.state.report
	address, size := uint64(r[0])<<32|uint64(r[1]), 16
	if v&oneWord != 0 {
		size = 4
	}
	g := c.space.find(address, size)
	switch {
	case v&^uint32(oneWord|flushOff) != 0 || r[0] > upper40:
		return refuseMethod(computeReportDo, "%08x is not emulated", v)
	case g == nil || address%uint64(size) != 0:
		return refuseMemory(address, "a report of %d bytes", size)
	}
	at := address - g.address
	cell := g.buffer.data[at : at+uint64(size)]
	if size > 4 {
		put64(cell, 8, m.now())
		put32(cell, 4, 0)
	}
	put32(cell, 0, r[2])
	if g.buffer.seen != nil {
		copy(g.buffer.seen[at:], cell)
	}
	return nil
}
