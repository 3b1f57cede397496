package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"tgc/internal/lists"
	"tgc/runtime"
)

// Step is a compiled graph captured on a device with its buffers bound. Run
// replays it; only values of symbolic variables and the buffers' contents
// change between runs.
type Step struct {
	Compiled  *Compiled
	recording runtime.Recording
	arena     runtime.Memory
	buffers   map[int64]runtime.Memory // the user's, by ID
	last      atomic.Pointer[[]int64]  // values of the variables in the last run, in order of Compiled.Variables
}

// Steps chooses plans of steps that are about to be captured (TGC_JITBEAM).
type Steps interface {
	// Replan returns c, or what c.Replan made of it. It leaves the buffers as they are.
	Replan(ctx context.Context, dev runtime.Device, c *Compiled, buffers map[int64]runtime.Memory) (*Compiled, error)
}

// Load compiles the programs of c on the device: one executable a kernel.
func Load(ctx context.Context, dev runtime.Device, c *Compiled) (map[*Kernel]runtime.Executable, error) {
	programs := c.Programs()
	list, err := dev.Load(ctx, programs)
	if err != nil {
		return nil, err
	}
	loaded := make(map[*Kernel]runtime.Executable, len(list))
	for i, k := range c.Kernels {
		loaded[k] = list[i]
	}
	return loaded, nil
}

// Capture loads c on a device, binds user buffers by ID, allocates the arena of
// temporaries and records the launches. Where Config.Steps says so, the step has other plans
// than c.
func Capture(ctx context.Context, dev runtime.Device, c *Compiled, buffers map[int64]runtime.Memory) (*Step, error) {
	if c.steps != nil {
		var err error
		if c, err = c.steps.Replan(ctx, dev, c, buffers); err != nil {
			return nil, err
		}
	}
	loaded, err := Load(ctx, dev, c)
	if err != nil {
		return nil, err
	}
	s := &Step{Compiled: c, buffers: buffers}
	alloc := dev.Alloc
	if d, ok := dev.(runtime.Scratcher); ok {
		alloc = d.AllocScratch
	}
	if s.arena, err = alloc(ctx, max(c.Schedule.ArenaBytes, 64)); err != nil {
		return nil, fmt.Errorf("temporaries of %d bytes: %w", c.Schedule.ArenaBytes, err)
	}
	launches := make([]runtime.Launch, len(c.Launches))
	for i, calls := range c.Launches {
		for _, call := range calls {
			slots := make(map[int]runtime.View, len(call.Args))
			for slot, index := range call.Args {
				view, err := s.view(index, buffers)
				if err != nil {
					s.Free()
					return nil, fmt.Errorf("kernel %s: %w", call.Kernel.Name, err)
				}
				slots[slot] = view
			}
			launches[i].Calls = append(launches[i].Calls, runtime.Call{Exec: loaded[call.Kernel], Slots: slots})
		}
	}
	record := dev.Record
	if c.finite != WatchNothing {
		record = func(ctx context.Context, launches []runtime.Launch) (runtime.Recording, error) {
			return watch(ctx, dev, c, launches)
		}
	}
	if s.recording, err = record(ctx, launches); err != nil {
		s.Free()
		return nil, err
	}
	return s, nil
}

// Buffer is the memory of a user's buffer, by its ID; nil where the step has no such.
func (s *Step) Buffer(id int64) runtime.Memory { return s.buffers[id] }

// view finds the memory of a schedule's buffer.
func (s *Step) view(index int, buffers map[int64]runtime.Memory) (runtime.View, error) {
	b := &s.Compiled.Schedule.Buffers[index]
	if b.UserID < 0 {
		return runtime.View{Memory: s.arena, Offset: b.Offset}, nil
	}
	m, ok := buffers[b.UserID]
	want := s.Compiled.Layout(b.UserID).Bytes(b.Bytes)
	switch {
	case !ok || m == nil:
		return runtime.View{}, fmt.Errorf("buffer %d is not bound", b.UserID)
	case m.Size() < want:
		return runtime.View{}, fmt.Errorf("buffer %d has %d bytes, want %d", b.UserID, m.Size(), want)
	}
	return runtime.View{Memory: m}, nil
}

