package emu

import (
	"cmp"
	"slices"
	"syscall"

	"tgc/internal/ptxemu"
)

// request is a row of the driver's table: what a request number means for a kind of
// descriptor. The size of the argument is part of the number.
type request struct {
	file   kind
	number uint32
	name   string
	do     func(m *Machine, f *file, a *argument) error
}

// span is from a byte to another, which it does not have.
type span struct{ from, to int }

// argument is what a request is given, and changes.
type argument struct {
	bytes   []byte
	pointee []byte // what a pointer in it points to
	value   uint64 // of a request without an argument in memory
}

// requests are all that the driver has.
var requests = []request{
	{fileNvmap, 0xc0084e00, "NVMAP_CREATE", createHandle},
	{fileNvmap, 0xc0084e01, "NVMAP_CREATE_64", createHandle64},
	{fileNvmap, 0x40144e03, "NVMAP_ALLOC", allocHandle},
	{fileNvmap, 0x00004e04, "NVMAP_FREE", freeHandle},
	{fileNvmap, 0xc0084e0f, "NVMAP_GET_FD", handleFile},
	{fileControl, 0xc0104705, "GPU_GET_CHARACTERISTICS", getCharacteristics},
	{fileControl, 0xc0404708, "GPU_ALLOC_AS", allocSpace},
	{fileControl, 0xc0184709, "GPU_OPEN_TSG", openGroup},
	{fileControl, 0xc004470b, "GPU_OPEN_CHANNEL", openChannel},
	{fileControl, 0xc005470c, "GPU_FLUSH_L2", func(*Machine, *file, *argument) error { return nil }},
	{fileControl, 0xc0084712, "GPU_NUM_VSMS", numSMs},
	{fileSpace, 0xc0044101, "AS_BIND_CHANNEL", bindSpace},
	{fileSpace, 0xc0204103, "AS_FREE_SPACE", freeRange},
	{fileSpace, 0xc0084105, "AS_UNMAP_BUFFER", unmapBuffer},
	{fileSpace, 0xc0204106, "AS_ALLOC_SPACE", allocRange},
	{fileSpace, 0xc0284107, "AS_MAP_BUFFER_EX", mapBuffer},
	{fileGroup, 0xc018540b, "TSG_BIND_CHANNEL_EX", bindGroup},
	{fileGroup, 0xc0185411, "TSG_READ_ALL_SM_ERROR_STATES", readErrors},
	{fileGroup, 0xc0105412, "TSG_CREATE_SUBCONTEXT", createSubcontext},
	{fileChannel, 0x8004480c, "CHANNEL_GET_TIMEDOUT", func(_ *Machine, f *file, a *argument) error {
		put32(a.bytes, 0, boolean(f.channel.fault != nil))
		return nil
	}},
	{fileChannel, 0xc010486c, "CHANNEL_ALLOC_OBJ_CTX", allocObject},
	{fileChannel, 0xc018486f, "CHANNEL_SET_ERROR_NOTIFIER", setNotifier},
	{fileChannel, 0x40084877, "CHANNEL_WDT", setWatchdog},
	{fileChannel, 0xc0684880, "CHANNEL_SETUP_BIND", setupBind},
}

// reserved are the bytes of arguments that have no meaning, and have to be zero.
var reserved = map[uint32][]span{
	0xc0404708: {{12, 16}, {40, 64}}, 0xc0084712: {{4, 8}}, 0xc0204106: {{24, 32}}, 0xc0105412: {{12, 16}}, 0xc018540b: {{8, 24}},
	0xc0684880: {{64, 104}}, 0xc018486f: {{20, 24}},
}

// checkReserved notes bytes that should be zero; the driver does not look at them.
func (m *Machine) checkReserved(r *request, a *argument) {
	for _, s := range reserved[r.number] {
		if slices.ContainsFunc(a.bytes[s.from:s.to], func(b byte) bool { return b != 0 }) {
			m.find("ioctl", "reserved", "%s: bytes %d to %d are reserved and not zero", r.name, s.from, s.to)
		}
	}
}

