package search

import (
	"context"
	"maps"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
)

// GraphStep is a graph of which nothing else is known as a step: its buffers hold contents from
// a seed, its symbols the middle of what they may be. free ends it.
func GraphStep(ctx context.Context, dev runtime.Device, c *engine.Compiled, seed uint64) (step Step, free func(), err error) {
	return graphStep(ctx, dev, c, seed, nil)
}

// graphStep takes some buffers as they are: free leaves them.
func graphStep(ctx context.Context, dev runtime.Device, c *engine.Compiled, seed uint64, given map[int64]runtime.Memory) (step Step, free func(), err error) {
	memory := maps.Clone(given)
	if memory == nil {
		memory = make(map[int64]runtime.Memory)
	}
	free = func() {
		for id, m := range memory {
			if given[id] == nil {
				m.Free()
			}
		}
	}
	for i := range c.Schedule.Buffers {
		b := &c.Schedule.Buffers[i]
		if b.UserID < 0 || memory[b.UserID] != nil {
			continue
		}
		s, err := slotOf(c, i)
		if err != nil {
			return step, free, err
		}
		m, err := dev.Alloc(ctx, max(s.layout.Bytes(s.host), 64))
		if err != nil {
			return step, free, err
		}
		memory[b.UserID] = m
		if err := s.layout.Write(ctx, m, contents{seed, usualLimit}.of(b, 0, i, s.host)); err != nil {
			return step, free, err
		}
	}
	vars := make(map[string]int64)
	for _, k := range c.Kernels {
		for _, u := range ir.Toposort(k.AST) {
			if v, ok := u.Arg.(ir.VarArg); ok && u.Op == ir.OpVar {
				vars[v.Name] = max(v.Lo, v.Hi/2)
			}
		}
	}
	capture := func(ctx context.Context, c *engine.Compiled) (*engine.Step, error) {
		return engine.Capture(ctx, dev, c, memory)
	}
	return Step{c, vars, capture}, free, nil
}