// Run replays the step with these values of the symbolic variables. One that has no value,
// or one out of its bounds, is an error.
func (s *Step) Run(ctx context.Context, vars map[string]int64) error {
	if err := s.check(vars); err != nil {
		return err
	}
	return s.explain(s.recording.Run(ctx, s.Compiled.Values(vars)))
}

// Values are the values of the symbolic variables with which a run that is given
// vars runs: those in Larger are rounded up as suits the target.
func (c *Compiled) Values(vars map[string]int64) map[string]int64 {
	if len(c.Larger) == 0 {
		return vars
	}
	values := maps.Clone(vars)
	for name, most := range c.Larger {
		if v, ok := vars[name]; ok {
			values[name] = c.Target.Tuning.RoundUp(v, most)
		}
	}
	return values
}

// explain adds the plan of the kernel at fault.
func (s *Step) explain(err error) error {
	var fault runtime.KernelFault
	if err == nil || !errors.As(err, &fault) {
		return err
	}
	for _, k := range s.Compiled.Kernels {
		if k.Name == fault.FaultedKernel() {
			return fmt.Errorf("%w; its plan: %s", err, strings.Join(planText(k), "; "))
		}
	}
	return err
}

// Start queues a run after those started before it, without waiting where the
// device can: the step then reads what they leave. Wait waits for all of them.
func (s *Step) Start(ctx context.Context, vars map[string]int64) error {
	if err := s.check(vars); err != nil {
		return err
	}
	vars = s.Compiled.Values(vars)
	if q, ok := s.recording.(runtime.Queue); ok {
		return s.explain(q.Start(ctx, vars))
	}
	return s.explain(s.recording.Run(ctx, vars))
}

// Wait waits for the end of what was started.
func (s *Step) Wait() error {
	if q, ok := s.recording.(runtime.Queue); ok {
		return s.explain(q.Wait())
	}
	return nil
}

// Repeat makes a step of n runs of s with the same variables, nil where the device
// gains nothing by it. It uses the temporaries of s and must be freed before it.
func (s *Step) Repeat(ctx context.Context, n int) (*Step, error) {
	r, ok := s.recording.(runtime.Repeater)
	if !ok || n < 2 {
		return nil, nil
	}
	recording, err := r.Repeat(ctx, n)
	if err != nil {
		return nil, err
	}
	return &Step{Compiled: s.Compiled, recording: recording}, nil
}

// Profile runs the step once and reports the time of every call in order of
// Compiled.Launches.
func (s *Step) Profile(ctx context.Context, vars map[string]int64) ([]time.Duration, error) {
	if err := s.check(vars); err != nil {
		return nil, err
	}
	times, err := s.recording.Profile(ctx, s.Compiled.Values(vars))
	return times, s.explain(err)
}

// Chain times some calls, by their numbers in what Profile returns, as the step
// runs them: one after the other, all of them as often as times says. It returns the
// time of one, or errors.ErrUnsupported where the device has no such measurement.
func (s *Step) Chain(ctx context.Context, vars map[string]int64, calls []int, times int) (time.Duration, error) {
	c, ok := s.recording.(runtime.Chainer)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	if err := s.check(vars); err != nil {
		return 0, err
	}
	took, err := c.Chain(ctx, s.Compiled.Values(vars), calls, times)
	return took, s.explain(err)
}

// RunChain times runs of the step, one after the other without a wait between them: what the
// device does, without the host's part in starting a run and in waiting for it. It returns
// the time of one, or errors.ErrUnsupported where the device has no such measurement.
func (s *Step) RunChain(ctx context.Context, vars map[string]int64, times int) (time.Duration, error) {
	calls := 0
	for _, launch := range s.Compiled.Launches {
		calls += len(launch)
	}
	took, err := s.Chain(ctx, vars, lists.Upto(calls), times)
	return took * time.Duration(calls), err
}

// Free releases the recording and the temporaries. The step must not be running; to run it
// afterwards is an error.
func (s *Step) Free() {
	if s.recording != nil {
		s.recording.Free()
		s.recording = nil
	}
	if s.arena != nil {
		s.arena.Free()
		s.arena = nil
	}
}
