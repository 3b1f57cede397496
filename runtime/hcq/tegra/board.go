package tegra

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"tgc/runtime/hcq"
	"tgc/runtime/hcq/port"
)

// Options configure Open.
type Options struct {
	// Entries of the ring, a power of two; 0 for 1,024, which is known to work.
	Entries int
}

const (
	defaultEntries = 1024
	// mostEntries makes a ring of 1 MiB: one of 3 MiB froze a board within
	// CHANNEL_ALLOC_OBJ_CTX.
	mostEntries   = 1 << 17
	pageBytes     = 4096
	doorbellBytes = 64 << 10
	doorbellAt    = 0x90
	smsPerTPC     = 2
	notifierBytes = pageBytes
)

// Range of addresses, and the windows in it that are never mapped. The kernel takes
// addresses from the top, and would come to the windows after some GiB.
const (
	rangeStart   = 2 << 20
	rangeEnd     = 1<<40 - 2<<20
	localWindow  = 0xfd << 32
	sharedWindow = 0xfe << 32
	windowBytes  = 1 << 30
)

// Board is an open GPU.
type Board struct {
	port           port.Port
	options        Options
	nvmap, control int
	space, group   int // descriptors; 0 before they are open
	info           hcq.Info
	sms            int
	veid           uint32
	channels       [2]channel // by engine
	doorbell       []byte
	live           []*hcq.Buffer // in order
	closed         bool
}

// channel is an open queue of an engine.
type channel struct {
	fd          int // 0 before it is open
	token       uint32
	ring, userd *hcq.Buffer
	notifier    *hcq.Buffer
}

// Open brings the GPU up.
func Open(to port.Port, options Options) (*Board, error) {
	if options.Entries == 0 {
		options.Entries = defaultEntries
	}
	if options.Entries > mostEntries {
		return nil, fmt.Errorf("tegra: a ring of %d entries, want at most %d", options.Entries, mostEntries)
	}
	b := &Board{port: to, options: options, nvmap: -1, control: -1}
	for _, step := range []func() error{b.openNodes, b.describe, b.openSpace, b.openGroup, b.openChannels, b.mapDoorbell} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("tegra: %w", err), b.Close())
		}
	}
	return b, nil
}

func (b *Board) openNodes() (err error) {
	if b.control, err = b.port.Open(controlNode); err != nil {
		b.control = -1
		return nodeError(controlNode, err)
	}
	if b.nvmap, err = b.port.Open(nvmapNode); err != nil {
		b.nvmap = -1
		return nodeError(nvmapNode, err)
	}
	return nil
}

// nodeError says what a node wants of who opens it.
func nodeError(node string, err error) error {
	err = &fs.PathError{Op: "open", Path: node, Err: err}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: want the group video or render", err)
	}
	return err
}

// ErrRelease is wrapped where the kernel driver is that of another L4T than r36.
var ErrRelease = errors.New("another L4T than r36")

// describe reads the characteristics: how many processors there are depends on the power
// mode.
func (b *Board) describe() error {
	whole := make([]byte, characteristicsBytes)
	args := characteristicsArgs{BufferSize: characteristicsBytes}
	if err := callPointing(b.port, b.control, getCharacteristics, &args, whole, 8); err != nil {
		return err
	}
	if args.BufferSize != characteristicsBytes {
		return fmt.Errorf("characteristics of %d bytes, want %d: %w", args.BufferSize, characteristicsBytes, ErrRelease)
	}
	get := func(at int) uint32 { return binary.LittleEndian.Uint32(whole[at:]) }
	version := get(atSMVersion)
	b.info = hcq.Info{
		Chip: string(bytes.TrimRight(whole[atChip:atChip+chipBytes], "\x00")), SM: int(version>>8)*10 + int(version&0xff),
		GPCs: int(get(atGPCs)), TPCsPerGPC: int(get(atTPCs)), SMsPerTPC: smsPerTPC, WarpsPerSM: int(get(atWarps)),
		ComputeClass: get(atComputeClass), CopyClass: get(atCopyClass), SharedWindow: sharedWindow, LocalWindow: localWindow,
	}
	if binary.LittleEndian.Uint64(whole[atFlags:])&flagUserModeSubmit == 0 {
		return errors.New("the kernel driver has no submission from user space")
	}
	var count numVSMsArgs
	if err := call(b.port, b.control, numVSMs, &count); err != nil {
		return err
	}
	b.sms = int(count.Count)
	return nil
}

// openSpace makes the address space and keeps the windows free before anything is mapped.
func (b *Board) openSpace() error {
	args := allocASArgs{Flags: spaceUnified, RangeStart: rangeStart, RangeEnd: rangeEnd}
	if err := call(b.port, b.control, allocAS, &args); err != nil {
		return err
	}
	b.space = int(args.FD)
	for _, at := range []uint64{localWindow, sharedWindow} {
		reserve := allocSpaceArgs{Pages: windowBytes / pageBytes, PageSize: pageBytes, Flags: spaceFixed, Offset: at}
		if err := call(b.port, b.space, asAllocSpace, &reserve); err != nil {
			return fmt.Errorf("window at %#x: %w", at, err)
		}
	}
	return nil
}

