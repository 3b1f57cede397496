package cuda

import (
	"context"
	"errors"
	"fmt"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/cuda/driver"
)

// A fault of a kernel comes out when the host waits for the whole graph, and
// ends the context with all memory in it. To name the kernel, the step is run
// again in a new context of the same GPU, kernel by kernel, over imported
// memory as it was and zeros for the rest: wrong addresses mostly come from the
// shape of a kernel, not from its data.

// explain turns a fault into a *FaultError that names the kernel.
func (r *Recording) explain(ctx context.Context, vars map[string]int64, err error) error {
	var known *FaultError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBroken):
		return err
	case errors.As(err, &known): // serial mode
		r.device.broken.Store(&brokenError{device: r.device.Name(), cause: known})
		return err
	case !driver.Sticky(err):
		return prefixed(err)
	}
	f := r.blame(ctx, vars, err)
	r.device.broken.Store(&brokenError{device: r.device.Name(), cause: f})
	return f
}

// blame finds the kernel of a fault, or at least names all that ran.
func (r *Recording) blame(ctx context.Context, vars map[string]int64, err error) *FaultError {
	if len(r.calls) == 1 {
		return r.calls[0].fault(err)
	}
	if found := r.diagnose(ctx, vars); found != nil {
		found.Err = err
		return found
	}
	f := &FaultError{Err: err}
	for i := range r.calls {
		f.Suspects = append(f.Suspects, r.calls[i].name())
	}
	return f
}

// prefixed says where an error of the driver comes from. Errors of this package
// and of contexts say so themselves.
func prefixed(err error) error {
	var e *driver.Error
	if errors.As(err, &e) {
		return fmt.Errorf("cuda: %w", err)
	}
	return err
}

// fault describes a call as the one at fault.
func (c *call) fault(err error) *FaultError {
	f := &FaultError{Kernel: c.name(), Err: err}
	for at, i := range c.exec.rendered.Params {
		p := &c.exec.program.Params[i]
		switch p.Kind {
		case program.ParamVar:
			f.Arguments = append(f.Arguments, fmt.Sprintf("%s = %d", p.Name, int64(c.kernel.Params[at])))
		case program.ParamBuffer:
			f.Arguments = append(f.Arguments, fmt.Sprintf("slot %d %s: %d bytes at %#x", p.Slot, p.Name, p.Bytes, c.kernel.Params[at]))
		}
	}
	return f
}

// diagnose repeats the step in a new context; nil where that finds nothing.
func (r *Recording) diagnose(ctx context.Context, vars map[string]int64) *FaultError {
	options := r.device.options
	options.Serial, options.Progress, options.Warn = true, nil, nil
	d, err := New(options)
	if err != nil {
		return nil
	}
	defer d.Close() // the copy's own errors say nothing about the fault
	launches, err := r.rebuild(ctx, d)
	if err != nil {
		return nil
	}
	repeat, err := d.Record(ctx, launches)
	if err != nil {
		return nil
	}
	if vars == nil {
		vars = r.lastVars()
	}
	var found *FaultError
	if errors.As(repeat.Run(ctx, vars), &found) {
		return found
	}
	return nil
}

// rebuild makes the calls anew on another device: memory of the same sizes,
// imported bytes where they were.
func (r *Recording) rebuild(ctx context.Context, d *Device) ([]runtime.Launch, error) {
	copies := make(map[runtime.Memory]runtime.Memory)
	var programs []*program.Program
	for i := range r.calls {
		programs = append(programs, r.calls[i].exec.program)
		for _, view := range r.calls[i].slots {
			m, ok := view.Memory.(*memory)
			if !ok || copies[m] != nil {
				continue
			}
			var err error
			if m.readOnly {
				copies[m], err = d.Import(ctx, m.source)
			} else {
				copies[m], err = d.Alloc(ctx, m.size)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	execs, err := d.Load(ctx, programs)
	if err != nil {
		return nil, err
	}
	launches := make([]runtime.Launch, len(r.calls))
	for i := range r.calls {
		slots := make(map[int]runtime.View)
		for slot, view := range r.calls[i].slots {
			slots[slot] = runtime.View{Memory: copies[view.Memory], Offset: view.Offset}
		}
		launches[i] = runtime.Launch{Calls: []runtime.Call{{Exec: execs[i], Slots: slots}}}
	}
	return launches, nil
}

// lastVars are the values that the calls were last given.
func (r *Recording) lastVars() map[string]int64 {
	vars := make(map[string]int64)
	for i := range r.calls {
		for _, v := range r.calls[i].vars {
			vars[v.name] = int64(r.calls[i].kernel.Params[v.param])
		}
	}
	return vars
}
