package testkit

import (
	"context"
	"fmt"

	"tgc/internal/lists"
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
// out as NaN patterns, so a wrong lifetime shows; in float64 they have buffers
// of their own, because bytes would round them.
func (c *Case) RunSchedule(ctx context.Context, s *schedule.Schedule, opt interp.KernelOptions) (map[int64]*interp.KernelBuffer, error) {
	r := &kernelRun{s: s, opt: opt, vars: c.Vars, user: c.Clone(), arena: make([]byte, s.ArenaBytes), own: make(map[int]*interp.KernelBuffer)}
	for i := range r.arena {
		r.arena[i] = 0xff
	}
	for i, launch := range s.Launches {
		for _, k := range launch.Kernels {
			if err := r.kernel(ctx, k); err != nil {
				return nil, fmt.Errorf("launch %d, kernel %s: %w\n%s", i, k.Name, err, schedule.KernelText(k.AST))
			}
		}
	}
	return r.user, nil
}

// kernelRun is the memory of a schedule that is being evaluated.
type kernelRun struct {
	s     *schedule.Schedule
	opt   interp.KernelOptions
	vars  map[string]int64
	user  map[int64]*interp.KernelBuffer
	arena []byte
	own   map[int]*interp.KernelBuffer // temporaries of a float64 run
}

func (r *kernelRun) kernel(ctx context.Context, k *schedule.Kernel) error {
	args := lists.Map(k.Args, r.buffer)
	if _, err := interp.EvalKernel(ctx, k.AST, args, r.vars, r.opt); err != nil {
		return err
	}
	for _, st := range k.AST.Src {
		slot := st.Src[0].Arg.(ir.ParamArg).Slot
		if b := &r.s.Buffers[k.Args[slot]]; b.UserID < 0 && !r.opt.Float64 {
			copy(r.arena[b.Offset:b.Offset+b.Bytes], encode(args[slot]))
		}
	}
	return nil
}

func (r *kernelRun) buffer(index int) *interp.KernelBuffer {
	b := &r.s.Buffers[index]
	switch {
	case b.UserID >= 0:
		return r.user[b.UserID]
	case !r.opt.Float64:
		return &interp.KernelBuffer{DType: b.DType, Data: decodeBytes(b.DType, r.arena[b.Offset:b.Offset+b.Bytes])}
	case r.own[index] == nil:
		r.own[index] = &interp.KernelBuffer{DType: b.DType, Data: make([]ir.Scalar, int(b.Bytes)/b.DType.Size())}
		poison(r.own[index])
	}
	return r.own[index]
}
