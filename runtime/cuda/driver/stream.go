package driver

import (
	"math"
	"time"
)

// Flags of streams and events.
const (
	streamNonBlocking  = 1 // CU_STREAM_NON_BLOCKING: no order with the default stream
	eventDisableTiming = 2 // CU_EVENT_DISABLE_TIMING
)

// StreamCreate makes a queue of work.
func (l *Library) StreamCreate() (Stream, error) {
	s, err := l.out(fnStreamCreate, streamNonBlocking)
	return Stream(s), err
}

// StreamSynchronize waits for all work of a queue. Faults of its kernels come
// out here.
func (l *Library) StreamSynchronize(s Stream) error { return l.call(fnStreamSynchronize, uintptr(s)) }

// StreamDestroy ends a queue.
func (l *Library) StreamDestroy(s Stream) error { return l.call(fnStreamDestroy, uintptr(s)) }

// EventCreate makes a mark that a queue can pass; a timed one tells when.
func (l *Library) EventCreate(timed bool) (Event, error) {
	var flags uintptr = eventDisableTiming
	if timed {
		flags = 0
	}
	e, err := l.out(fnEventCreate, flags)
	return Event(e), err
}

// EventRecord queues the passing of a mark.
func (l *Library) EventRecord(e Event, s Stream) error {
	return l.call(fnEventRecord, uintptr(e), uintptr(s))
}

// EventElapsed is the time between two marks, exact to some half microsecond.
func (l *Library) EventElapsed(from, to Event) (time.Duration, error) {
	v, err := l.out(fnEventElapsedTime, uintptr(from), uintptr(to))
	milliseconds := math.Float32frombits(uint32(v))
	return time.Duration(math.Round(float64(milliseconds) * 1e6)), err
}

// EventDestroy ends a mark.
func (l *Library) EventDestroy(e Event) error { return l.call(fnEventDestroy, uintptr(e)) }
