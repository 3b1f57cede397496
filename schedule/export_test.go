package schedule

import (
	"context"

	"tgc/ir"
	"tgc/pass"
	"tgc/schedule/state"
)

// TextAfter runs the passes up to a row and prints the form.
func TextAfter(ctx context.Context, a *ir.Arena, sink *ir.UOp, row int, opt Options) (string, error) {
	s := state.New(a, opt)
	s.Sink = sink
	first := *passes
	first.Rows = passes.Rows[:row+1]
	err := first.Run(ctx, s, "", &pass.Control{Verify: true})
	return s.Text(), err
}

// Resume reads a form, runs the passes after a row and prints the kernels.
func Resume(ctx context.Context, a *ir.Arena, text string, row int, opt Options) (string, error) {
	s, _, err := parseForm(a, text, opt)
	if err != nil {
		return "", err
	}
	last := *passes
	last.Rows = passes.Rows[row+1:]
	err = last.Run(ctx, s, "", &pass.Control{Verify: true})
	return s.Text(), err
}
