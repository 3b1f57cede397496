package hcq

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
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

func (s *still) Info() Info       { return Info{} }
func (s *still) Channel() Channel { return s.channel }
func (s *still) Alloc(bytes int64, _ Use) (*Buffer, error) {
	b := &Buffer{Address: s.next, Host: make([]byte, bytes)}
	s.next += 0x10000
	return b, nil
}
func (s *still) Free(*Buffer) error    { return nil }
func (s *still) Publish()              { s.order = append(s.order, "publish") }
func (s *still) Ring()                 { s.order = append(s.order, "ring"); s.rings++ }
func (s *still) Waited([]byte, uint64) {}
func (s *still) Fault() error          { return s.fault }
func (s *still) Close() error          { return nil }

// get moves the GPU's pointer.
func (s *still) get(entry uint32) { binary.LittleEndian.PutUint32(s.channel.Control[getAt:], entry) }

const shortTime = 5 * time.Millisecond

// A full ring is waited for, until the GPU has read an entry; one entry stays free.
func TestFullRing(t *testing.T) {
	board := newStill(8)
	q, err := newQueue(board, shortTime)
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
	q, err := newQueue(board, shortTime)
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
	q, err := newQueue(board, shortTime)
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
