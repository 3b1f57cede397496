package testkit

import (
	"context"
	"fmt"
	"math"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/target"
)

// Bound is a compiled case on a device, ready to run.
type Bound struct {
	Step   *engine.Step
	memory map[int64]runtime.Memory
	c      *Case
}

// Bind allocates the user's buffers on a device and captures the step.
func (c *Case) Bind(ctx context.Context, dev runtime.Device, compiled *engine.Compiled) (*Bound, error) {
	b := &Bound{memory: make(map[int64]runtime.Memory), c: c}
	for _, info := range compiled.Schedule.Buffers {
		if info.UserID < 0 {
			continue
		}
		content := c.Buffers[info.UserID]
		if content == nil {
			b.Free()
			return nil, fmt.Errorf("buffer %d has no contents", info.UserID)
		}
		host := max(info.Bytes, int64(len(encode(content))), 1)
		m, err := dev.Alloc(ctx, compiled.Layout(info.UserID).Bytes(host))
		if err != nil {
			b.Free()
			return nil, err
		}
		b.memory[info.UserID] = m
	}
	var err error
	if b.Step, err = engine.Capture(ctx, dev, compiled, b.memory); err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}

// Write puts contents into the buffers.
func (b *Bound) Write(ctx context.Context, contents map[int64]*interp.KernelBuffer) error {
	for id, m := range b.memory {
		content := contents[id]
		if content == nil {
			continue
		}
		if err := b.Step.Compiled.Layout(id).Write(ctx, m, encode(content)); err != nil {
			return fmt.Errorf("buffer %d: %w", id, err)
		}
	}
	return nil
}

// Read returns the contents of the plain buffers.
func (b *Bound) Read(ctx context.Context) (map[int64]*interp.KernelBuffer, error) {
	out := make(map[int64]*interp.KernelBuffer)
	for id, m := range b.memory {
		content := b.c.Buffers[id]
		if content.Format != "" {
			continue
		}
		raw := make([]byte, len(content.Data)*content.DType.Size())
		if err := m.Read(ctx, 0, raw); err != nil {
			return nil, fmt.Errorf("buffer %d: %w", id, err)
		}
		out[id] = &interp.KernelBuffer{DType: content.DType, Data: decodeBytes(content.DType, raw)}
	}
	return out, nil
}

// Free releases the step and its memory.
func (b *Bound) Free() {
	if b.Step != nil {
		b.Step.Free()
	}
	for _, m := range b.memory {
		m.Free()
	}
}

// Run binds, fills, runs and reads back a compiled case. Outputs start out as
// garbage, so an element that is not written shows.
func (c *Case) Run(ctx context.Context, dev runtime.Device, compiled *engine.Compiled) (map[int64]*interp.KernelBuffer, error) {
	b, err := c.Bind(ctx, dev, compiled)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	contents := c.Clone()
	for _, info := range c.infos() {
		if info.Output {
			poison(contents[info.ID])
		}
	}
	if err := b.Write(ctx, contents); err != nil {
		return nil, err
	}
	if err := b.Step.Run(ctx, c.Vars); err != nil {
		return nil, err
	}
	return b.Read(ctx)
}

// poison fills a buffer with values that no tame graph computes.
func poison(b *interp.KernelBuffer) {
	for i := range b.Data {
		if b.DType.IsFloat() {
			b.Data[i] = ir.FloatScalar(math.NaN())
		} else {
			b.Data[i] = ir.IntScalar(ir.WrapInt(b.DType, 0x55))
		}
	}
}

// Compile compiles the case's graph for a target.
func (c *Case) Compile(ctx context.Context, desc *target.Desc, config engine.Config) (*engine.Compiled, error) {
	sink, err := c.Sink()
	if err != nil {
		return nil, err
	}
	return engine.Compile(ctx, sink, desc, config)
}
