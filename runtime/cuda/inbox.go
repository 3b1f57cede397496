package cuda

import (
	"errors"
	"sync"

	"tgc/runtime/cuda/driver"
)

const (
	// inboxBytes is the pinned ring of small writes; when it is full the host
	// waits for the steps that are under way.
	inboxBytes = 64 << 10
	// smallBytes is the longest write that goes through the ring.
	smallBytes = 4 << 10
	// inboxAlign keeps the pieces apart.
	inboxAlign = 16
)

// inbox queues small writes on the stream of the steps: a token and its position
// reach the device after the step before and ahead of the next one, and the host
// waits for neither. Two copies with a wait each cost some 20 us a token on an
// H200, of 650.
type inbox struct {
	device *Device
	mu     sync.Mutex
	buffer []byte // pinned, made when first needed
	at     int
	queued bool // since the stream was last waited for
}

// put queues a write of at most smallBytes.
func (b *inbox) put(to driver.Ptr, from []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	drv := b.device.drv
	if b.buffer == nil {
		var err error
		if b.buffer, err = drv.HostAlloc(inboxBytes); err != nil {
			return err
		}
	}
	if b.at+len(from) > len(b.buffer) {
		if err := b.empty(); err != nil {
			return err
		}
	}
	piece := b.buffer[b.at : b.at+len(from)]
	copy(piece, from)
	if err := drv.CopyToDevice(to, piece, b.device.stream); err != nil {
		return err
	}
	b.queued = true
	b.at += (len(from) + inboxAlign - 1) / inboxAlign * inboxAlign
	return nil
}

// settle waits until all queued writes have arrived: copies on other streams do
// not wait for them.
func (b *inbox) settle() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.queued {
		return nil
	}
	return b.empty()
}

func (b *inbox) empty() error {
	if err := b.device.drv.StreamSynchronize(b.device.stream); err != nil {
		return err
	}
	b.at, b.queued = 0, false
	return nil
}

// close frees the ring when nothing is left in it.
func (b *inbox) close() error {
	if b.buffer == nil {
		return nil
	}
	err := b.settle()
	err = errors.Join(err, b.device.drv.HostFree(b.buffer))
	b.buffer = nil
	return err
}
