package hcq

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// still is a board whose GPU does nothing but what the test writes.
type still struct {
	channel Channel
	next    uint64
	rings   int
	order   []string // of barriers and doorbells
	fault   error
}

func newStill(entries int) *still {
	return &still{channel: Channel{Ring: make([]byte, 8*entries), Control: make([]byte, 512), Entries: entries}, next: 0x10000}
}

func (s *still) Info() Info             { return Info{} }
func (s *still) Channel(Engine) Channel { return s.channel }
func (s *still) Alloc(bytes int64, _ Use) (*Buffer, error) {
	b := &Buffer{Address: s.next, Host: make([]byte, bytes)}
	s.next += 0x10000
	return b, nil
}
func (s *still) Free(*Buffer) error    { return nil }
func (s *still) Publish()              { s.order = append(s.order, "publish") }
func (s *still) Ring(Engine)           { s.order = append(s.order, "ring"); s.rings++ }
func (s *still) Waited([]byte, uint64) {}
func (s *still) Fault() error          { return s.fault }
func (s *still) Close() error          { return nil }

// get moves the GPU's pointer.
func (s *still) get(entry uint32) { binary.LittleEndian.PutUint32(s.channel.Control[getAt:], entry) }

const shortTime = 5 * time.Millisecond

// A full ring is waited for, until the GPU has read an entry; one entry stays free.
func TestFullRing(t *testing.T) {
	board := newStill(8)
	q, err := newQueue(board, Compute, shortTime)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if value, err := q.submit(uint64(i)); err != nil || value != uint64(i+1) {
			t.Fatal(value, err)
		}
	}
	if put := binary.LittleEndian.Uint32(board.channel.Control[putAt:]); put != 6 || board.rings != 3 {
		t.Errorf("put is %d after %d doorbells", put, board.rings)
	}
	if _, err := q.submit(7); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v, want %v", err, ErrTimeout)
	}
	board.get(6)
	if _, err := q.submit(7, 8, 9); err != nil {
		t.Error(err)
	}
	if got := binary.LittleEndian.Uint64(board.channel.Ring[8*6:]); got != 7 {
		t.Errorf("entry 6 is %#x", got)
	}
	board.get(2)
	board.fault = errors.New("gone")
	if _, err := q.submit(1, 2, 3, 4, 5, 6, 7); !errors.Is(err, board.fault) {
		t.Errorf("%v, want the fault", err)
	}
}

// Words that signal are not written anew before the timeline has passed what they wrote,
// also where its values pass 1<<31.
func TestSignalSlots(t *testing.T) {
	board := newStill(1024)
	q, err := newQueue(board, Compute, shortTime)
	if err != nil {
		t.Fatal(err)
	}
	q.last = 1<<31 - 20
	for i := range q.slots {
		q.slots[i] = q.last
	}
	binary.LittleEndian.PutUint64(q.cell.Host, q.last)
	for range slotCount {
		if _, err := q.submit(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.submit(); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v, want %v", err, ErrTimeout)
	}
	binary.LittleEndian.PutUint64(q.cell.Host, 1<<31-19)
	if value, err := q.submit(); err != nil || value != 1<<31-20+slotCount+1 {
		t.Errorf("%#x, %v", value, err)
	}
	if got := binary.LittleEndian.Uint32(q.signals.Host[12:]); got != 1<<31-20+slotCount+1 {
		t.Errorf("the first slot writes %#x", got)
	}
}

// The words and entries are published before the pointer, and that before the doorbell.
func TestPublished(t *testing.T) {
	board := newStill(16)
	q, err := newQueue(board, Compute, shortTime)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.submit(1); err != nil {
		t.Fatal(err)
	}
	if got := board.order; len(got) != 3 || got[0] != "publish" || got[1] != "publish" || got[2] != "ring" {
		t.Errorf("%v", got)
	}
}

// What is longer than the copy engine takes at once is copied in parts, each after the one
// before.
func TestLongCopy(t *testing.T) {
	d := &Device{board: newStill(64)}
	for engine, q := range map[Engine]**queue{Compute: &d.queue, Copies: &d.copies} {
		var err error
		if *q, err = newQueue(newStill(64), engine, shortTime); err != nil {
			t.Fatal(err)
		}
	}
	m := &memory{device: d}
	if err := d.queueCopy(0xfe00000000, 0x200000, 5<<30, m); err != nil || m.copied != 3 {
		t.Fatalf("%v, the last part has value %d, want 3", err, m.copied)
	}
	for i, want := range [][3]uint32{{0, 0x200000, 1 << 31}, {1 << 31, 0x80200000, 1 << 31}, {0, 0x200000, 1 << 30}} {
		words := d.copies.signals.Host[i*slotBytes+signalBytes:]
		get := func(at int) uint32 { return binary.LittleEndian.Uint32(words[4*at:]) }
		if got := [3]uint32{get(2), get(4), get(6)}; got != want {
			t.Errorf("part %d: %#x, want %#x", i, got, want)
		}
	}
}

// A queue that waits for the other one has time as long as that goes on.
func TestProgressOfTheOther(t *testing.T) {
	q, err := newQueue(newStill(64), Copies, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if q.other, err = newQueue(newStill(64), Compute, time.Second); err != nil {
		t.Fatal(err)
	}
	value := func(q *queue) *uint64 { return (*uint64)(unsafe.Pointer(&q.cell.Host[0])) }
	go func() {
		for i := range uint64(60) {
			time.Sleep(10 * time.Millisecond)
			atomic.StoreUint64(value(q.other), i+1)
		}
		atomic.StoreUint64(value(q), 1)
	}()
	if err := q.wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := q.wait(t.Context(), 2); !errors.Is(err, ErrTimeout) {
		t.Errorf("when neither goes on: %v, want %v", err, ErrTimeout)
	}
}
