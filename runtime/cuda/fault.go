package cuda

import (
	"errors"
	"fmt"
	"slices"

	"tgc/runtime/cuda/driver"
	"tgc/runtime/nvidia"
)

// A fault of a kernel comes out when the host waits for the whole graph, and
// ends all contexts of the process on that GPU: nothing can be run again to find
// the kernel. In serial mode the host waits for every kernel, and knows.

// explain turns a fault into a *FaultError that names the kernel.
func (r *Recording) explain(err error) error {
	var known *FaultError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBroken):
		return err
	case errors.As(err, &known): // serial mode
		r.device.broken.Store(&nvidia.BrokenError{Device: r.device.Name(), Cause: known})
		return err
	case !driver.Sticky(err):
		return prefixed(err)
	}
	f := r.blame(err)
	r.device.broken.Store(&nvidia.BrokenError{Device: r.device.Name(), Cause: f})
	return f
}

// blame names the kernel of a fault, or all that ran.
func (r *Recording) blame(err error) *FaultError {
	if len(r.calls) == 1 {
		return r.calls[0].fault(err)
	}
	var known *driver.Error
	if errors.As(err, &known) && known.Kernel != "" { // an emulator knows
		for i := range r.calls {
			if r.calls[i].Rendered.Entry == known.Kernel {
				return r.calls[i].fault(err)
			}
		}
	}
	f := &FaultError{Runtime: "cuda", Err: err, Hint: fmt.Sprintf("with %s=1 the same run names it", serialVariable)}
	for i := range r.calls {
		if name := r.calls[i].Name(); !slices.Contains(f.Suspects, name) {
			f.Suspects = append(f.Suspects, name)
		}
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
func (c *call) fault(err error) *FaultError { return c.Fault("cuda", err) }