func boolean(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Ioctl makes a request with an argument in memory, which it changes when it succeeds.
// Pointer is where the argument has the address of pointee, -1 for nowhere.
func (m *Machine) Ioctl(fd int, number uint32, bytes, pointee []byte, _ int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if int(number>>16&0x3fff) != len(bytes) {
		m.find("ioctl", "EINVAL", "request %#x with an argument of %d bytes", number, len(bytes))
		return syscall.EINVAL
	}
	a := &argument{bytes: slices.Clone(bytes), pointee: pointee}
	if err := m.request(fd, number, a); err != nil {
		return err
	}
	copy(bytes, a.bytes)
	return nil
}

// IoctlValue makes a request whose argument is a value.
func (m *Machine) IoctlValue(fd int, number uint32, value uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number>>16&0x3fff != 0 {
		m.find("ioctl", "EINVAL", "request %#x wants an argument in memory", number)
		return syscall.EINVAL
	}
	return m.request(fd, number, &argument{value: value})
}

func (m *Machine) request(fd int, number uint32, a *argument) error {
	if err := m.refused(); err != nil {
		return err
	}
	f := m.files[fd]
	if f == nil {
		return syscall.EBADF
	}
	for i := range requests {
		r := &requests[i]
		if r.file != f.kind || r.number != number {
			continue
		}
		m.checkReserved(r, a)
		err := r.do(m, f, a)
		if err != nil {
			m.find("ioctl", ErrnoName(err), "%s", r.name)
		}
		return err
	}
	m.find("ioctl", "ENOTTY", "request %#x of descriptor %d", number, fd)
	return syscall.ENOTTY
}

// errnoNames are the errors that the driver answers.
var errnoNames = map[syscall.Errno]string{
	syscall.EINVAL: "EINVAL", syscall.ENOTTY: "ENOTTY", syscall.EEXIST: "EEXIST", syscall.EBUSY: "EBUSY", syscall.ENOMEM: "ENOMEM",
	syscall.EBADF: "EBADF", syscall.ENOENT: "ENOENT", syscall.ENODEV: "ENODEV", syscall.ENOSPC: "ENOSPC",
}

// ErrnoName is the name of an error that the driver answers.
func ErrnoName(err error) string {
	if e, ok := err.(syscall.Errno); ok && errnoNames[e] != "" {
		return errnoNames[e]
	}
	return err.Error()
}

// Memory

func createHandle(m *Machine, _ *file, a *argument) error {
	h, err := m.newHandle(uint64(get32(a.bytes, 0)), 4)
	if err == nil {
		put32(a.bytes, 4, h)
	}
	return err
}

func createHandle64(m *Machine, _ *file, a *argument) error {
	h, err := m.newHandle(get64(a.bytes, 0), 0)
	if err == nil {
		put32(a.bytes, 0, h)
	}
	return err
}

func (m *Machine) newHandle(size uint64, at int) (uint32, error) {
	if size == 0 {
		return 0, syscall.EINVAL
	}
	size = (size + pageBytes - 1) / pageBytes * pageBytes
	if size > uint64(m.options.MemoryBytes) || m.used+int64(size) > m.options.MemoryBytes {
		return 0, syscall.ENOMEM
	}
	h := m.choose(at, m.next)
	m.next++
	m.handles[h] = &buffer{handle: h, data: make([]byte, size), references: 1}
	m.used += int64(size)
	return h, nil
}

const (
	heapIOVMM  = 1 << 30
	zeroFlag   = 1 << 5
	noFlags    = 0xffff // of the lower half; the upper is a tag
	mostFilled = 64 << 20

	cacheMask     = 3
	writeCombined = 1
)

func allocHandle(m *Machine, _ *file, a *argument) error {
	b := m.handles[get32(a.bytes, 0)]
	heap, flags, align, node := get32(a.bytes, 4), get32(a.bytes, 8), get32(a.bytes, 12), int32(get32(a.bytes, 16))
	switch {
	case b == nil || align&(align-1) != 0 || node != 0 && node != -1:
		return syscall.EINVAL
	case heap&heapIOVMM == 0:
		return syscall.ENOMEM
	}
	if flags>>16 == 0 {
		m.find("ioctl", "tag", "NVMAP_ALLOC without a tag: the kernel prints a warning")
	}
	b.allocated, b.combined = true, flags&cacheMask == writeCombined
	if flags&noFlags&zeroFlag == 0 { // memory is what somebody left in it
		fill := b.data
		if len(fill) > mostFilled {
			fill = fill[:pageBytes]
		}
		for i := range fill {
			fill[i] = 0xa5
		}
	}
	return nil
}

func freeHandle(m *Machine, _ *file, a *argument) error {
	h := uint32(a.value)
	b := m.handles[h]
	if b == nil {
		m.find("leak", "free", "NVMAP_FREE of handle %#x, which is not there", h)
		return nil
	}
	delete(m.handles, h)
	m.drop(b)
	return nil
}

func handleFile(m *Machine, _ *file, a *argument) error {
	b := m.handles[get32(a.bytes, 4)]
	if b == nil || !b.allocated {
		return syscall.EINVAL
	}
	b.references++
	m.addAt(&file{kind: fileBuffer, buffer: b}, a.bytes, 0)
	return nil
}

// The GPU

func getCharacteristics(m *Machine, _ *file, a *argument) error {
	size := get64(a.bytes, 0)
	copy(a.pointee[:min(size, uint64(len(a.pointee)))], m.characteristics())
	put64(a.bytes, 0, characteristicsBytes)
	return nil
}

const (
	characteristicsBytes = 328
	gpcs                 = 2 // of an AGX Orin with all of its power; with less there is one
	tpcs                 = 4 // of a GPC
	smsPerTPC            = 2
	warpsPerSM           = 96
	computeClass         = 0xc7c0
	channelClass         = 0xc76f
	copyClass            = 0xc7b5
)

// characteristics are those of an AGX Orin, or of the board that a trace was made on.
func (m *Machine) characteristics() []byte {
	if m.replay != nil && m.replay.characteristics != nil {
		return m.replay.characteristics
	}
	b := make([]byte, characteristicsBytes)
	for at, v := range map[int]uint32{
		0x00: 0x170, 0x04: 0xb, 0x08: 161, 0x0c: gpcs, 0x28: tpcs, 0x2c: 32, 0x48: 0x902d, 0x4c: 0xc797, 0x50: computeClass, 0x54: channelClass,
		0x58: 0xa140, 0x5c: copyClass, 0x60: 1<<gpcs - 1, 0x64: 0x807, 0x68: 0x806, 0x6c: warpsPerSM, 0x94: gpcs, 0x124: 64, 0x134: 1 << 15,
	} {
		put32(b, at, v)
	}
	put64(b, 0x18, 4<<20)
	put64(b, 0x40, 0x01bf5fff7f5d035d)
	put64(b, 0xc8, 1_300_000_000)
	for at, v := range map[int]uint16{0x70: 44, 0x72: 21, 0x74: 0, 0x76: 128, 0x78: 14} {
		b[at], b[at+1] = byte(v), byte(v>>8)
	}
	b[0x7a] = 40
	copy(b[0xa0:], "ga10b")
	return b
}

func numSMs(m *Machine, _ *file, a *argument) error {
	put32(a.bytes, 0, uint32(m.sms()))
	return nil
}

// sms is the number of multiprocessors.
func (m *Machine) sms() int {
	c := m.characteristics()
	return int(get32(c, 0x0c)*get32(c, 0x28)) * smsPerTPC
}

// addressSpace is what one ALLOC_AS made.
type addressSpace struct {
	space    *space
	memory   *ptxemu.Memory
	maps     map[uint64]*gpuMapping
	reserved map[uint64]uint64 // sizes of fixed ranges
	mapped   bool              // something was mapped before: reservations come too late
}

// gpuMapping is a buffer at an address.
type gpuMapping struct {
	address    uint64
	size       uint64
	buffer     *buffer
	fixed      bool
	references int
	inWindow   bool // it was noted that it lies in one
}

const (
	pdeSpan     = 2 << 20
	flagUnified = 2
	flagFixed   = 1
)

func allocSpace(m *Machine, _ *file, a *argument) error {
	big, flags := get32(a.bytes, 0), get32(a.bytes, 8)
	start, end, split := get64(a.bytes, 16), get64(a.bytes, 24), get64(a.bytes, 32)
	if start == 0 || end == 0 || start%pdeSpan != 0 || end%pdeSpan != 0 || start >= end || end > 1<<40 || split != 0 || big != 0 || flags&^flagUnified != 0 {
		return syscall.EINVAL
	}
	s := &addressSpace{space: newSpace(start, end), memory: ptxemu.NewMemory(), maps: make(map[uint64]*gpuMapping), reserved: make(map[uint64]uint64)}
	m.spaces = append(m.spaces, s)
	m.addAt(&file{kind: fileSpace, space: s}, a.bytes, 4)
	return nil
}

func allocRange(m *Machine, f *file, a *argument) error {
	pages, page, flags, at := get64(a.bytes, 0), get32(a.bytes, 8), get32(a.bytes, 12), get64(a.bytes, 16)
	if pages == 0 || pages > 1<<28 || page != pageBytes || flags&^3 != 0 {
		return syscall.EINVAL
	}
	if f.space.mapped {
		m.find("window", "late", "a range is reserved at %#x after something was mapped", at)
	}
	size := pages * pageBytes
	if flags&flagFixed == 0 {
		got, ok := f.space.space.alloc(size)
		if !ok {
			return syscall.ENOMEM
		}
		at = got
		put64(a.bytes, 16, at)
	} else if !f.space.space.reserve(at, size) {
		return syscall.EINVAL
	}
	f.space.reserved[at] = size
	return nil
}

// freeRange unmaps what lies inside; an unknown offset is no error.
func freeRange(m *Machine, f *file, a *argument) error {
	at := get64(a.bytes, 0)
	size, ok := f.space.reserved[at]
	if !ok {
		m.find("leak", "space", "AS_FREE_SPACE at %#x, where nothing is reserved", at)
		return nil
	}
	for _, g := range sortedMaps(f.space) {
		if g.address >= at && g.address < at+size {
			m.find("leak", "unmap", "AS_FREE_SPACE unmaps %d bytes at %#x", g.size, g.address)
			m.unmap(f.space, g)
		}
	}
	delete(f.space.reserved, at)
	f.space.space.unreserve(at, size)
	return nil
}

func sortedMaps(s *addressSpace) []*gpuMapping {
	var list []*gpuMapping
	for _, g := range s.maps {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *gpuMapping) int { return cmp.Compare(a.address, b.address) })
	return list
}

