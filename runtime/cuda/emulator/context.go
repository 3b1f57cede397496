package emulator

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"tgc/internal/ptxemu"
	"tgc/runtime/cuda/driver"
)

// gpuContext is everything that a context holds, by handle.
type gpuContext struct {
	handle    driver.Context
	limit     int64 // bytes of device memory
	random    *rand.Rand
	fault     *driver.Error // ended the context
	memory    *ptxemu.Memory
	sizes     map[driver.Ptr]uint64
	pinned    map[*byte]bool
	streams   map[driver.Stream]*stream
	events    map[driver.Event]*event
	modules   map[driver.Module]*ptxemu.Module
	functions map[driver.Func]*function
	graphs    map[driver.Graph]*graph
	instances map[driver.GraphExec]*instance
}

// stream is a queue of work that nobody has waited for.
type stream struct {
	work []func(ctx context.Context) error
}

// event is the time when a queue last passed a mark.
type event struct {
	at     time.Time
	passed bool
}

// ContextCreate makes the context; there is one at a time.
func (d *Driver) ContextCreate(driver.Device) (driver.Context, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context != nil {
		return 0, refuse("cuCtxCreate", driver.InvalidContext, "the emulator has one context at a time")
	}
	h := driver.Context(d.handle())
	d.context = &gpuContext{
		handle: h, limit: d.options.MemoryBytes, random: d.random, memory: ptxemu.NewMemory(),
		sizes: make(map[driver.Ptr]uint64), pinned: make(map[*byte]bool),
		streams: make(map[driver.Stream]*stream), events: make(map[driver.Event]*event),
		modules: make(map[driver.Module]*ptxemu.Module), functions: make(map[driver.Func]*function),
		graphs: make(map[driver.Graph]*graph), instances: make(map[driver.GraphExec]*instance),
	}
	return h, nil
}

// ContextDestroy drops the context with everything in it.
func (d *Driver) ContextDestroy(h driver.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context == nil || d.context.handle != h {
		return refuse("cuCtxDestroy", driver.InvalidContext, "no such context")
	}
	d.left = d.context.live()
	d.context = nil
	return nil
}

// Kill ends the context as the fault of a kernel does that another process or
// nobody knows: every call is refused from then on.
func (d *Driver) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context != nil && d.context.fault == nil {
		d.context.fault = refuse("cuCtxKill", driver.LaunchFailed, "the context was killed")
	}
}

// ContextSet checks that the context is there: it is current on every thread.
func (d *Driver) ContextSet(h driver.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h != 0 && (d.context == nil || d.context.handle != h) {
		return refuse("cuCtxSetCurrent", driver.InvalidContext, "no such context")
	}
	return nil
}

// queue appends work to a stream.
func (c *gpuContext) queue(call string, h driver.Stream, work func(ctx context.Context) error) error {
	s := c.streams[h]
	if s == nil {
		return refuse(call, driver.InvalidHandle, "no such stream")
	}
	s.work = append(s.work, work)
	return nil
}

// drain runs what a stream was given. A fault ends the context; a cancelled ctx
// drops the rest of the queue.
func (c *gpuContext) drain(ctx context.Context, h driver.Stream) error {
	s := c.streams[h]
	if s == nil {
		return refuse("cuStreamSynchronize", driver.InvalidHandle, "no such stream")
	}
	work := s.work
	s.work = nil
	for _, f := range work {
		err := ctx.Err()
		if err == nil {
			err = f(ctx)
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		c.fault = faultOf(err)
		return c.fault
	}
	return nil
}

// drainAll runs every queue, in random order.
func (c *gpuContext) drainAll() error {
	handles := sortedKeys(c.streams)
	c.random.Shuffle(len(handles), func(i, j int) { handles[i], handles[j] = handles[j], handles[i] })
	for _, h := range handles {
		if err := c.drain(context.Background(), h); err != nil {
			return err
		}
	}
	return nil
}

// faultOf gives the mistake of a kernel the code that a GPU would; what a GPU
// would not see at all is a launch that failed.
func faultOf(err error) *driver.Error {
	code, kernel := driver.LaunchFailed, ""
	var address *ptxemu.AddressError
	if errors.As(err, &address) {
		switch address.Kind {
		case ptxemu.Misaligned:
			code = driver.MisalignedAddress
		case ptxemu.Outside, ptxemu.InWindow:
			code = driver.IllegalAddress
		}
	}
	var fault *ptxemu.Fault
	if errors.As(err, &fault) {
		kernel = fault.Kernel
	}
	e := refuse("cuStreamSynchronize", code, "%v", err)
	e.Kernel = kernel
	return e
}

// StreamCreate makes a queue.
func (d *Driver) StreamCreate() (driver.Stream, error) {
	return made(d, "cuStreamCreate", func(c *gpuContext, h driver.Stream) error {
		c.streams[h] = &stream{}
		return nil
	})
}

// StreamSynchronize runs what was queued.
func (d *Driver) StreamSynchronize(s driver.Stream) error {
	return d.StreamSynchronizeContext(context.Background(), s)
}

// StreamDestroy drops a queue after its work.
func (d *Driver) StreamDestroy(s driver.Stream) error {
	return d.in("cuStreamDestroy", func(c *gpuContext) error {
		if err := c.drain(context.Background(), s); err != nil {
			return err
		}
		delete(c.streams, s)
		return nil
	})
}

// EventCreate makes a mark.
func (d *Driver) EventCreate(bool) (driver.Event, error) {
	return made(d, "cuEventCreate", func(c *gpuContext, h driver.Event) error {
		c.events[h] = &event{}
		return nil
	})
}

// EventRecord queues the passing of a mark.
func (d *Driver) EventRecord(e driver.Event, s driver.Stream) error {
	return d.in("cuEventRecord", func(c *gpuContext) error {
		if c.events[e] == nil {
			return refuse("cuEventRecord", driver.InvalidHandle, "no such event")
		}
		return c.queue("cuEventRecord", s, func(context.Context) error { return c.pass(e) })
	})
}

func (c *gpuContext) pass(e driver.Event) error {
	if mark := c.events[e]; mark != nil {
		*mark = event{time.Now(), true}
	}
	return nil
}

// EventElapsed is the time that the emulator took between two marks.
func (d *Driver) EventElapsed(from, to driver.Event) (elapsed time.Duration, err error) {
	err = d.in("cuEventElapsedTime", func(c *gpuContext) error {
		a, b := c.events[from], c.events[to]
		if a == nil || b == nil || !a.passed || !b.passed {
			return refuse("cuEventElapsedTime", driver.InvalidHandle, "a mark that was not passed")
		}
		elapsed = b.at.Sub(a.at)
		return nil
	})
	return elapsed, err
}

// EventDestroy drops a mark.
func (d *Driver) EventDestroy(e driver.Event) error {
	return d.in("cuEventDestroy", func(c *gpuContext) error {
		if c.events[e] == nil {
			return refuse("cuEventDestroy", driver.InvalidHandle, "no such event")
		}
		delete(c.events, e)
		return nil
	})
}
