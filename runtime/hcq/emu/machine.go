package emu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"tgc/internal/ptxemu"
)

// Options describe a machine. The zero value is an AGX Orin.
type Options struct {
	Seed        uint64
	MemoryBytes int64 // that may be allocated; 0 for 32 GiB
	// Delay bounds the time from a doorbell to the moment when the front end looks at the
	// ring; it is drawn anew for each. 0 means that the work is done within Doorbell.
	Delay time.Duration
	// Say keeps a line for every launch and copy, for Said.
	Say bool
	// Injury, where not nil, happens once.
	Injury *Injury
}

// Machine is a Jetson. Its methods may be called from any goroutine; one runs at once.
type Machine struct {
	mu       sync.Mutex
	options  Options
	random   *rand.Rand
	files    map[int]*file
	nextFile int
	handles  map[uint32]*buffer
	next     uint32 // handle
	used     int64
	maps     map[*byte]*mapping
	spaces   []*addressSpace
	channels map[uint32]*channel // by work submit token
	known    []*known
	clock    uint64 // nanoseconds
	findings []Finding
	declared map[uint64]Needs // by address of the program
	replay   *replay          // nil: the machine chooses for itself
	counts   Counts           // of what an injury could happen to
	said     []string
}

// Finding is something that the machine noticed: a refusal, a fault, or what is accepted
// in silence although it is a mistake.
type Finding struct {
	Kind string // ioctl, pbdma, method, sked, sm, mmu, window, stale, order, wait, load, leak
	Code string
	Text string
}

func (f Finding) String() string { return f.Kind + " " + f.Code + " " + f.Text }

// Limits and choices of the driver.
const (
	defaultMemory = 32 << 30
	firstFile     = 3
	firstHandle   = 0x80000001
	clockTick     = 1000 // nanoseconds from one time stamp to the next
)

// New makes a machine.
func New(options Options) *Machine {
	if options.MemoryBytes == 0 {
		options.MemoryBytes = defaultMemory
	}
	return &Machine{
		options: options, random: rand.New(rand.NewPCG(options.Seed, 3)), files: make(map[int]*file), nextFile: firstFile,
		handles: make(map[uint32]*buffer), next: firstHandle, maps: make(map[*byte]*mapping), channels: make(map[uint32]*channel),
		clock: 1 << 40, declared: make(map[uint64]Needs), counts: make(Counts),
	}
}

// kind is what a descriptor stands for.
type kind int

const (
	fileNvmap kind = iota
	fileControl
	fileSpace
	fileGroup
	fileChannel
	fileBuffer
)

// file is an open descriptor.
type file struct {
	kind    kind
	space   *addressSpace
	group   *group
	channel *channel
	buffer  *buffer
	mapped  bool // a control file's doorbell page
}

// buffer is memory of nvmap.
type buffer struct {
	handle     uint32
	data       []byte
	references int    // the handle, descriptors, mappings of CPU and GPU
	seen       []byte // what stood in it at the last full barrier; nil where it is too large to keep
	allocated  bool
	combined   bool // write-combined: fetched by the front end it gave errors on a board
}

// mapping is memory that the CPU sees.
type mapping struct {
	buffer   *buffer // nil of a doorbell page
	doorbell bool
}

// Open opens a node.
func (m *Machine) Open(path string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refused(); err != nil {
		return -1, err
	}
	switch path {
	case "/dev/nvmap":
		return m.add(&file{kind: fileNvmap}), nil
	case "/dev/nvgpu/igpu0/ctrl":
		return m.add(&file{kind: fileControl}), nil
	}
	return -1, syscall.ENOENT
}

func (m *Machine) add(f *file) int {
	fd := m.freeFile()
	if m.replay != nil {
		fd = m.replay.file
	}
	m.files[fd] = f
	return fd
}

func (m *Machine) freeFile() int {
	for m.files[m.nextFile] != nil {
		m.nextFile++
	}
	return m.nextFile
}

// addAt adds a file whose descriptor goes into a result at an offset.
func (m *Machine) addAt(f *file, result []byte, offset int) {
	fd := m.choose(offset, uint32(m.freeFile()))
	m.files[int(fd)] = f
	put32(result, offset, fd)
}

// Close closes a descriptor.
func (m *Machine) Close(fd int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[fd]
	if f == nil {
		return syscall.EBADF
	}
	delete(m.files, fd)
	m.nextFile = min(m.nextFile, fd)
	switch f.kind {
	case fileBuffer:
		m.drop(f.buffer)
	case fileChannel:
		m.closeChannel(f.channel)
	case fileNvmap:
		m.dropHandles()
	}
	m.closeSpaces()
	return m.refused()
}

// dropHandles ends the handles of an nvmap file that is closed.
func (m *Machine) dropHandles() {
	for h, b := range m.handles {
		m.find("leak", "handle", "%d bytes of handle %#x are there when /dev/nvmap is closed", len(b.data), h)
		delete(m.handles, h)
		m.drop(b)
	}
}

// closeSpaces ends the address spaces that neither a descriptor nor a channel holds.
func (m *Machine) closeSpaces() {
	held := make(map[*addressSpace]bool)
	for _, f := range m.files {
		switch {
		case f.kind == fileSpace:
			held[f.space] = true
		case f.kind == fileChannel && f.channel.space != nil:
			held[f.channel.space] = true
		}
	}
	for i := 0; i < len(m.spaces); {
		s := m.spaces[i]
		if held[s] {
			i++
			continue
		}
		for _, g := range sortedMaps(s) {
			m.unmap(s, g)
		}
		m.spaces = append(m.spaces[:i], m.spaces[i+1:]...)
	}
}

