package schedule

import (
	"context"
	"fmt"

	"tgc/ir"
	"tgc/schedule/state"
)

// Run schedules a tensor graph SINK(ASSIGN...). The result is a function of the
// graph and the options alone. Passes lists what it does.
func Run(ctx context.Context, a *ir.Arena, sink *ir.UOp, opt state.Options) (*state.Schedule, error) {
	opt, err := withoutRows(opt)
	if err != nil {
		return nil, err
	}
	s := state.New(a, opt)
	s.Sink = sink
	s.TraceRewrites(opt.Control)
	if err := passes.Run(ctx, s, "", opt.Control); err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	s.Out.Records, s.Out.Values, s.Out.Decisions = s.Records, s.Initial, s.Used
	if opt.Explain {
		s.Out.Records = state.SettledRecords(s.Records)
	}
	return s.Out, nil
}
