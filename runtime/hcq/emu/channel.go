package emu

import "syscall"

// group is a time-slice group of channels.
type group struct {
	space       *addressSpace
	subcontexts []uint32
	channels    []*channel
	states      []smState
}

// smState is what a multiprocessor says of its last error.
type smState struct {
	globalESR, warpESR uint32
	pc                 uint64
}

// channel is a queue of the front end.
type channel struct {
	space       *addressSpace
	group       *group
	veid        uint32
	watchdogOff bool
	class       uint32 // of its object; 0 before ALLOC_OBJ_CTX
	token       uint32
	bound       bool
	entries     uint32
	ring, userd *buffer
	notifier    *buffer
	notifierAt  uint64
	fault       *Finding
	state       engine
	get         uint32 // entries that were read
	closed      bool
	awake       bool // its front end will look at the ring
	rung        bool // its front end looks at the ring
}

const (
	firstToken    = 0x1ff
	primaryRun    = -1
	asynchronous  = 1
	mostVEID      = 63
	bindFlags     = 0x0a // deterministic, user mode
	flagsKnown    = 0x1f
	flagUserMode  = 1 << 3
	flagDetermine = 1 << 1
	userdBytes    = 512
	mostRing      = 1 << 20 // bytes of a ring that is known to work
)

func openGroup(m *Machine, _ *file, a *argument) error {
	if get32(a.bytes, 4) != 0 || get64(a.bytes, 8) != 0 || get64(a.bytes, 16) != 0 {
		return syscall.EINVAL
	}
	m.addAt(&file{kind: fileGroup, group: &group{}}, a.bytes, 0)
	return nil
}

func createSubcontext(m *Machine, f *file, a *argument) error {
	s := m.files[int(get32(a.bytes, 4))]
	if get32(a.bytes, 0) > asynchronous || s == nil || s.kind != fileSpace {
		return syscall.EINVAL
	}
	if len(f.group.subcontexts) >= mostVEID {
		return syscall.ENOSPC
	}
	veid := uint32(0) // the synchronous one
	if get32(a.bytes, 0) == asynchronous {
		veid = m.choose(8, uint32(len(f.group.subcontexts)+1))
	}
	f.group.subcontexts = append(f.group.subcontexts, veid)
	f.group.space = s.space
	put32(a.bytes, 8, veid)
	return nil
}

func openChannel(m *Machine, _ *file, a *argument) error {
	if int32(get32(a.bytes, 0)) != primaryRun {
		return syscall.EINVAL
	}
	m.addAt(&file{kind: fileChannel, channel: &channel{}}, a.bytes, 0)
	return nil
}

// channelOf is the channel of a descriptor in an argument.
func (m *Machine) channelOf(fd uint32) *channel {
	if f := m.files[int(fd)]; f != nil && f.kind == fileChannel {
		return f.channel
	}
	return nil
}

func bindSpace(m *Machine, f *file, a *argument) error {
	c := m.channelOf(get32(a.bytes, 0))
	if c == nil || c.space != nil {
		return syscall.EINVAL
	}
	c.space = f.space
	return nil
}

func bindGroup(m *Machine, f *file, a *argument) error {
	c, veid := m.channelOf(get32(a.bytes, 0)), get32(a.bytes, 4)
	if c == nil || c.space == nil || c.group != nil || veid > mostVEID {
		return syscall.EINVAL
	}
	known := false
	for _, v := range f.group.subcontexts {
		known = known || v == veid
	}
	if !known {
		return syscall.EINVAL
	}
	c.group, c.veid = f.group, veid
	f.group.channels = append(f.group.channels, c)
	return nil
}

func setWatchdog(_ *Machine, f *file, a *argument) error {
	switch get32(a.bytes, 0) {
	case 1:
		f.channel.watchdogOff = true
	case 2:
		f.channel.watchdogOff = false
	default:
		return syscall.EINVAL
	}
	return nil
}

func setupBind(m *Machine, f *file, a *argument) error {
	c := f.channel
	entries, flags := get32(a.bytes, 0), get32(a.bytes, 8)
	userd, ring := m.files[int(get32(a.bytes, 12))], m.files[int(get32(a.bytes, 16))]
	if c.bound {
		return syscall.EEXIST
	}
	switch {
	case c.space == nil || c.group == nil, entries < 2 || entries&(entries-1) != 0, flags&^flagsKnown != 0:
		return syscall.EINVAL
	case flags&flagDetermine != 0 && !c.watchdogOff, flags&flagUserMode != 0 && flags&flagDetermine == 0, flags&bindFlags != bindFlags:
		return syscall.EINVAL
	case get32(a.bytes, 12) == 0 || get32(a.bytes, 16) == 0, userd == nil || userd.kind != fileBuffer, ring == nil || ring.kind != fileBuffer:
		return syscall.EINVAL
	case get64(a.bytes, 24) != 0 || get64(a.bytes, 32) != 0, len(ring.buffer.data) < int(max(pageBytes, 8*entries)), len(userd.buffer.data) < userdBytes:
		return syscall.EINVAL
	}
	if len(ring.buffer.data) > mostRing {
		m.find("ioctl", "ring", "a ring of %d bytes: a board froze with 3 MiB", len(ring.buffer.data))
	}
	c.bound, c.entries, c.ring, c.userd = true, entries, ring.buffer, userd.buffer
	c.ring.references++
	c.userd.references++
	for at := range userdBytes {
		if c.userd.data[at] != 0 {
			m.find("stale", "userd", "USERD is not zero")
			break
		}
	}
	c.token = m.choose(20, firstToken-uint32(len(m.channels)))
	m.channels[c.token] = c
	put32(a.bytes, 20, c.token)
	clear(a.bytes[40:64]) // addresses of a doorbell that the GPU could ring
	return nil
}

func allocObject(m *Machine, f *file, a *argument) error {
	class, flags := get32(a.bytes, 0), get32(a.bytes, 4)
	if !f.channel.bound || flags != 0 || class != computeClass && class != copyClass {
		return syscall.EINVAL
	}
	f.channel.class = class
	put64(a.bytes, 8, 0)
	return nil
}

const notificationBytes = 16

func setNotifier(m *Machine, f *file, a *argument) error {
	offset, source := get64(a.bytes, 0), m.files[int(get32(a.bytes, 16))]
	if source == nil || source.kind != fileBuffer || offset+notificationBytes > uint64(len(source.buffer.data)) {
		return syscall.EINVAL
	}
	if f.channel.notifier != nil {
		m.drop(f.channel.notifier)
	}
	f.channel.notifier, f.channel.notifierAt = source.buffer, offset
	source.buffer.references++
	clear(source.buffer.data[offset : offset+notificationBytes])
	return nil
}

const smStateBytes = 24

func readErrors(m *Machine, f *file, a *argument) error {
	if n := m.sms(); int(get32(a.bytes, 0)) != n || len(a.pointee) < n*smStateBytes || get64(a.bytes, 16) < uint64(n*smStateBytes) {
		return syscall.EINVAL
	}
	for i, s := range f.group.states {
		put32(a.pointee, i*smStateBytes, s.globalESR)
		put32(a.pointee, i*smStateBytes+4, s.warpESR)
		put64(a.pointee, i*smStateBytes+8, s.pc)
	}
	return nil
}

func (m *Machine) closeChannel(c *channel) {
	if c.closed {
		return
	}
	c.closed = true
	delete(m.channels, c.token)
	for _, b := range []*buffer{c.ring, c.userd, c.notifier} {
		if b != nil {
			m.drop(b)
		}
	}
}
