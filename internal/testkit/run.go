package testkit

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
)

// Schedule runs package schedule alone on the graph.
func (c *Case) Schedule(ctx context.Context, opt schedule.Options) (*schedule.Schedule, error) {
	sink, err := c.Sink()
	if err != nil {
		return nil, err
	}
	a := ir.NewArena()
	return schedule.Run(ctx, a, a.Import(sink), opt)
}

// RunSchedule evaluates the kernels of a schedule one after another with the
// kernel-form interpreter. Temporaries live as bytes in one arena that starts
// out as NaN patterns, so a wrong lifetime shows.
func (c *Case) RunSchedule(ctx context.Context, s *schedule.Schedule, opt interp.KernelOptions) (map[int64]*interp.KernelBuffer, error) {
	buffers := c.Clone()
	arena := make([]byte, s.ArenaBytes)
	for i := range arena {
		arena[i] = 0xff
	}
	for i, launch := range s.Launches {
		for _, k := range launch.Kernels {
			if err := c.runKernel(ctx, s, k, buffers, arena, opt); err != nil {
				return nil, fmt.Errorf("launch %d, kernel %s: %w\n%s", i, k.Name, err, schedule.KernelText(k.AST))
			}
		}
	}
	return buffers, nil
}

func (c *Case) runKernel(ctx context.Context, s *schedule.Schedule, k *schedule.Kernel, buffers map[int64]*interp.KernelBuffer, arena []byte, opt interp.KernelOptions) error {
	args := make([]*interp.KernelBuffer, len(k.Args))
	for slot, index := range k.Args {
		b := &s.Buffers[index]
		if b.UserID >= 0 {
			args[slot] = buffers[b.UserID]
			continue
		}
		args[slot] = &interp.KernelBuffer{DType: b.DType, Data: decodeBytes(b.DType, arena[b.Offset:b.Offset+b.Bytes])}
	}
	if _, err := interp.EvalKernel(ctx, k.AST, args, c.Vars, opt); err != nil {
		return err
	}
	written := make(map[int]bool)
	for _, st := range k.AST.Src {
		written[st.Src[0].Arg.(ir.ParamArg).Slot] = true
	}
	for slot, index := range k.Args {
		if b := &s.Buffers[index]; b.UserID < 0 && written[slot] {
			copy(arena[b.Offset:b.Offset+b.Bytes], encode(args[slot]))
		}
	}
	return nil
}
