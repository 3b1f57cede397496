package word

import (
	"errors"
	"fmt"
)

// opcode is how a header says where its data goes.
type opcode uint64

const (
	opIncrease    opcode = 1 // each word to the method after the one before
	opNonIncrease opcode = 3 // all to one method
	opImmediate   opcode = 4 // no data: it is in the header
	opOneIncrease opcode = 5 // the first to the method, all others to the next
	opEndSegment  opcode = 7
)

// header is the first word of a method.
var header = &Layout{Name: "method header", Words: 1, byName: map[Name]int{"OPCODE": 0, "COUNT": 1, "SUBCHANNEL": 2, "ZERO": 3, "ADDRESS": 4}, Fields: []Field{
	{Name: "OPCODE", High: 31, Low: 29, Count: 1}, {Name: "COUNT", High: 28, Low: 16, Count: 1}, {Name: "SUBCHANNEL", High: 15, Low: 13, Count: 1},
	{Name: "ZERO", High: 12, Low: 12, Count: 1}, {Name: "ADDRESS", High: 11, Low: 0, Count: 1},
}}

// ringEntry is an entry of the ring: where a pushbuffer lies and how long it is in words.
var ringEntry = &Layout{Name: "ring entry", Words: 2, byName: map[Name]int{"FETCH": 0, "GET": 1, "GET_HI": 2, "LEVEL": 3, "LENGTH": 4, "SYNC": 5}, Fields: []Field{
	{Name: "FETCH", High: 0, Low: 0, Count: 1}, {Name: "GET", High: 31, Low: 2, Count: 1}, {Name: "GET_HI", High: 39, Low: 32, Count: 1},
	{Name: "LEVEL", High: 41, Low: 41, Count: 1}, {Name: "LENGTH", High: 62, Low: 42, Count: 1}, {Name: "SYNC", High: 63, Low: 63, Count: 1},
}}

// levelSubroutine marks every entry, as the recorded ones are.
const levelSubroutine = 1

// RingEntry is the entry of a pushbuffer at an address, a number of words long.
func RingEntry(address uint64, words int) (uint64, error) {
	out := make([]uint32, ringEntry.Words)
	if address%4 != 0 || words < 1 {
		return 0, fmt.Errorf("ring entry: %d words at %#x, want at least one, at a multiple of 4", words, address)
	}
	err := errors.Join(
		ringEntry.Set(out, "GET", 0, address>>2&(1<<30-1)),
		ringEntry.Set(out, "GET_HI", 0, address>>32),
		ringEntry.Set(out, "LEVEL", 0, levelSubroutine),
		ringEntry.Set(out, "LENGTH", 0, uint64(words)),
	)
	return uint64(out[1])<<32 | uint64(out[0]), err
}

// Part is a value of a field.
type Part struct {
	Field Name
	Value uint64
}

// Builder collects the words of a pushbuffer. Its first mistake is Err.
type Builder struct {
	Words []uint32
	Err   error
}

// fail notes a mistake.
func (b *Builder) fail(err error) {
	if b.Err == nil {
		b.Err = err
	}
}

// header adds a header; count is the data of an immediate one.
func (b *Builder) header(op opcode, to Subchannel, name Name, count uint64) {
	m, err := to.method(name)
	if err != nil {
		b.fail(err)
		return
	}
	out := make([]uint32, 1)
	err = errors.Join(
		header.Set(out, "OPCODE", 0, uint64(op)), header.Set(out, "COUNT", 0, count),
		header.Set(out, "SUBCHANNEL", 0, uint64(to)), header.Set(out, "ADDRESS", 0, uint64(m.Offset/4)),
	)
	if err != nil {
		b.fail(fmt.Errorf("method %s: %w", name, err))
	}
	b.Words = append(b.Words, out[0])
}

// Send sends words to a method and those after it.
func (b *Builder) Send(to Subchannel, first Name, data ...uint32) {
	b.header(opIncrease, to, first, uint64(len(data)))
	b.Words = append(b.Words, data...)
}

// SendAll sends words to one method.
func (b *Builder) SendAll(to Subchannel, name Name, data ...uint32) {
	b.header(opNonIncrease, to, name, uint64(len(data)))
	b.Words = append(b.Words, data...)
}

// Immediate sends a value of at most 13 bits within the header.
func (b *Builder) Immediate(to Subchannel, name Name, value uint32) {
	b.header(opImmediate, to, name, uint64(value))
}

// Value puts the word of a method together from its fields.
func (b *Builder) Value(to Subchannel, name Name, parts ...Part) uint32 {
	out := make([]uint32, 1)
	m, err := to.method(name)
	if err != nil {
		b.fail(err)
		return 0
	}
	for _, p := range parts {
		if err := m.Value.Set(out, p.Field, 0, p.Value); err != nil {
			b.fail(err)
		}
	}
	return out[0]
}

// High and Low are the halves of a 64-bit value.
func High(v uint64) uint32 { return uint32(v >> 32) }

// Low is the lower half.
func Low(v uint64) uint32 { return uint32(v) }

// Release writes a value of 64 bits to memory, with a time stamp of as many bits
// after it where stamped: after all work before it has ended.
func (b *Builder) Release(address, value uint64, stamped bool) {
	stamp := uint64(0)
	if stamped {
		stamp = 1
	}
	execute := b.Value(OnHost, SemExecute, Part{Operation, OperationRelease}, Part{ReleaseWFI, 1}, Part{PayloadSize, 1}, Part{ReleaseTimestamp, stamp})
	b.semaphore(address, value, execute)
}

// Acquire waits until memory holds a value or a later one.
func (b *Builder) Acquire(address, value uint64) {
	b.semaphore(address, value, b.Value(OnHost, SemExecute, Part{Operation, OperationAcquireGEQ}, Part{PayloadSize, 1}))
}

func (b *Builder) semaphore(address, value uint64, execute uint32) {
	if address%8 != 0 || address>>40 != 0 {
		b.fail(fmt.Errorf("semaphore at %#x, want a multiple of 8 below 1<<40", address))
	}
	b.Send(OnHost, SemAddrLo, Low(address), High(address), Low(value), High(value), execute)
}

// Launch hands a descriptor to the scheduler.
func (b *Builder) Launch(qmd uint64, action uint64) {
	if qmd%256 != 0 || qmd>>40 != 0 {
		b.fail(fmt.Errorf("QMD at %#x, want a multiple of 256 below 1<<40", qmd))
	}
	b.Send(OnCompute, SendPCAS, uint32(qmd>>8))
	b.Send(OnCompute, SendSignalingPCAS2, b.Value(OnCompute, SendSignalingPCAS2, Part{PCASAction, action}))
}

// MostCopied is the length of the longest copy, in bytes.
const MostCopied = 1 << 31

// Copy copies bytes after the copies before it, and makes them visible to all others.
func (b *Builder) Copy(from, to uint64, bytes int64) {
	if from>>40 != 0 || to>>40 != 0 || bytes < 1 || bytes > MostCopied {
		b.fail(fmt.Errorf("copy of %d bytes from %#x to %#x, want 1 to %d below 1<<40", bytes, from, to, MostCopied))
		return
	}
	b.Send(OnCopy, OffsetInUpper, High(from), Low(from), High(to), Low(to))
	b.Send(OnCopy, LineLengthIn, uint32(bytes))
	b.Send(OnCopy, LaunchDMA, b.Value(OnCopy, LaunchDMA, Part{DataTransferType, TransferInOrder}, Part{FlushEnable, 1},
		Part{SrcMemoryLayout, LayoutPitch}, Part{DstMemoryLayout, LayoutPitch}))
}
