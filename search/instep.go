package search

import (
	"context"
	"sync"

	"tgc/engine"
	"tgc/runtime"
)

// InStep searches the kernels of steps when these are captured (engine.Config.Steps): TGC_JITBEAM.
// What is compiled and never captured is not searched; what is faster by itself and not in the
// step is not taken. Steps run on buffers of their own, but for weights, which they only read.
type InStep struct {
	Tune TuneOptions // Budget is that of each step
	Seed uint64

	mu sync.Mutex
}

// Replan is that of engine.Steps. A step that cannot be tuned keeps its plans.
func (s *InStep) Replan(ctx context.Context, dev runtime.Device, c *engine.Compiled, buffers map[int64]runtime.Memory) (*engine.Compiled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	options := s.Tune
	options.Config.Steps = nil
	step, free, err := graphStep(ctx, dev, c, s.Seed, weightsOf(c, buffers))
	defer free()
	var tuned *Tuned
	if err == nil {
		tuned, err = Tune(ctx, step, options)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		if options.Say != nil {
			options.Say("a step of %d kernels is not searched: %v", len(c.Kernels), err)
		}
		return c, nil
	case len(tuned.plans) == 0:
		return c, nil
	}
	config := options.Config
	config.Plans, config.IgnoreDB = tuned.plans, true
	return c.Replan(ctx, config)
}

// weightsOf are the large buffers that a step only reads.
func weightsOf(c *engine.Compiled, buffers map[int64]runtime.Memory) map[int64]runtime.Memory {
	written := make(map[int64]bool)
	for _, launch := range c.Launches {
		for _, call := range launch {
			for _, p := range writtenSlots(call.Kernel.Program) {
				written[c.Schedule.Buffers[call.Args[p.Slot]].UserID] = true
			}
		}
	}
	shared := make(map[int64]runtime.Memory)
	for i := range c.Schedule.Buffers {
		id := c.Schedule.Buffers[i].UserID
		if s, err := slotOf(c, i); err == nil && s.weight && !written[id] && buffers[id] != nil {
			shared[id] = buffers[id]
		}
	}
	return shared
}
