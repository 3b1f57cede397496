package hcq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"tgc/runtime/hcq/word"
)

// Offsets of the ring's pointers in its control block, in bytes.
const (
	getAt = 0x88
	putAt = 0x8c
)

const entryBytes = 8

// ErrTimeout is wrapped where the GPU does not go on.
var ErrTimeout = errors.New("the GPU does not go on")

// queue puts entries into the ring and signals the timeline. It is not safe for
// concurrent use.
type queue struct {
	board   Board
	engine  Engine
	channel Channel
	put     int
	timeout time.Duration
	// cell is the timeline: 8 bytes that the GPU writes, 8 with the time.
	cell *Buffer
	last uint64 // value that was asked for last
	// other is the queue that this one may wait for: as long as either goes on, the GPU does.
	other *queue
	// signals are slots of words of a submission, those that write the cell and those ahead
	// of its entries, used in turn: a slot is written anew when the timeline has reached the
	// value that it wrote before.
	signals *Buffer
	slots   []uint64 // value of each slot
	slot    int
}

const (
	slotBytes   = 128
	signalBytes = 24 // of a slot: a release
	slotCount   = 64
)

func newQueue(board Board, engine Engine, timeout time.Duration) (*queue, error) {
	q := &queue{board: board, engine: engine, channel: board.Channel(engine), timeout: timeout, slots: make([]uint64, slotCount)}
	var err error
	if q.cell, err = board.Alloc(16, UseData); err != nil {
		return nil, err
	}
	if q.signals, err = board.Alloc(slotBytes*slotCount, UseData); err != nil {
		return nil, errors.Join(err, board.Free(q.cell))
	}
	return q, nil
}

func (q *queue) close() error { return errors.Join(q.board.Free(q.signals), q.board.Free(q.cell)) }

// reached is the value of the timeline.
func (q *queue) reached() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&q.cell.Host[0])))
}

// submit queues entries and a signal after them, and returns the timeline's value of
// their end.
func (q *queue) submit(entries ...uint64) (uint64, error) { return q.submitAfter(nil, entries...) }

// submitAfter queues words, entries after them, and a signal.
func (q *queue) submitAfter(ahead []uint32, entries ...uint64) (uint64, error) {
	value := q.last + 1
	slot, err := q.freeSlot()
	if err != nil {
		return 0, err
	}
	if len(ahead) > 0 {
		first, err := q.place(slot*slotBytes+signalBytes, ahead)
		if err != nil {
			return 0, err
		}
		entries = append([]uint64{first}, entries...)
	}
	signal, err := q.signal(slot, value)
	if err != nil {
		return 0, err
	}
	for _, e := range append(entries, signal) {
		if err := q.enter(e); err != nil {
			return 0, err
		}
	}
	q.last = value
	q.ring()
	return value, nil
}

// freeSlot is the next slot, once what was in it has been read.
func (q *queue) freeSlot() (int, error) {
	return q.slot, q.wait(context.Background(), q.slots[q.slot])
}

// signal writes the words that set the timeline to a value into a slot, and returns their
// entry.
func (q *queue) signal(slot int, value uint64) (uint64, error) {
	b := &word.Builder{}
	b.Release(q.cell.Address, value, true)
	if b.Err != nil {
		return 0, b.Err
	}
	q.slots[slot] = value
	q.slot = (slot + 1) % len(q.slots)
	return q.place(slot*slotBytes, b.Words)
}

// place writes words to a place of the slots, and returns their entry.
func (q *queue) place(at int, words []uint32) (uint64, error) {
	putWords(q.signals.Host[at:], words)
	return word.RingEntry(q.signals.Address+uint64(at), len(words))
}

// after are words that wait, on another queue, until this one has reached a value.
func (q *queue) after(b *word.Builder, value uint64) { b.Acquire(q.cell.Address, value) }

// done reports a value that the timeline has passed.
func (q *queue) done(value uint64) bool { return int64(q.reached()-value) >= 0 }

// enter puts an entry into the ring, once there is room.
func (q *queue) enter(entry uint64) error {
	next := (q.put + 1) % q.channel.Entries
	if next == q.get() {
		q.ring()
		err := q.poll(context.Background(), func() bool { return next != q.get() })
		if err != nil {
			return fmt.Errorf("ring of %d entries is full: %w", q.channel.Entries, err)
		}
	}
	binary.LittleEndian.PutUint64(q.channel.Ring[q.put*entryBytes:], entry)
	q.put = next
	return nil
}

func (q *queue) get() int { return int(q.control(getAt).Load()) }

// control is a pointer of the ring.
func (q *queue) control(at int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&q.channel.Control[at]))
}

// ring makes all entries known to the GPU.
func (q *queue) ring() {
	q.board.Publish() // the words and the entries, ahead of the pointer
	q.control(putAt).Store(uint32(q.put))
	q.board.Publish()
	q.board.Ring(q.engine)
}

// wait waits until the timeline has a value or a later one.
func (q *queue) wait(ctx context.Context, value uint64) error {
	if !q.done(value) {
		if err := q.poll(ctx, func() bool { return q.done(value) }); err != nil {
			return err
		}
	}
	if value > 0 {
		q.board.Waited(q.cell.Host, value)
	}
	return nil
}

// Intervals of polling: a step is some hundred microseconds to milliseconds long.
const (
	spins      = 2000 // without giving the processor away
	pollPause  = 50 * time.Microsecond
	checkEvery = 64 // pauses from one look for a fault to the next
	// stopped is a pause that shows that the whole process stood still: time that does not
	// count, for an emulated GPU stood still with it.
	stopped = time.Second
)

// poll waits for a condition, for a fault, or for too long without progress.
func (q *queue) poll(ctx context.Context, done func() bool) error {
	for range spins {
		if done() {
			return nil
		}
	}
	last, before := q.progress(), time.Now()
	deadline := before.Add(q.timeout)
	for i := 0; !done(); i++ {
		if i%checkEvery == 0 {
			if err := q.board.Fault(); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		now := time.Now()
		if pause := now.Sub(before); pause > stopped {
			deadline = deadline.Add(pause)
		}
		before = now
		if value := q.progress(); value != last {
			last, deadline = value, now.Add(q.timeout)
		}
		if now.After(deadline) {
			return fmt.Errorf("%w: %s timeline %d of %d, ring entry %d of %d, for %v", ErrTimeout, q.engine, q.reached(), q.last, q.get(), q.put, q.timeout)
		}
		time.Sleep(pollPause)
	}
	return nil
}

// progress is a number that changes where the GPU goes on.
func (q *queue) progress() uint64 {
	if q.other == nil {
		return q.reached()
	}
	return q.reached() + q.other.reached()
}

func putWords(to []byte, words []uint32) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(to[4*i:], w)
	}
}