func (b *Board) openGroup() error {
	var args openTSGArgs
	if err := call(b.port, b.control, openTSG, &args); errors.Is(err, syscall.ENOTTY) { // its argument is shorter
		return fmt.Errorf("%w: %w", ErrRelease, err)
	} else if err != nil {
		return err
	}
	b.group = int(args.FD)
	sub := subcontextArgs{Type: subcontextAsync, ASFD: int32(b.space)}
	if err := call(b.port, b.group, tsgCreateSubcontext, &sub); err != nil {
		return err
	}
	b.veid = sub.VEID
	return nil
}

// openChannels opens a channel for each engine, all in one group, as a board was seen to
// have them.
func (b *Board) openChannels() error {
	for engine, class := range [...]uint32{hcq.Compute: b.info.ComputeClass, hcq.Copies: b.info.CopyClass} {
		if err := b.openChannel(&b.channels[engine], class); err != nil {
			return fmt.Errorf("%s queue: %w", hcq.Engine(engine), err)
		}
	}
	return nil
}

// openChannel opens a channel. The order is the kernel's: the address space before the
// group, the watchdog off before the ring, the ring before the object.
func (b *Board) openChannel(c *channel, class uint32) error {
	args := openChannelArgs{primaryRunlist}
	if err := call(b.port, b.control, openChannel, &args); err != nil {
		return err
	}
	c.fd = int(args.Channel)
	if err := call(b.port, b.space, asBindChannel, &bindArgs{uint32(c.fd)}); err != nil {
		return err
	}
	if err := call(b.port, b.group, tsgBindChannel, &bindExArgs{ChannelFD: int32(c.fd), VEID: b.veid}); err != nil {
		return err
	}
	if err := call(b.port, c.fd, channelWatchdog, &watchdogArgs{Status: watchdogDisable}); err != nil {
		return err
	}
	if err := b.bindRing(c); err != nil {
		return err
	}
	if err := call(b.port, c.fd, channelAllocObject, &allocObjectArgs{Class: class}); err != nil {
		return err
	}
	var err error
	c.notifier, err = b.alloc(notifierBytes, hcq.UseData, func(fd int) error {
		return call(b.port, c.fd, channelSetNotifier, &notifierArgs{Size: notificationBytes, FD: uint32(fd)})
	})
	return err
}

// bindRing makes the ring and its pointers: small buffers of their own, of which the
// kernel maps the ring itself.
func (b *Board) bindRing(c *channel) error {
	var err error
	var bind setupBindArgs
	size := max(int64(8*b.options.Entries), pageBytes)
	c.ring, err = b.alloc(size, hcq.UseRing, func(ring int) error {
		var err error
		c.userd, err = b.alloc(pageBytes, hcq.UseRing, func(userd int) error {
			bind = setupBindArgs{Entries: uint32(b.options.Entries), Flags: bindDeterministic | bindUserMode, UserdFD: int32(userd), RingFD: int32(ring)}
			return call(b.port, c.fd, channelSetupBind, &bind)
		})
		return err
	})
	c.token = bind.Token
	return err
}

func (b *Board) mapDoorbell() (err error) {
	if b.doorbell, err = b.port.Mmap(b.control, doorbellBytes); err != nil {
		return fmt.Errorf("doorbell: %w", err)
	}
	return nil
}

// Info describes the GPU.
func (b *Board) Info() hcq.Info { return b.info }

// Channel is the queue of an engine.
func (b *Board) Channel(engine hcq.Engine) hcq.Channel {
	c := &b.channels[engine]
	return hcq.Channel{Ring: c.ring.Host, Control: c.userd.Host, Entries: b.options.Entries}
}

// Publish is a full barrier.
func (b *Board) Publish() { b.port.Publish() }

// Ring rings the doorbell of a channel.
func (b *Board) Ring(engine hcq.Engine) {
	b.port.Doorbell(b.doorbell, doorbellAt, b.channels[engine].token)
}

// Waited tells a port that wants to know.
func (b *Board) Waited(cell []byte, value uint64) {
	if w, ok := b.port.(interface {
		Waited(cell []byte, value uint64)
	}); ok {
		w.Waited(cell, value)
	}
}

// Close gives everything back, the channels before what they read.
func (b *Board) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	var errs []error
	if b.doorbell != nil {
		errs = append(errs, b.port.Munmap(b.doorbell))
	}
	for _, c := range slices.Backward(b.channels[:]) {
		if c.fd > 0 {
			errs = append(errs, b.port.Close(c.fd))
		}
	}
	for _, m := range slices.Backward(slices.Clone(b.live)) { // also what nobody could free while the GPU might use it
		errs = append(errs, b.Free(m))
	}
	for _, fd := range []int{b.group, b.space} {
		if fd > 0 {
			errs = append(errs, b.port.Close(fd))
		}
	}
	for _, fd := range []int{b.control, b.nvmap} {
		if fd >= 0 {
			errs = append(errs, b.port.Close(fd))
		}
	}
	return errors.Join(errs...)
}
