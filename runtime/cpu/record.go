package cpu

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"

	"tgc/ir/program"
	"tgc/runtime"
	"tgc/runtime/cpu/native"
)

// patch is an argument slot that holds the value of a VAR.
type patch struct {
	call, arg int
	name      string
}

type recording struct {
	device  *Device
	mu      sync.Mutex
	step    *native.Step // nil for no calls at all
	patches []patch
	memory  []*memory // keeps imported Go memory alive
}

// Record captures launches as one native step.
func (d *Device) Record(_ context.Context, launches []runtime.Launch) (runtime.Recording, error) {
	r := &recording{device: d}
	var native2D [][]native.Call
	number := 0
	for _, l := range launches {
		var calls []native.Call
		for _, c := range l.Calls {
			bound, err := r.bind(c, number)
			if err != nil {
				return nil, err
			}
			calls = append(calls, bound)
			number++
		}
		native2D = append(native2D, calls)
	}
	if number == 0 {
		return r, nil
	}
	step, err := native.NewStep(native2D)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	r.step = step
	return r, nil
}

func (r *recording) bind(c runtime.Call, number int) (native.Call, error) {
	e, ok := c.Exec.(*executable)
	if !ok || e.device != r.device {
		return native.Call{}, fmt.Errorf("cpu: record: an executable of another device (%T)", c.Exec)
	}
	p := e.program
	args := make([]uint64, len(p.Params))
	for i := range p.Params {
		param := &p.Params[i]
		switch param.Kind {
		case program.ParamVar:
			r.patches = append(r.patches, patch{number, i, param.Name})
		case program.ParamTable:
			args[i] = uint64(e.tables[i].Addr())
		case program.ParamBuffer:
			address, err := r.bindBuffer(c, param)
			if err != nil {
				return native.Call{}, fmt.Errorf("cpu: record kernel %s: slot %d: %w", p.Name, param.Slot, err)
			}
			args[i] = uint64(address)
		}
	}
	return native.Call{Fn: e.entry, Args: args, Units: p.Units(), Granularity: int64(p.Options.Of(program.Chunk)), Shares: p.SharesUnits(), Name: p.Name}, nil
}

func (r *recording) bindBuffer(c runtime.Call, p *program.Param) (uintptr, error) {
	m, offset, err := runtime.Bound[*memory](c, p)
	if err != nil {
		return 0, err
	}
	address := m.address() + uintptr(offset)
	if address%uintptr(p.Align) != 0 {
		return 0, fmt.Errorf("address %#x is not aligned to %d", address, p.Align)
	}
	r.memory = append(r.memory, m)
	return address, nil
}

// Run replays the step. When the context ends, running kernels finish and the
// rest is skipped. A kernel that faults is an error that names it.
func (r *recording) Run(ctx context.Context, vars map[string]int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.setVars(vars); err != nil || r.step == nil {
		return err
	}
	err := r.device.pool.Run(ctx, r.step)
	goruntime.KeepAlive(r.memory)
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	return nil
}

// Profile replays the step with a barrier after every call and reports the
// time of each.
func (r *recording) Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.setVars(vars); err != nil || r.step == nil {
		return nil, err
	}
	times, err := r.device.pool.Profile(ctx, r.step)
	goruntime.KeepAlive(r.memory)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return times, nil
}

func (r *recording) setVars(vars map[string]int64) error {
	for _, p := range r.patches {
		v, ok := vars[p.name]
		if !ok {
			return fmt.Errorf("cpu: kernel %s: variable %q has no value", r.step.Name(p.call), p.name)
		}
		r.step.Args(p.call)[p.arg] = uint64(v)
	}
	return nil
}

// Free releases the step. It must not be running.
func (r *recording) Free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.step != nil {
		_ = r.step.Free() // unmapping our own mapping does not fail
		r.step, r.patches = nil, nil
	}
}