const (
	mapCacheable   = 1 << 2
	mapKnownFlags  = 1<<0 | mapCacheable | 1<<7 | 1<<9 | 3<<10 | 1<<12
	kindInvalid    = 0xffff // compressed kind -1
	accessShift    = 10
	accessReadOnly = 1
)

func mapBuffer(m *Machine, f *file, a *argument) error {
	flags, kinds, page := get32(a.bytes, 0), get32(a.bytes, 4), get32(a.bytes, 12)
	offset, size, at := get64(a.bytes, 16), get64(a.bytes, 24), get64(a.bytes, 32)
	source := m.files[int(get32(a.bytes, 8))]
	if source == nil || source.kind != fileBuffer || flags&^mapKnownFlags != 0 || kinds != kindInvalid || page != pageBytes && page != 0 {
		return syscall.EINVAL
	}
	g := &gpuMapping{address: at, size: uint64(len(source.buffer.data)), buffer: source.buffer, fixed: flags&flagFixed != 0, references: 1}
	if err := m.place(f.space, g, offset, size); err != nil {
		return err
	}
	readOnly := flags>>accessShift&3 == accessReadOnly
	if f.space.maps[g.address] == nil {
		if m.replay == nil { // else nothing runs on it
			if err := f.space.memory.Map(g.address, g.buffer.data, readOnly); err != nil {
				return syscall.EINVAL
			}
		}
		g.buffer.references++
		f.space.maps[g.address] = g
		f.space.mapped = true
	}
	put64(a.bytes, 32, g.address)
	return nil
}