// Mmap maps a buffer, or the doorbell page of a control file.
func (m *Machine) Mmap(fd, length int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refused(); err != nil {
		return nil, err
	}
	f := m.files[fd]
	switch {
	case f == nil:
		return nil, syscall.EBADF
	case length <= 0:
		return nil, syscall.EINVAL
	case f.kind == fileControl && length > doorbellBytes:
		return nil, syscall.EINVAL
	case f.kind == fileControl && f.mapped:
		return nil, syscall.EBUSY
	case f.kind == fileControl:
		f.mapped = true
		page := make([]byte, length)
		m.maps[&page[0]] = &mapping{doorbell: true}
		return page, nil
	case f.kind != fileBuffer:
		return nil, syscall.ENODEV
	case length > len(f.buffer.data):
		return nil, syscall.EINVAL
	}
	f.buffer.references++
	m.maps[&f.buffer.data[0]] = &mapping{buffer: f.buffer}
	if len(f.buffer.data) <= mostSeen && f.buffer.seen == nil {
		f.buffer.seen = bytes.Clone(f.buffer.data)
	}
	return f.buffer.data[:length:length], nil
}

// Munmap ends a mapping of the CPU.
func (m *Machine) Munmap(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(b) == 0 {
		return syscall.EINVAL
	}
	mapped := m.maps[&b[0]]
	if mapped == nil {
		return syscall.EINVAL
	}
	delete(m.maps, &b[0])
	if mapped.buffer != nil {
		m.drop(mapped.buffer)
	}
	return m.refused()
}

// drop takes a reference away.
func (m *Machine) drop(b *buffer) {
	if b.references--; b.references == 0 {
		m.used -= int64(len(b.data))
		b.data, b.seen = nil, nil
	}
}

// mostSeen bounds the buffers of which the machine keeps what stood in them at the last
// full barrier, in bytes.
const mostSeen = 1 << 20

// Publish is a full barrier of the CPU: the GPU sees what was stored before.
func (m *Machine) Publish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mapped := range m.maps {
		if b := mapped.buffer; b != nil && len(b.data) <= mostSeen {
			b.seen = append(b.seen[:0], b.data...)
		}
	}
}

// Doorbell stores a word in a mapped doorbell page.
func (m *Machine) Doorbell(page []byte, offset int, v uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mapped := m.maps[unsafe.SliceData(page)]
	if mapped == nil || !mapped.doorbell || offset != doorbellOffset {
		m.find("mmu", "doorbell", "a store of %#x at %#x of what is no doorbell", v, offset)
		return
	}
	c := m.channels[v]
	switch {
	case m.injured(OnDoorbell) != nil:
	case c == nil:
		m.find("order", "token", "a doorbell for work submit token %#x, which no channel has", v)
	case c.userd.seen != nil && get32(c.userd.data, offsetPut) != get32(c.userd.seen, offsetPut):
		m.fail(c, refuseStale("GPPut", offsetPut))
	case m.options.Delay == 0:
		c.rung = true
		m.poll(context.Background(), c)
	case !c.awake:
		c.awake = true
		go m.wake(c, time.Duration(m.random.Int64N(int64(m.options.Delay))))
	}
}

// wake lets a channel's front end look at its ring after a time.
func (m *Machine) wake(c *channel, after time.Duration) {
	time.Sleep(after)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.awake, c.rung = false, true
	m.poll(context.Background(), c)
}

const (
	doorbellBytes  = 64 << 10
	doorbellOffset = 0x90
)

// find notes a finding.
func (m *Machine) find(kind, code, format string, args ...any) {
	m.findings = append(m.findings, Finding{kind, code, fmt.Sprintf(format, args...)})
}

// Findings is what was noticed so far.
func (m *Machine) Findings() []Finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Finding(nil), m.findings...)
}

// say keeps a line.
func (m *Machine) say(format string, args ...any) {
	if m.options.Say {
		m.said = append(m.said, fmt.Sprintf(format, args...))
	}
}

// Said is a line for every launch and copy since it was last asked for: see Options.Say.
func (m *Machine) Said() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := m.said
	m.said = nil
	return said
}

// Live says what has not been given back; empty for nothing.
func (m *Machine) Live() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.files)+len(m.handles)+len(m.maps) == 0 && m.used == 0 {
		return ""
	}
	return fmt.Sprintf("%d descriptors, %d handles, %d mappings, %d bytes", len(m.files), len(m.handles), len(m.maps), m.used)
}

// now is the time of the GPU's clock.
func (m *Machine) now() uint64 {
	m.clock += clockTick
	return m.clock
}

func get32(b []byte, at int) uint32    { return binary.LittleEndian.Uint32(b[at:]) }
func get64(b []byte, at int) uint64    { return binary.LittleEndian.Uint64(b[at:]) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

// addressError is the wrong address in an error of a kernel; nil for none.
func addressError(err error) *ptxemu.AddressError {
	var wrong *ptxemu.AddressError
	if errors.As(err, &wrong) {
		return wrong
	}
	return nil
}
