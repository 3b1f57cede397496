package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tgc/runtime"
	"tgc/runtime/cuda/driver"
	"tgc/runtime/nvidia"
)

// call is a recorded kernel. It is stale while the graph has not got its
// parameters.
type call struct {
	nvidia.Call
	kernel driver.Kernel // its Params are the call's
	node   driver.Node
	first  bool // of a run that must not start before the one before it has ended
}

// Recording is a step as a CUDA graph.
type Recording struct {
	device   *Device
	mu       sync.Mutex
	uses     nvidia.Uses[*memory]
	calls    []call
	scratch  []*memory // of memory: what to poison ahead of a run
	graph    graph     // zero for no calls at all, and in serial mode
	profile  *profile  // made when first asked for
	launched bool      // between Start and Wait
}

// Record captures launches as one graph.
func (d *Device) Record(_ context.Context, launches []runtime.Launch) (runtime.Recording, error) {
	r := &Recording{device: d}
	for i, l := range launches {
		for _, c := range l.Calls {
			if err := r.bind(c, i); err != nil {
				return nil, err
			}
		}
	}
	if len(r.calls) == 0 || d.options.Serial {
		return r, nil
	}
	err := d.with(func() error {
		var err error
		r.graph, err = newGraph(d, r.addStep)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: record: %w", err)
	}
	return r, nil
}

// bind fills in the parameters of a call. A grid without blocks is left out.
func (r *Recording) bind(c runtime.Call, launch int) error {
	e, ok := c.Exec.(*Executable)
	if !ok || e.device != r.device {
		return fmt.Errorf("cuda: record: an executable of another device (%T)", c.Exec)
	}
	bound, err := nvidia.Bind(c, e, launch, r.use)
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	out := call{Call: bound, kernel: e.kernel}
	out.kernel.Params = bound.Params
	if out.kernel.Grid[0] > 0 {
		r.calls = append(r.calls, out)
	}
	return nil
}

// use notes memory of a call, which has to be this device's.
func (r *Recording) use(m *memory) error {
	if m.device != r.device {
		return fmt.Errorf("memory of another device (%T)", m)
	}
	r.uses.Memory = append(r.uses.Memory, m)
	if m.scratch && !slices.Contains(r.scratch, m) {
		r.scratch = append(r.scratch, m)
	}
	return nil
}

// Run replays the step and waits for its end. A kernel that faults is a
// *FaultError; the device is lost then.
func (r *Recording) Run(ctx context.Context, vars map[string]int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.start(ctx, vars)
	if err == nil {
		err = r.wait(ctx)
	}
	return r.explain(err)
}

// Start queues the step without waiting: several may be queued, in order. It
// copies the variables.
func (r *Recording) Start(ctx context.Context, vars map[string]int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.explain(r.start(ctx, vars))
}

// Wait waits for all steps that were started.
func (r *Recording) Wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.explain(r.wait(context.Background()))
}

func (r *Recording) start(ctx context.Context, vars map[string]int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.usable(); err != nil {
		return err
	}
	if err := r.setVars(vars); err != nil || len(r.calls) == 0 {
		return err
	}
	if !r.graph.ready() {
		return r.serial(ctx)
	}
	r.launched = true
	return r.device.with(func() error {
		if err := r.poison(); err != nil {
			return err
		}
		if err := r.update(); err != nil {
			return err
		}
		return r.device.drv.GraphLaunch(r.graph.exec, r.device.stream)
	})
}

func (r *Recording) wait(ctx context.Context) error {
	if !r.launched {
		return nil
	}
	r.launched = false
	return r.device.with(func() error { return r.device.synchronize(ctx) })
}

// synchronize waits for what was queued. A GPU is waited for also when ctx is
// cancelled: a step takes less than a moment.
func (d *Device) synchronize(ctx context.Context) error {
	if c, checks := d.checker(); checks {
		return c.StreamSynchronizeContext(ctx, d.stream)
	}
	return d.drv.StreamSynchronize(d.stream)
}

// poison makes the temporaries of the last run undefined, where the driver can.
func (r *Recording) poison() error {
	c, checks := r.device.checker()
	if !checks {
		return nil
	}
	for _, m := range r.scratch {
		if err := c.Poison(m.Base, uint64(m.Bytes), r.device.stream); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recording) usable() error {
	if err := r.uses.Usable(); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// setVars fills variables in and marks the calls where one has changed.
func (r *Recording) setVars(vars map[string]int64) error {
	for i := range r.calls {
		if err := r.calls[i].SetVars(vars); err != nil {
			return fmt.Errorf("cuda: %w", err)
		}
	}
	return nil
}

// update gives the graph the parameters that have changed.
func (r *Recording) update() error {
	for i := range r.calls {
		c := &r.calls[i]
		if !c.Stale || !r.graph.ready() {
			continue
		}
		if err := r.device.drv.GraphSetKernel(r.graph.exec, c.node, &c.kernel); err != nil {
			return fmt.Errorf("kernel %s: %w", c.Name(), err)
		}
		c.Stale = false
	}
	return nil
}

// serial runs the calls one by one, so that a fault is the last one's.
func (r *Recording) serial(ctx context.Context) error {
	if err := r.device.with(r.poison); err != nil {
		return err
	}
	for i := range r.calls {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := &r.calls[i]
		err := r.device.with(func() error {
			if err := r.device.drv.Launch(&c.kernel, r.device.stream); err != nil {
				return err
			}
			return r.device.synchronize(ctx)
		})
		switch {
		case driver.Sticky(err) && !errors.Is(err, ErrBroken):
			return c.fault(err)
		case err != nil:
			return fmt.Errorf("cuda: kernel %s: %w", c.Name(), err)
		}
	}
	return nil
}

// Free releases the step. It must not be running.
func (r *Recording) Free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uses.Ended {
		return
	}
	r.uses.Ended = true
	d := r.device
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return
	}
	// A refusal means that the context is gone and the graph with it.
	_ = d.with(func() error {
		if r.profile != nil {
			r.profile.free(d.drv)
		}
		r.graph.free(d.drv)
		return nil
	})
	r.calls, r.uses.Memory = nil, nil
}
