package engine

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule"
)

// isKernel reports a graph that is in kernel form already: a dumped or
// hand-written kernel, which the pipeline then only plans and lowers, or a PAR
// of such kernels.
func isKernel(root *ir.UOp) bool {
	if root.Op == ir.OpPar {
		return len(root.Src) > 0 && isKernel(root.Src[0])
	}
	return root.Op == ir.OpSink && len(root.Src) > 0 && root.Src[0].Op == ir.OpStore
}

// scheduleOfKernel is the schedule of one kernel by itself, or of the kernels of
// one PAR as one launch: its parameters are the user's buffers, numbered by
// slot.
func scheduleOfKernel(sink *ir.UOp) *schedule.Schedule {
	params := lists.Filter(ir.Toposort(sink), func(u *ir.UOp) bool { return u.Op == ir.OpParam })
	slot := func(u *ir.UOp) int { return u.Arg.(ir.ParamArg).Slot }
	slices.SortFunc(params, func(x, y *ir.UOp) int { return slot(x) - slot(y) })
	bounds := ir.NewBounds()
	s := &schedule.Schedule{}
	args := make([]int, slot(params[len(params)-1])+1)
	for i, u := range params {
		bytes := int64(u.DType.Size())
		for _, extent := range u.Src {
			bytes *= max(bounds.Of(extent).Hi, 0)
		}
		arg := u.Arg.(ir.ParamArg)
		if arg.Format != "" {
			bytes = 0 // its format knows
		}
		s.Buffers = append(s.Buffers, schedule.Buffer{
			UserID: int64(arg.Slot), DType: u.DType, Shape: u.Src, Format: arg.Format, Bytes: bytes,
		})
		args[arg.Slot] = i
	}
	sinks := []*ir.UOp{sink}
	if sink.Op == ir.OpPar {
		sinks = sink.Src
	}
	var launch schedule.Launch
	for _, one := range sinks {
		launch.Kernels = append(launch.Kernels, &schedule.Kernel{AST: one, Name: "kernel", Args: args})
	}
	s.Launches = []schedule.Launch{launch}
	return s
}
