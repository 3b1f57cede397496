package cuda

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"tgc/runtime"
	"tgc/runtime/cuda/driver"
)

const (
	// slotBytes is a pinned buffer: long enough that a copy runs at the bus's
	// rate, short enough that filling and copying overlap.
	slotBytes = 4 << 20
	// slotCount bounds the buffers: one core fills some 10 GB/s, and a bus takes
	// up to 50. Eight import 43 GB/s on an H200 host.
	slotCount = 8
)

// slot is a pinned buffer with a queue of its own.
type slot struct {
	buffer []byte
	stream driver.Stream
}

// staging moves bytes between the host's ordinary memory and the device through
// pinned buffers, which are made when they are first needed.
type staging struct {
	device *Device
	inbox  inbox
	idle   chan *slot
	mu     sync.Mutex
	all    []*slot
}

func newStaging(d *Device) *staging {
	return &staging{device: d, inbox: inbox{device: d}, idle: make(chan *slot, slotCount)}
}

// acquire returns an idle slot, a new one while there are few.
func (s *staging) acquire() (*slot, error) {
	select {
	case one := <-s.idle:
		return one, nil
	default:
	}
	s.mu.Lock()
	if len(s.all) < slotCount {
		defer s.mu.Unlock()
		return s.create()
	}
	s.mu.Unlock()
	return <-s.idle, nil
}

func (s *staging) create() (*slot, error) {
	buffer, err := s.device.drv.HostAlloc(slotBytes)
	if err != nil {
		return nil, err
	}
	stream, err := s.device.drv.StreamCreate()
	if err != nil {
		return nil, errors.Join(err, s.device.drv.HostFree(buffer))
	}
	one := &slot{buffer: buffer, stream: stream}
	s.all = append(s.all, one)
	return one, nil
}

// close gives the slots back. Nothing may be under way.
func (s *staging) close() error {
	var errs []error
	for _, one := range s.all {
		errs = append(errs, s.device.drv.StreamDestroy(one.stream), s.device.drv.HostFree(one.buffer))
	}
	s.all = nil
	return errors.Join(append(errs, s.inbox.close())...)
}

// move copies a chunk: from is host bytes, at its offset in the whole.
type move func(one *slot, offset, size int64) error

// each runs a move over all chunks of n bytes, several at a time.
func (s *staging) each(ctx context.Context, n int64, f move) error {
	chunks := (n + slotBytes - 1) / slotBytes
	var next atomic.Int64
	work := func() error {
		return s.device.with(func() error {
			one, err := s.acquire()
			if err != nil {
				return err
			}
			defer func() { s.idle <- one }()
			for i := next.Add(1) - 1; i < chunks; i = next.Add(1) - 1 {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := f(one, i*slotBytes, min(slotBytes, n-i*slotBytes)); err != nil {
					next.Store(chunks)
					return err
				}
			}
			return nil
		})
	}
	if chunks <= 1 {
		return work()
	}
	errs := make([]error, min(slotCount, chunks))
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() { errs[i] = work() })
	}
	workers.Wait()
	return runtime.FirstError(errs)
}

// upload copies bytes to the device. A small write is only queued, before
// what is started next.
func (s *staging) upload(ctx context.Context, to driver.Ptr, from runtime.Source) error {
	if from.Size() <= smallBytes {
		return s.uploadSmall(ctx, to, from)
	}
	if err := s.settle(); err != nil {
		return err
	}
	drv := s.device.drv
	return s.each(ctx, from.Size(), func(one *slot, offset, size int64) error {
		if _, err := from.ReadAt(one.buffer[:size], offset); err != nil {
			return err
		}
		if err := drv.CopyToDevice(to+driver.Ptr(offset), one.buffer[:size], one.stream); err != nil {
			return err
		}
		if err := drv.StreamSynchronize(one.stream); err != nil {
			return err
		}
		s.progress(size)
		return nil
	})
}

func (s *staging) uploadSmall(ctx context.Context, to driver.Ptr, from runtime.Source) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bytes, ok := from.(hostBytes)
	if !ok {
		bytes = make(hostBytes, from.Size())
		if _, err := from.ReadAt(bytes, 0); err != nil {
			return err
		}
	}
	err := s.device.with(func() error { return s.inbox.put(to, bytes) })
	if err == nil {
		s.progress(from.Size())
	}
	return err
}

func (s *staging) progress(bytes int64) {
	if f := s.device.options.Progress; f != nil {
		f(bytes)
	}
}

// settle lets queued writes arrive.
func (s *staging) settle() error { return s.device.with(s.inbox.settle) }

// download copies device bytes to the host.
func (s *staging) download(ctx context.Context, to []byte, from driver.Ptr) error {
	if err := s.settle(); err != nil {
		return err
	}
	drv := s.device.drv
	return s.each(ctx, int64(len(to)), func(one *slot, offset, size int64) error {
		if err := drv.CopyToHost(one.buffer[:size], from+driver.Ptr(offset), one.stream); err != nil {
			return err
		}
		if err := drv.StreamSynchronize(one.stream); err != nil {
			return err
		}
		copy(to[offset:offset+size], one.buffer)
		return nil
	})
}