// place finds the address of a mapping. A buffer that is mapped already stays where it
// is, with one reference more.
func (m *Machine) place(s *addressSpace, g *gpuMapping, offset, size uint64) error {
	if !g.fixed {
		if offset != 0 || size != 0 || g.address != 0 {
			return syscall.EINVAL
		}
		for _, other := range sortedMaps(s) {
			if other.buffer == g.buffer {
				other.references++
				g.address = other.address
				return nil
			}
		}
		at, ok := s.space.alloc(g.size)
		if !ok {
			return syscall.ENOMEM
		}
		g.address = at
		return nil
	}
	for _, other := range s.maps {
		if g.address < other.address+other.size && other.address < g.address+g.size {
			return syscall.EINVAL
		}
	}
	for at, length := range s.reserved {
		if g.address >= at && g.address+g.size <= at+length && g.address%pageBytes == 0 {
			return nil
		}
	}
	return syscall.EINVAL
}

func unmapBuffer(m *Machine, f *file, a *argument) error {
	at := get64(a.bytes, 0)
	g := f.space.maps[at]
	if g == nil {
		m.find("leak", "unmap", "AS_UNMAP_BUFFER at %#x, where nothing is mapped", at)
		return nil
	}
	if g.references--; g.references == 0 {
		m.unmap(f.space, g)
	}
	return nil
}

func (m *Machine) unmap(s *addressSpace, g *gpuMapping) {
	delete(s.maps, g.address)
	_ = s.memory.Free(g.address) // it was mapped there
	if !g.fixed {
		s.space.release(g.address)
	}
	m.drop(g.buffer)
}
